"""Averaged discounted gain over a batch of lists, in O(m log m) by the rank engine (reference: losses/mfadg/reference.py).

Rank weights are 0 for the user's own rows and the batch's for the sampled ones, so one forward pass gives every R_i and
one backward pass the force on every sampled row.
"""

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.sorting import descending_order
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._ranks_kernel import ranks_backward, ranks_forward

LN2 = np.log(2.0)


@kernel
def _discounts(order, a, own, R, c):
    """Writes c = dL/dR, 0 for all rows but the positives; returns the loss."""
    positives = 0
    for i in range(own):
        positives += a[i] > 0.0
    value = 0.0
    for r in range(order.size):
        c[r] = 0.0
        if order[r] < own and a[order[r]] > 0.0:
            log = np.log(2.0 + R[r])
            value -= LN2 / (positives * log)
            c[r] = LN2 / (positives * (2.0 + R[r]) * log * log)
    return value


@kernel
def _mfadg(step, weights, f, a, own, G):
    """One list: sort, weighted ranks, slopes, gradients; returns the loss."""
    m = f.size
    order = descending_order(f)
    work = np.empty((7, m))
    g, w, e, R, D, c, X = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    for r in range(m):
        g[r] = f[order[r]]
        w[r] = weights[order[r]] if order[r] >= own else 0.0
    ranks_forward(step, g, w, e, R, D, np.inf)
    value = _discounts(order, a, own, R, c)
    ranks_backward(step, g, c, e, X, g.size)
    for r in range(m):
        force = w[r] * X[r] - c[r] * D[r]
        for side in range(2):
            G[side, order[r]] = force
    return value


@parallel_kernel
def mfadg_lists(step, batch, scores, G, report):
    """MF-ADG's loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = max(hi - lo, 0)
            if hi > lo:
                own = max(batch.own[n], lo) - lo
                report[n, 0] = _mfadg(step, batch.weights[lo:hi], scores[lo:hi], batch.gains[lo:hi], own, G[:, lo:hi])
