"""The Plackett-Luce likelihood over a batch of lists (reference: losses/listpmf/reference.py).

O(m) after one sort by gains, which is done again at each visit, O(m log m): gains do not move, but lists may hold
sampled items, and shuffled ties do. From the bottom of the order running sums B of e^s, from the top those of 1/B.

Sums of e^s are kept as a largest score M and a sum S of e^(s - M) that is at least 1. M is one of the scores, so
exponents are differences of scores, never above 0: nothing overflows, and scores of 1e6 lose no digits to a logarithm.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.random import uniform
from topnrank.kernels.sorting import descending_order
from topnrank.kernels.work_stealing import claim, new_work
from topnrank.losses._links_kernel import apply_link

BRESLOW, SHUFFLED, FIXED = 0, 1, 2
"""`ties` as numbers."""


class PlackettLuceSettings(NamedTuple):
    """The fields of `PlackettLuce` as numbers."""

    ties: int
    sigmoid: bool
    """Whether the link is "sigmoid"."""
    normalize: bool


@kernel
def _shuffled_order(key, a):
    """(m,) positions by gain, the highest first; equal gains by draw, the lowest first."""
    m = a.size
    draws, shuffled = np.empty(m), np.empty(m)
    for i in range(m):
        draws[i] = -uniform(key, np.uint64(i))
    by_draw = descending_order(draws)
    for i in range(m):
        shuffled[i] = a[by_draw[i]]
    order = descending_order(shuffled)  # stable: equal gains stay in the order of their draws
    for r in range(m):
        order[r] = by_draw[order[r]]
    return order


@kernel
def _sums_from_below(s, order, M, S):
    """Writes M_r and S_r: the sum of e^s over places r and below is S_r e^{M_r}."""
    top, total = s[order[-1]], 0.0
    for r in range(order.size - 1, -1, -1):
        here = s[order[r]]
        if here > top:
            total = total * np.exp(top - here) + 1.0
            top = here
        else:
            total += np.exp(here - top)
        M[r], S[r] = top, total


@kernel
def _plackett_luce(settings, key, f, a, G_user, G_item):
    """One list; returns the loss. Items of one block share a sum B; without Breslow's rule each item is a block."""
    m = f.size
    order = _shuffled_order(key, a) if settings.ties == SHUFFLED else descending_order(a)
    work = np.empty((4, m))
    s, slope, M, S = work[0], work[1], work[2], work[3]
    apply_link(settings.sigmoid, f, s, slope)
    _sums_from_below(s, order, M, S)
    share = 1.0 / m if settings.normalize else 1.0
    value = 0.0
    inverses = 0.0  # sum of 1/B over the items so far, times the B of the block at hand: at most m
    start, before = 0, 0
    while start < m:
        end = start + 1
        while settings.ties == BRESLOW and end < m and a[order[end]] == a[order[start]]:
            end += 1
        inverses *= np.exp(M[start] - M[before]) * (S[start] / S[before])
        inverses += end - start
        for r in range(start, end):
            i = order[r]
            value += (M[start] - s[i]) + np.log(S[start])
            G_user[i] = share * slope[i] * (inverses * (np.exp(s[i] - M[start]) / S[start]) - 1.0)
            G_item[i] = G_user[i]
        start, before = end, start
    return share * value


@parallel_kernel
def listpmf_lists(settings, batch, scores, G, report):
    """The Plackett-Luce loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _plackett_luce(
                    settings, batch.keys[n], scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi]
                )
