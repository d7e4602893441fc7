"""Sorting one list by descending score, stable, hence deterministic under ties.

Scores of a list are spread over a range, so each falls into one of 2 m equal parts of it by one multiplication: a counting
sort by parts, then an insertion sort of what shares a part. That is O(m) unless the scores crowd into few parts, which the
counts show beforehand; then, and where the range is not finite, a merge sort is used.
"""

import numpy as np

from topnrank.kernels.jit import kernel

RUN = 16
"""Length of the runs that are sorted by insertion."""
PARTS = 2
"""Parts for each item."""
CROWDED = 64
"""Sum of squared counts per item from which merging runs is cheaper than insertion; 1.5 for scores spread evenly."""


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
def _merge_sort(f, g, order):
    """`sort_descending` in m log m steps, whatever the scores are."""
    m = f.size
    source, target = order, np.empty(m, np.int32)
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
    for r in range(m):
        order[r] = source[r]
        g[r] = f[source[r]]


@kernel
def _count_parts(f, part, starts):
    """The part of each score, the highest being 0, and how many scores are in the parts before; False where crowded."""
    m = f.size
    low, high = f[0], f[0]
    for i in range(m):
        low, high = min(low, f[i]), max(high, f[i])
    width = high - low
    if not (width > 0.0 and width < np.inf):
        return False
    scale = (PARTS * m - 1) / width
    if not scale < np.inf:
        return False
    for i in range(m):
        place = (high - f[i]) * scale
        part[i] = np.int32(place) if place < PARTS * m else 0  # NaN must not index outside
    starts[:] = 0
    for i in range(m):
        starts[part[i] + 1] += 1
    before, squares = 0, 0
    for p in range(1, PARTS * m + 1):
        squares += np.int64(starts[p]) * starts[p]
        before += starts[p]
        starts[p] = before
    return squares <= CROWDED * m


@kernel
def _insert(g, order):
    """Insertion sort of the scores g, descending, and of their positions."""
    for i in range(1, g.size):
        x = g[i]
        if g[i - 1] < x:
            moving, place = order[i], i
            while place > 0 and g[place - 1] < x:
                g[place], order[place] = g[place - 1], order[place - 1]
                place -= 1
            g[place], order[place] = x, moving


@kernel
def sort_descending(f, g, order):
    """g gets the scores f from the highest to the lowest, `order` (int32) their positions, equal ones in their own order."""
    m = f.size
    if m <= RUN:
        for i in range(m):
            g[i], order[i] = f[i], i
        _insert(g, order)
        return
    scratch = np.empty((1 + PARTS) * m + 1, np.int32)
    part, starts = scratch[:m], scratch[m:]
    if not _count_parts(f, part, starts):
        _merge_sort(f, g, order)
        return
    for i in range(m):
        place = starts[part[i]]
        starts[part[i]] = place + 1
        g[place], order[place] = f[i], i
    _insert(g, order)


@kernel
def descending_order(f):
    """(m,) positions of the scores f from the highest to the lowest, equal ones in their own order."""
    order = np.empty(f.size, np.int32)
    sort_descending(f, np.empty(f.size), order)
    return order
