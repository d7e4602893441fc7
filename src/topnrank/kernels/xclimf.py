"""xCLiMF over a batch of lists (reference: objectives/xclimf.py).

O(m^2) per list, each pair of items with q > 0 once: one exp and two logarithms. An exponential sum exists for each pair of
rating levels, but 1 / (1 - q + t) has its pole at t = -(1 - q), close to 0 for high grades, and would need some 40 terms.

For f_i >= f_j and t = e^{-(f_i - f_j)} in [0, 1]:

    1 - q_i g(f_i - f_j) = (1 - q_i + t) / (1 + t)              1 - q_j g(f_j - f_i) = (1 + (1 - q_j) t) / (1 + t)

so the force between them is q_i q_j t / (1 + t) [1 / (1 - q_i + t) - 1 / (1 + (1 - q_j) t)], equal and opposite.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels._jit import kernel, parallel_kernel, prange

LARGEST = 1.0 - 2.0**-20
"""As in objectives/xclimf.py: gains above this count as this."""


class XCLiMFSettings(NamedTuple):
    """The field of `objectives.xclimf.XCLiMFBound`."""

    mean_pairs: bool


@kernel
def _pair(gap, q_above, q_below):
    """Loss of a pair of which the first stands `gap` >= 0 above, and the force that raises the lower one."""
    t = np.exp(-gap)
    share = 1.0 / (1.0 + t)  # g(gap)
    loss = -q_below * np.log1p(-q_above * share) - q_above * np.log1p(-q_below * t * share)
    force = q_above * q_below * t * share * (1.0 / (1.0 - q_above + t) - 1.0 / (1.0 + (1.0 - q_below) * t))
    return loss, force


@kernel
def _rows_with_gain(f, a):
    """Positions, scores and clipped gains of the rows that play a part."""
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
    slope = np.zeros(m)
    value = 0.0
    share = 1.0 / max(m - 1, 1) if settings.mean_pairs else 1.0
    for j in range(m):
        t = np.exp(-abs(s[j]))
        value += q[j] * (max(-s[j], 0.0) + np.log1p(t))
        slope[j] -= q[j] * (t if s[j] > 0.0 else 1.0) / (1.0 + t)
        for k in range(j):
            gap = s[k] - s[j]
            if gap >= 0.0:
                loss, force = _pair(gap, q[k], q[j])
            else:
                loss, force = _pair(-gap, q[j], q[k])
                force = -force
            value += share * loss
            slope[j] -= share * force
            slope[k] += share * force
    for j in range(m):
        G_user[rows[j]] = slope[j]
        G_item[rows[j]] = slope[j]
    return value


@parallel_kernel
def xclimf_lists(settings, batch, scores, G, report):
    """xCLiMF's bound for every list of the batch; G and report as in `Lists`."""
    for n in prange(batch.users.size):
        lo, hi = batch.first[n], batch.offsets[n + 1]
        report[n, 0] = 0.0
        report[n, 1] = hi - lo
        if hi > lo:
            report[n, 0] = _xclimf(settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
