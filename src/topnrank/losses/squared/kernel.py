"""The squared loss over a batch of lists (reference: losses/squared/reference.py)."""

from topnrank.kernels.jit import parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._shaping_kernel import add_squared


@parallel_kernel
def squared_lists(batch, scores, G, report):
    """The squared loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                G[:, lo:hi] = 0.0
                report[n, 0] = add_squared(scores[lo:hi], batch.gains[lo:hi], 1.0, G[:, lo:hi])
