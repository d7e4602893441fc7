"""Top-N-Rank's weighted DCG over a batch of lists, parallel over users (reference: losses/weighted_dcg/reference.py).

A trap of Numba, here and in the other kernels: inside a `prange`, a direct write to an array that came in a tuple is
lost. Pass the arrays that a parallel loop writes as arguments of their own.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array, Int32Array
from topnrank.kernels.elementary import logarithms
from topnrank.kernels.jit import kernel, parallel_kernel, prange, summing_kernel
from topnrank.kernels.sorting import sort_descending
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._ranks_kernel import RELU, gates, ranks_backward, ranks_forward
from topnrank.losses._shaping_kernel import add_squared, annealed_n, gradient_budget_scale


class DCGSettings(NamedTuple):
    """The fields of `WeightedDCG`, but for its step function, as numbers."""

    n: float
    truncate: bool
    exact: bool
    discount: float
    gradient_budget: float
    squared_weight: float
    anneal_n: float
    length_power: float


MAX_STEPS = 30
"""Newton steps toward the cut; five or six are usual, and stopping early only means sorting more."""
SLACK = 1e-12
CLOSED = 40.0
"""The sigmoid's gate at R = N + 40 / C is e^-40: such items count as cut."""


class Sorted(NamedTuple):
    """One list from the highest score to the lowest; each array but `order` is a row of one piece of memory, (m,)."""

    order: Int32Array
    f: Float64Array
    gains: Float64Array
    """Divided by a power of the number of positives with `length_power`"""
    w: Float64Array
    """Weights in the ranks"""
    e: Float64Array
    """Scratch of the rank engine"""
    R: Float64Array
    D: Float64Array
    c: Float64Array
    """dL/dR"""
    X: Float64Array


@summing_kernel
def weighted_sums(w, f):
    """Sums of w, w f and w |f|."""
    mass, when, size = 0.0, 0.0, 0.0
    for i in range(f.size):
        mass += w[i]
        when += w[i] * f[i]
        size += w[i] * abs(f[i])
    return mass, when, size


@kernel
def _in_reach(f, w, cut, kept):
    """Writes the positions of the items that ReLU's ranks can put before the cut to `kept`; returns how many.

    R at a score t is sum_j w_j (f_j - t)_+, convex and falling. Newton steps toward R = cut, t = (sum w f - cut) / sum w
    over the items above the last t, come from below: an item they drop has no loss and no slope, and needs no sorting. A
    little slack keeps rounding from dropping more.
    """
    mass, when, size = weighted_sums(w, f)
    slack, n = SLACK * size, 0
    threshold = (when - cut - slack) / mass
    if not abs(threshold) < np.inf:
        return f.size
    for i in range(f.size):
        kept[n] = i
        n += f[i] > threshold
    for _ in range(MAX_STEPS):
        mass, when, left = 0.0, 0.0, 0
        for t in range(n):
            mass += w[kept[t]]
            when += w[kept[t]] * f[kept[t]]
        threshold = (when - cut - slack) / mass
        for t in range(n):
            i = kept[t]
            kept[left] = i
            left += f[i] > threshold
        if left == n:
            break
        n = left
    return n


@kernel
def _sorted(step, settings, cut, f, a, weights):
    """The list in order; with ReLU and the gate only its items in reach of the cut."""
    m = f.size
    order = np.empty(m, np.int32)
    if settings.truncate and step.kind == RELU:
        order = order[: _in_reach(f, weights, cut, order)]
    work = np.empty((8, order.size))
    s = Sorted(order, work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7])
    if order.size < m:
        for r in range(order.size):
            s.e[r] = f[order[r]]
            s.c[r] = order[r]
        sort_descending(s.e, s.f, order)
        for r in range(order.size):
            order[r] = np.int32(s.c[order[r]])
    else:
        sort_descending(f, s.f, order)
    share = 1.0
    if settings.length_power > 0.0:
        share = max(np.sum(a > 0.0), 1) ** -settings.length_power
    for r in range(order.size):
        s.gains[r] = share * a[order[r]]
        s.w[r] = weights[order[r]]
    return s


