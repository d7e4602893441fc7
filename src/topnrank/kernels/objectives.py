"""Objectives over a batch of lists, parallel over users (references: objectives/).

A trap of Numba here and in the other kernels: inside a `prange`, a direct write to an array that came in a tuple is
lost. What a parallel loop writes itself comes as an argument of its own.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels._jit import kernel, parallel_kernel, prange
from topnrank.kernels.ranks import ranks_backward, ranks_forward, step_slope, step_value
from topnrank.kernels.shaping import add_squared, annealed, budget_scale
from topnrank.kernels.sorting import descending_order


class DCGSettings(NamedTuple):
    """The fields of `objectives.WeightedDCG`, but for its step function, as numbers."""

    n: float
    truncate: bool
    exact: bool
    discount: float
    budget: float
    anchor: float
    anneal: float
    balance: float


@kernel
def _gain_and_slope(step, settings, cut, R, gain):
    """Loss of one item at smooth rank R, and its slope c (eq. 9); `cut` is the gate's N."""
    if gain == 0.0:
        return 0.0, 0.0
    log = np.log(R + 2.0)
    p = settings.discount
    if p == 2.0:
        D = 1.0 / log
        fall = D * D / (R + 2.0)
    elif p == 1.0:
        D = -np.log(log)
        fall = 1.0 / ((R + 2.0) * log)
    else:
        D = log ** (1.0 - p) / (p - 1.0)
        fall = 1.0 / ((R + 2.0) * log**p)
    if not settings.truncate:
        return -gain * D, gain * fall
    x = cut - R
    H = step_value(step, x)
    return -gain * H * D, gain * (step_slope(step, x) * D + H * fall)


@kernel
def _weighted_dcg(step, settings, cut, f, a, weights, G):
    """One list: sort, ranks, slopes, gradients; returns the loss and the number of items with R < N."""
    m = f.size
    order = descending_order(f)
    work = np.empty((7, m))
    g, e, R, D, c, X, w = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    liked = 0
    for r in range(m):
        g[r] = f[order[r]]
        w[r] = weights[order[r]]
        liked += a[r] > 0.0
    ranks_forward(step, g, w, e, R, D)
    value, active = 0.0, 0
    share = max(liked, 1) ** -settings.balance
    for r in range(m):
        loss, c[r] = _gain_and_slope(step, settings, cut, R[r], share * a[order[r]])
        value += loss
        active += R[r] < settings.n
    ranks_backward(step, g, c, e, X)
    mass, own_mass, gains = 0.0, 0.0, 0.0
    for r in range(m):
        D[r] = -c[r] * D[r]
        X[r] = w[r] * X[r] + D[r]
        mass += abs(X[r])
        own_mass += abs(D[r])
        gains += abs(a[r])
    if not settings.exact:
        mass = max(mass, own_mass)
    scale = budget_scale(settings, m, mass, gains)
    for r in range(m):
        G[0, order[r]] = scale * X[r]
        G[1, order[r]] = scale * (X[r] if settings.exact else D[r])
    if settings.anchor > 0.0:
        value += add_squared(f, a, settings.anchor, G)
    return value, active


@parallel_kernel
def weighted_dcg_lists(step, settings, batch, scores, G, report):
    """Top-N-Rank's objective for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    for n in prange(batch.users.size):
        lo, hi = batch.first[n], batch.offsets[n + 1]
        report[n] = 0.0
        if hi > lo:
            cut = annealed(settings.n, hi - lo, settings.anneal, batch.progress)
            report[n, 0], report[n, 1] = _weighted_dcg(
                step, settings, cut, scores[lo:hi], batch.gains[lo:hi], batch.weights[lo:hi], G[:, lo:hi]
            )


@parallel_kernel
def squared_lists(batch, scores, G, report):
    """The squared objective for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    for n in prange(batch.users.size):
        lo, hi = batch.first[n], batch.offsets[n + 1]
        report[n, 0] = 0.0
        report[n, 1] = hi - lo
        if hi > lo:
            G[:, lo:hi] = 0.0
            report[n, 0] = add_squared(scores[lo:hi], batch.gains[lo:hi], 1.0, G[:, lo:hi])
