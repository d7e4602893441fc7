"""Objectives over a batch of lists, parallel over users (references: objectives/).

A trap of Numba here and in the other kernels: inside a `prange`, a direct write to an array that came in a tuple is
lost. What a parallel loop writes itself comes as an argument of its own.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels._jit import kernel, parallel_kernel, prange
from topnrank.kernels.ranks import ranks_backward, ranks_forward, step_slope, step_value
from topnrank.kernels.sorting import descending_order

FAINT = 1e-8
"""As in objectives/topnrank.py: fainter gradients are rounding and are not blown up to the budget."""


class DCGSettings(NamedTuple):
    """The fields of `objectives.WeightedDCG`, but for its step function, as numbers."""

    n: float
    truncate: bool
    exact: bool
    discount: float
    budget: float
    anchor: float


@kernel
def _gain_and_slope(step, settings, R, gain):
    """Loss of one item at smooth rank R, and its slope c (eq. 9)."""
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
    x = settings.n - R
    H = step_value(step, x)
    return -gain * H * D, gain * (step_slope(step, x) * D + H * fall)


@kernel
def _squared(f, a, weight, G_user, G_item):
    """Adds the squared term on centred scores and gains to both gradients; returns its value."""
    shift = 0.0
    for i in range(f.size):
        shift += f[i] - a[i]
    shift /= f.size
    value = 0.0
    for i in range(f.size):
        z = f[i] - a[i] - shift
        value += z * z
        G_user[i] += weight * z
        G_item[i] += weight * z
    return 0.5 * weight * value


@kernel
def _weighted_dcg(step, settings, f, a, G_user, G_item):
    """One list: sort, ranks, slopes, gradients; returns the loss and the number of items with R < N."""
    m = f.size
    order = descending_order(f)
    work = np.empty((7, m))
    g, e, R, D, c, X, ones = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    ones[:] = 1.0
    for r in range(m):
        g[r] = f[order[r]]
    ranks_forward(step, g, ones, e, R, D)
    value, active = 0.0, 0
    for r in range(m):
        loss, c[r] = _gain_and_slope(step, settings, R[r], a[order[r]])
        value += loss
        active += R[r] < settings.n
    ranks_backward(step, g, c, e, X)
    mass, own_mass, gains = 0.0, 0.0, 0.0
    for r in range(m):
        D[r] = -c[r] * D[r]
        X[r] += D[r]
        mass += abs(X[r])
        own_mass += abs(D[r])
        gains += abs(a[r])
    if not settings.exact:
        mass = max(mass, own_mass)
    scale = 1.0
    if settings.budget > 0.0 and mass > FAINT * gains:
        scale = settings.budget * min(float(m), settings.n) / mass
    for r in range(m):
        G_user[order[r]] = scale * X[r]
        G_item[order[r]] = scale * (X[r] if settings.exact else D[r])
    if settings.anchor > 0.0:
        value += _squared(f, a, settings.anchor, G_user, G_item)
    return value, active


@parallel_kernel
def weighted_dcg_lists(step, settings, batch, scores, G, report):
    """Top-N-Rank's objective for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    for n in prange(batch.users.size):
        lo, hi = batch.offsets[n], batch.offsets[n + 1]
        report[n] = 0.0
        if hi > lo:
            report[n, 0], report[n, 1] = _weighted_dcg(
                step, settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi]
            )


@parallel_kernel
def squared_lists(batch, scores, G, report):
    """The squared objective for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    for n in prange(batch.users.size):
        lo, hi = batch.offsets[n], batch.offsets[n + 1]
        report[n, 0] = 0.0
        report[n, 1] = hi - lo
        if hi > lo:
            G[:, lo:hi] = 0.0
            report[n, 0] = _squared(scores[lo:hi], batch.gains[lo:hi], 1.0, G[0, lo:hi], G[1, lo:hi])
