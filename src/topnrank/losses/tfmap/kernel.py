"""TFMAP over a batch of lists, in O(m log m + m P) per list (reference: losses/tfmap/reference.py).

F = 1/|P| sum_i g(f_i) (1/2 + R_i) is a function of smooth ranks, so the rank engine's logistic step (C = 1) gives F forward
and its gradient backward. The error of F is at most |P| 5.83^-P, and the gradient is that of the approximation.
"""

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._ranks_kernel import ranks_backward, ranks_forward, relevant_rows, step_slope, step_value


@kernel
def _smooth_ap(step, f, a, G_user, G_item):
    """One list: sort the relevant rows, ranks, gradients; returns the loss."""
    for i in range(f.size):
        G_user[i] = 0.0
        G_item[i] = 0.0
    order, s = relevant_rows(f, a)
    m = s.size
    if m == 0:
        return 0.0
    work = np.empty((6, m))
    ones, e, R, D, c, X = work[0], work[1], work[2], work[3], work[4], work[5]
    for r in range(m):
        ones[r] = 1.0
    ranks_forward(step, s, ones, e, R, D, np.inf)
    value = 0.0
    for r in range(m):
        c[r] = step_value(step, s[r])
        value += c[r] * (0.5 + R[r])
    ranks_backward(step, s, c, e, X, s.size)
    for r in range(m):
        slope = (c[r] * D[r] - X[r] - step_slope(step, s[r]) * (0.5 + R[r])) / m
        G_user[order[r]] = slope
        G_item[order[r]] = slope
    return -value / m


@parallel_kernel
def tfmap_lists(step, batch, scores, G, report):
    """Smoothed AP for every list of the batch, `step` the logistic one with C = 1; G and report as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _smooth_ap(step, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
