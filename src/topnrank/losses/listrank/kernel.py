"""ListRank over a batch of lists (reference: losses/listrank/reference.py): three passes, no sort."""

from typing import NamedTuple

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._links_kernel import apply_link


class TopOneSettings(NamedTuple):
    """The fields of `TopOneCrossEntropy` as numbers."""

    sigmoid: bool
    """Whether the link is "sigmoid"."""
    per_item: bool
    scale: float


@kernel
def _top_one(settings, f, a, G_user, G_item):
    """One list; returns the loss."""
    m = f.size
    work = np.empty((2, m))
    s, slope = work[0], work[1]
    apply_link(settings.sigmoid, f, s, slope)
    top_s, top_a = s[0], a[0]
    for i in range(m):
        top_s = max(top_s, s[i])
        top_a = max(top_a, a[i])
    total_s, total_a = 0.0, 0.0
    for i in range(m):
        total_s += np.exp(s[i] - top_s)
        total_a += np.exp(a[i] - top_a)
    factor = settings.scale * m if settings.per_item else settings.scale
    log_total, value = np.log(total_s), 0.0
    for i in range(m):
        below_top = s[i] - top_s
        p = np.exp(a[i] - top_a) / total_a
        value -= p * (below_top - log_total)
        G_user[i] = factor * (np.exp(below_top) / total_s - p) * slope[i]
        G_item[i] = G_user[i]
    return factor * value


@parallel_kernel
def listrank_lists(settings, batch, scores, G, report):
    """ListRank's loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _top_one(settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
