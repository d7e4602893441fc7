"""Sorting one list: short lists are the rule, so runs by insertion, then merges; stable, hence deterministic under ties."""

import numpy as np

from topnrank.kernels._jit import kernel

RUN = 16
"""Length of the runs that are sorted by insertion."""


@kernel
def _sort_run(f, order, lo, hi):
    """Insertion sort of order[lo:hi] by descending f."""
    for i in range(lo + 1, hi):
        moving = order[i]
        place = i
        while place > lo and f[order[place - 1]] < f[moving]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = moving


@kernel
def _merge(f, source, target, lo, mid, hi):
    """Merges source[lo:mid] and source[mid:hi] into target[lo:hi]; of equal scores the left one comes first."""
    left, right = lo, mid
    for place in range(lo, hi):
        if left < mid and (right == hi or f[source[left]] >= f[source[right]]):
            target[place] = source[left]
            left += 1
        else:
            target[place] = source[right]
            right += 1


@kernel
def descending_order(f):
    """(m,) positions of the scores f from the highest to the lowest, equal ones in their own order."""
    m = f.size
    source, target = np.empty(m, np.int64), np.empty(m, np.int64)
    for i in range(m):
        source[i] = i
    for lo in range(0, m, RUN):
        _sort_run(f, source, lo, min(lo + RUN, m))
    width = RUN
    while width < m:
        for lo in range(0, m, 2 * width):
            _merge(f, source, target, lo, min(lo + width, m), min(lo + 2 * width, m))
        source, target = target, source
        width *= 2
    return source
