"""CLiMF over a batch of lists, in O(m log m + m P) per list (reference: losses/climf/reference.py).

The gradient is a smooth rank, g(-f_j) + 2 R_j - (|P| - 1), so the rank engine's logistic step (C = 1) gives it. The loss
needs one sum over pairs, for each of them

    ln(1 + e^x) + ln(1 + e^-x) = |x| + 2 ln(1 + t),     t = e^{-|x|}

The |x| add up from the gaps of the sorted scores: gap r lies inside r (m - r) pairs. ln(1 + t) is an exponential sum like
that of the sigmoid: t times the Chebyshev interpolant of ln(1 + t) / t on [0, 1], degree P - 1. Its error is at most
(3 + 2 sqrt 2)^-P = 5.83^-P: ln(1 + t) / t is the mean of 1 / (1 + yt) over y in [0, 1], and none of these is interpolated
worse than 1 / (1 + t). Measured, it is about 1.3 / P of that bound (P = 12: 7.1e-11). A pair of the loss is at least
2 ln 2, so the loss is off by at most 5.83^-P / ln 2 of itself (9.4e-10), and an undivided gradient by 2 (m - 1) 5.83^-P.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._ranks_kernel import (
    NO_TERMS,
    TERMS,
    advance,
    combined,
    power_terms,
    ranks_forward,
    relevant_rows,
    step_value,
)


def log_terms(terms: int = TERMS) -> Float64Array:
    """(TERMS,) coefficients of t^1 .. t^P in the approximation of ln(1 + t) on [0, 1]."""
    return power_terms(lambda t: np.log1p(t) / t, terms)


class CLiMFSettings(NamedTuple):
    """The field of `CLiMFBound`, and the exponential sum of ln(1 + t)."""

    mean_pairs: bool
    terms: Float64Array
    """`log_terms()`"""


@kernel
def _pair_losses(terms, f, e):
    """Sum over all pairs of |x| + 2 ln(1 + e^-|x|); scores sorted, `e` their decays."""
    m = f.size
    A, apart, logs = NO_TERMS, 0.0, 0.0
    for r in range(1, m):
        apart += float(r) * float(m - r) * (f[r - 1] - f[r])
        A = advance(e[r], 1.0, A)
        logs += combined(terms, A)
    return apart + 2.0 * logs


@kernel
def _softplus(x):
    """ln(1 + e^x)"""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@kernel
def _climf(step, settings, f, a, G_user, G_item):
    """One list: sort the relevant rows, ranks, gradients; returns the loss."""
    for i in range(f.size):
        G_user[i] = 0.0
        G_item[i] = 0.0
    order, s = relevant_rows(f, a)
    m = s.size
    if m == 0:
        return 0.0
    work = np.empty((4, m))
    ones, e, R, D = work[0], work[1], work[2], work[3]
    for r in range(m):
        ones[r] = 1.0
    ranks_forward(step, s, ones, e, R, D, np.inf)
    share = 1.0 / max(m - 1, 1) if settings.mean_pairs else 1.0
    value = share * (m * np.log(2.0) + _pair_losses(settings.terms, s, e))
    for r in range(m):
        value += _softplus(-s[r])
        slope = share * ((m - 1) - 2.0 * R[r]) - step_value(step, -s[r])
        G_user[order[r]] = slope
        G_item[order[r]] = slope
    return value


@parallel_kernel
def climf_lists(step, settings, batch, scores, G, report):
    """CLiMF's bound for every list of the batch, `step` the logistic one with C = 1; G and report as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _climf(step, settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
