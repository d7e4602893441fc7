"""Truncated MRR, MAP and AUC over a batch of lists, in O(m log m) each (reference: losses/truncated/reference.py).

All is done on the list sorted by descending score: ranks forward, the metric's slopes, ranks backward. AUC's hinge runs
along the same order with two pointers, negatives shifted by the margin; its sums only ever grow, so nothing cancels.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.sorting import descending_order
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._ranks_kernel import ranks_backward, ranks_forward
from topnrank.losses._shaping_kernel import add_squared, annealed_n, gradient_budget_scale


class TruncatedSettings(NamedTuple):
    """The fields of `TruncatedMRR`, `TruncatedMAP` and `TruncatedAUC`, but for the step function, as numbers."""

    n: float
    truncate: bool
    gradient_budget: float
    squared_weight: float
    anneal_n: float
    tau: float
    """Of MRR; ignored by the others"""
    margin: float
    """Of AUC; ignored by the others"""


class Sorted(NamedTuple):
    """One list in descending order of scores, each array of shape (m,)."""

    order: Int64Array
    f: Float64Array
    y: Float64Array
    """1 for positives, 0 for the rest"""
    e: Float64Array
    """Scratch of the rank engine"""
    R: Float64Array
    D: Float64Array
    c: Float64Array
    """dL/dR, 0 at first"""
    rest: Float64Array
    """The part of the gradient that does not pass through R, 0 at first"""
    X: Float64Array


@kernel
def _sorted(step, f, a):
    """The list in order, with its smooth ranks."""
    order = descending_order(f)
    work = np.zeros((8, f.size))
    s = Sorted(order, work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7])
    ones = np.ones(f.size)
    for r in range(f.size):
        s.f[r] = f[order[r]]
        s.y[r] = 1.0 if a[order[r]] > 0.0 else 0.0
    ranks_forward(step, s.f, ones, s.e, s.R, s.D, np.inf)
    return s


@kernel
def _gate(settings, cut, R):
    """T(R) and its slope."""
    if not settings.truncate:
        return 1.0, 0.0
    if cut <= R:
        return 0.0, 0.0
    return (cut - R) / cut, -1.0 / cut


@kernel
def _finish(step, settings, s, f, a, G):
    """From slopes to gradients: ranks backward, budget, squared term; returns the term's value and the items with R < N."""
    m = f.size
    ranks_backward(step, s.f, s.c, s.e, s.X, s.f.size)
    mass, active = 0.0, 0
    for r in range(m):
        s.X[r] += s.rest[r] - s.c[r] * s.D[r]
        mass += abs(s.X[r])
        active += s.R[r] < settings.n
    scale = gradient_budget_scale(settings, m, mass, 1.0)
    for r in range(m):
        G[0, s.order[r]] = scale * s.X[r]
        G[1, s.order[r]] = scale * s.X[r]
    value = 0.0
    if settings.squared_weight > 0.0:
        value = add_squared(f, a, settings.squared_weight, G)
    return value, active


@kernel
def _mrr_slopes(settings, cut, s):
    """Writes c; returns the loss - T(R*) / (1 + R*)."""
    least, positives = np.inf, 0
    for r in range(s.f.size):
        if s.y[r] > 0.0:
            least = min(least, s.R[r])
            positives += 1
    if positives == 0:
        return 0.0
    total = 0.0
    for r in range(s.f.size):
        if s.y[r] > 0.0:
            s.c[r] = np.exp(-(s.R[r] - least) / settings.tau)
            total += s.c[r]
    first = least - settings.tau * np.log(total / positives)
    T, T_slope = _gate(settings, cut, first)
    slope = -T_slope / (1.0 + first) + T / (1.0 + first) ** 2
    for r in range(s.f.size):
        s.c[r] *= slope / total
    return -T / (1.0 + first)


