"""xCLiMF over a batch of lists (reference: losses/xclimf/reference.py).

O(m^2) per list, each pair of items with q > 0 once: one exp and one division. An exponential sum exists for each pair of
rating levels, but 1 / (1 - q + t) has its pole at t = -(1 - q), close to 0 for high grades, and would need some 40 terms.

For f_i >= f_j and t = e^{-(f_i - f_j)} in [0, 1]:

    1 - q_i g(f_i - f_j) = (1 - q_i + t) / (1 + t)              1 - q_j g(f_j - f_i) = (1 + (1 - q_j) t) / (1 + t)

so with X = 1 - q_i + t and Y = 1 + (1 - q_j) t the force between them is q_i q_j t (q_i - q_j t) / ((1 + t) X Y), equal and
opposite. The logarithms of an item's pairs are that of their product, taken when it becomes small.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work

LARGEST = 1.0 - 2.0**-20
"""As in losses/xclimf/reference.py: gains above this count as this."""


class XCLiMFSettings(NamedTuple):
    """The field of `XCLiMFBound`."""

    mean_pairs: bool


@kernel
def _pair(gap, q_above, q_below):
    """For a pair with scores `gap` >= 0 apart: the factors of the lower and of the upper item's product, and the force that
    raises the lower one."""
    t = np.exp(-gap)
    X, Y = 1.0 - q_above + t, 1.0 + (1.0 - q_below) * t
    inverse = 1.0 / ((1.0 + t) * X * Y)
    share = X * Y * inverse  # 1 / (1 + t)
    return X * share, Y * share, q_above * q_below * t * (q_above - q_below * t) * inverse


@kernel
def _multiply(factor, i, products, logs):
    """Multiplies an item's product, and takes its logarithm before it becomes too small."""
    products[i] *= factor
    if products[i] < 1e-280:
        logs[i] += np.log(products[i])
        products[i] = 1.0


@kernel
def _rows_with_gain(f, a):
    """Positions, scores and clipped gains of the rows with a gain above 0."""
    rows, s, q = np.empty(f.size, np.int64), np.empty(f.size), np.empty(f.size)
    m = 0
    for i in range(f.size):
        if a[i] > 0.0:
            rows[m] = i
            s[m] = f[i]
            q[m] = min(a[i], LARGEST)
            m += 1
    return rows[:m], s[:m], q[:m]


@kernel
def _xclimf(settings, f, a, G_user, G_item):
    """One list, pair by pair; returns the loss."""
    for i in range(f.size):
        G_user[i] = 0.0
        G_item[i] = 0.0
    rows, s, q = _rows_with_gain(f, a)
    m = s.size
    if m == 0:
        return 0.0
    work = np.zeros((3, m))
    slope, products, logs = work[0], work[1], work[2]
    for j in range(m):
        products[j] = 1.0
    value = 0.0
    share = 1.0 / max(m - 1, 1) if settings.mean_pairs else 1.0
    for j in range(m):
        t = np.exp(-abs(s[j]))
        value += q[j] * (max(-s[j], 0.0) + np.log1p(t))
        slope[j] -= q[j] * (t if s[j] > 0.0 else 1.0) / (1.0 + t)
        for k in range(j):
            gap = s[k] - s[j]
            if gap >= 0.0:
                of_j, of_k, force = _pair(gap, q[k], q[j])
            else:
                of_k, of_j, force = _pair(-gap, q[j], q[k])
                force = -force
            _multiply(of_j, j, products, logs)
            _multiply(of_k, k, products, logs)
            slope[j] -= share * force
            slope[k] += share * force
    for j in range(m):
        value -= share * q[j] * (logs[j] + np.log(products[j]))
        G_user[rows[j]] = slope[j]
        G_item[rows[j]] = slope[j]
    return value


@parallel_kernel
def xclimf_lists(settings, batch, scores, G, report):
    """xCLiMF's bound for every list of the batch; G and report as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _xclimf(settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