@kernel
def _discounts(p, y, value, fall, scratch):
    """The discount D(R) at y = R + 2 and its fall -D'(R) = 1 / (y ln^p y); the usual powers without `**`."""
    logarithms(y, value, scratch)
    if p == 2.0:
        for r in range(y.size):
            value[r] = 1.0 / value[r]
            fall[r] = value[r] * value[r] / y[r]
    elif p == -1.0:
        for r in range(y.size):
            fall[r] = value[r] / y[r]
            value[r] = -0.5 * value[r] * value[r]
    elif p == 0.0:
        for r in range(y.size):
            fall[r] = 1.0 / y[r]
            value[r] = -value[r]
    else:
        for r in range(y.size):
            log = value[r]
            fall[r] = 1.0 / (y[r] * log**p)
            value[r] = -np.log(log) if p == 1.0 else log ** (1.0 - p) / (p - 1.0)


@kernel
def _slopes(step, settings, cut, s, m):
    """Writes c, the slope of the loss of the first m items at their smooth ranks (eq. 9), else 0; returns the loss."""
    value = 0.0
    work = np.empty((4, m))
    y, D, H, slope = work[0], work[1], work[2], work[3]
    for r in range(m):
        y[r] = s.R[r] + 2.0
    _discounts(settings.discount, y, D, s.c[:m], H)
    if settings.truncate:
        gates(step, cut, s.R[:m], H, slope)
        for r in range(m):
            s.c[r] = slope[r] * D[r] + H[r] * s.c[r]
            D[r] *= H[r]
    for r in range(m):
        s.c[r] *= s.gains[r]
        value -= s.gains[r] * D[r]
    s.c[m:] = 0.0
    return value


@kernel
def _mass(settings, s, a):
    """Factor that brings the gradients to their budget."""
    mass, own_mass, gains = 0.0, 0.0, 0.0
    for r in range(s.f.size):
        mass += abs(s.X[r])
        own_mass += abs(s.D[r])
    for i in range(a.size):
        gains += abs(a[i])
    return gradient_budget_scale(settings, a.size, mass if settings.exact else max(mass, own_mass), gains)


@kernel
def _weighted_dcg(step, settings, cut, f, a, weights, G):
    """One list: sort, ranks, slopes, gradients; returns the loss and the number of items with R < N."""
    s = _sorted(step, settings, cut, f, a, weights)
    limit = cut + CLOSED / step.steepness if settings.truncate else np.inf
    live = ranks_forward(step, s.f, s.w, s.e, s.R, s.D, limit)
    value, active = _slopes(step, settings, cut, s, live), 0
    ranks_backward(step, s.f, s.c, s.e, s.X, live)
    for r in range(s.f.size):
        s.D[r] = -s.c[r] * s.D[r]
        s.X[r] = s.w[r] * s.X[r] + s.D[r]
        active += s.R[r] < settings.n
    scale = _mass(settings, s, a) if settings.gradient_budget > 0.0 else 1.0
    item = s.X if settings.exact else s.D
    if s.f.size < f.size:
        G[:] = 0.0
    for r in range(s.f.size):
        G[0, s.order[r]] = scale * s.X[r]
        G[1, s.order[r]] = scale * item[r]
    if settings.squared_weight > 0.0:
        value += add_squared(f, a, settings.squared_weight, G)
    return value, active


@parallel_kernel
def weighted_dcg_lists(step, settings, batch, scores, G, report):
    """Top-N-Rank's loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n] = 0.0
            if hi > lo:
                cut = annealed_n(settings.n, hi - lo, settings.anneal_n, batch.progress)
                report[n, 0], report[n, 1] = _weighted_dcg(
                    step, settings, cut, scores[lo:hi], batch.gains[lo:hi], batch.weights[lo:hi], G[:, lo:hi]
                )