@kernel
def _map_slopes(step, settings, cut, s):
    """Writes c and rest; returns the loss."""
    m = s.f.size
    positives = s.y.sum()
    if positives == 0.0:
        return 0.0
    work = np.zeros((3, m))
    R_plus, D_plus, d = work[0], work[1], work[2]
    ranks_forward(step, s.f, s.y, s.e, R_plus, D_plus, np.inf)
    share = 1.0 / min(positives, settings.n)
    value = 0.0
    for r in range(m):
        if s.y[r] > 0.0:
            T, T_slope = _gate(settings, cut, s.R[r])
            precision = (1.0 + R_plus[r]) / (1.0 + s.R[r])
            value -= share * T * precision
            s.c[r] = share * precision * (T / (1.0 + s.R[r]) - T_slope)
            d[r] = -share * T / (1.0 + s.R[r])
    ranks_backward(step, s.f, d, s.e, s.rest, s.f.size)
    for r in range(m):
        s.rest[r] = s.y[r] * s.rest[r] - d[r] * D_plus[r]
    return value


@kernel
def _auc_slopes(settings, cut, s):
    """Writes c and rest; returns the loss. A pair acts where margin + (f_j - f_i) > 0, f_j negative, f_i positive."""
    m = s.f.size
    positives = s.y.sum()
    pairs = positives * (m - positives)
    if pairs == 0.0:
        return 0.0
    value, S, felt = 0.0, 0.0, 0
    last, low = m, m - 1  # the previous negative; the lowest item not yet within reach
    for r in range(m - 1, -1, -1):  # S_j grows from the lowest negative to the highest
        if s.y[r] > 0.0:
            continue
        if last < m:
            S += felt * (s.f[r] - s.f[last])
        while low >= 0 and settings.margin + (s.f[r] - s.f[low]) > 0.0:
            if s.y[low] > 0.0:
                S += settings.margin + (s.f[r] - s.f[low])
                felt += 1
            low -= 1
        T, T_slope = _gate(settings, cut, s.R[r])
        value += T * S / pairs
        s.c[r] = T_slope * S / pairs
        s.rest[r] = T * felt / pairs
        last = r
    force, high = 0.0, 0
    for r in range(m):  # the force on positives grows from the highest to the lowest
        if s.y[r] == 0.0:
            continue
        while high < m and settings.margin + (s.f[high] - s.f[r]) > 0.0:
            if s.y[high] == 0.0:
                force += _gate(settings, cut, s.R[high])[0]
            high += 1
        s.rest[r] = -force / pairs
    return value


@kernel
def _mrr(step, settings, cut, f, a, G):
    """One list; returns the loss and the number of items with R < N."""
    s = _sorted(step, f, a)
    value = _mrr_slopes(settings, cut, s)
    squared, active = _finish(step, settings, s, f, a, G)
    return value + squared, active


@kernel
def _map(step, settings, cut, f, a, G):
    """One list; returns the loss and the number of items with R < N."""
    s = _sorted(step, f, a)
    value = _map_slopes(step, settings, cut, s)
    squared, active = _finish(step, settings, s, f, a, G)
    return value + squared, active


@kernel
def _auc(step, settings, cut, f, a, G):
    """One list; returns the loss and the number of items with R < N."""
    s = _sorted(step, f, a)
    value = _auc_slopes(settings, cut, s)
    squared, active = _finish(step, settings, s, f, a, G)
    return value + squared, active


@parallel_kernel
def mrr_lists(step, settings, batch, scores, G, report):
    """Truncated MRR for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n] = 0.0
            if hi > lo:
                cut = annealed_n(settings.n, hi - lo, settings.anneal_n, batch.progress)
                report[n, 0], report[n, 1] = _mrr(step, settings, cut, scores[lo:hi], batch.gains[lo:hi], G[:, lo:hi])


@parallel_kernel
def map_lists(step, settings, batch, scores, G, report):
    """Truncated MAP for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n] = 0.0
            if hi > lo:
                cut = annealed_n(settings.n, hi - lo, settings.anneal_n, batch.progress)
                report[n, 0], report[n, 1] = _map(step, settings, cut, scores[lo:hi], batch.gains[lo:hi], G[:, lo:hi])


@parallel_kernel
def auc_lists(step, settings, batch, scores, G, report):
    """Truncated AUC for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n] = 0.0
            if hi > lo:
                cut = annealed_n(settings.n, hi - lo, settings.anneal_n, batch.progress)
                report[n, 0], report[n, 1] = _auc(step, settings, cut, scores[lo:hi], batch.gains[lo:hi], G[:, lo:hi])
