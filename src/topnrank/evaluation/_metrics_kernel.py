"""Expected ranking metrics of many users' lists; tied scores stand in random order.

Only *labeled* candidates (the user's test rows) can add to a metric, so a list is stored as its labeled candidates,
best first, each with the number of candidates above it and in its tie group. The expected value of every metric follows
from that exactly, whether the list holds ten rated items or a whole catalog, and nothing but the labels is sorted.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.top_items import MAXIMA, score_reached
from topnrank.kernels.vectors import MASK, at_least, count, lowest

WHOLE = np.iinfo(np.int64).max
"""The cut-off of a metric over the whole list."""

HIT, FIRST, FOUND, PRECISIONS, DCG, GRADED_DCG, ERR = range(7)
"""Columns of the sums that `measure` returns; `_add_group` defines them."""

_N_SUMS = 7
_CHUNK = 8 * MASK
_SHIFT, _LAST = 2**32, 2**31 - 1
"""Factor that puts a score above its row number in a sort key, and the key of NaN, behind every score."""


class RankedLists(NamedTuple):
    """Labeled candidates of `n_users` lists (CSR), best score first within each list."""

    indptr: Int64Array
    """(n_users + 1,)"""
    above: Int64Array
    """(n_rows,) candidates of strictly higher score; the list's length for a label that is no candidate."""
    tied: Int64Array
    """(n_rows,) candidates of equal score, itself included."""
    relevant: Float64Array
    """(n_rows,) 1.0 or 0.0."""
    gain: Float64Array
    """(n_rows,) graded gain."""
    stop: Float64Array
    """(n_rows,) chance that the reader of ERR stops at this item; unlabeled candidates: 0."""
    length: Int64Array
    """(n_users,) candidates of each list."""


class Group(NamedTuple):
    """The labels of one tie group, and what stands above it."""

    above: int
    size: int
    relevant: float
    gain: float
    found: float
    """Relevant items above the group."""
    reading: float
    """Chance that ERR's reader gets to it."""


@kernel
def stop_chances(stop: Float64Array, size: int, places: int) -> tuple[Float64Array, float]:
    """Chance that ERR's reader stops at each of the first `places` places of a tie group, and that the reader goes past it.

    `passed[j]` is the mean, over all j of the group's labeled items, of their product of (1 - stop);
    `standing[j]` the chance that j of them stand on the places so far (the other `size - n` items never stop the reader).
    """
    n = stop.size
    passed = np.zeros(n + 1)
    passed[0] = 1.0
    for x in range(n):
        for j in range(x + 1, 0, -1):
            passed[j] = ((x + 1 - j) * passed[j] + j * (1.0 - stop[x]) * passed[j - 1]) / (x + 1)
    standing = np.zeros(n + 1)
    standing[0] = 1.0
    chances = np.zeros(places)
    for place in range(places):
        left = size - place
        for j in range(min(place, n - 1), -1, -1):
            step = standing[j] * (n - j) / left
            chances[place] += step * (passed[j] - passed[j + 1])
            standing[j + 1] += step
            standing[j] = standing[j] * (left - n + j) / left
    return chances, passed[n]


@kernel
def _add_group(group: Group, stop: Float64Array, cuts: Int64Array, sums: Float64Array) -> float:
    """Adds one tie group to the bucket of the first cut-off that reaches each rank; returns the chance to read on."""
    places = min(group.size, cuts[-1] - group.above)
    stops, past = stop_chances(stop, group.size, places)
    share = group.relevant / group.size
    rise = (group.relevant - 1.0) / (group.size - 1) if group.size > 1 else 0.0
    first = share if group.found == 0 else 0.0  # chance that the list's first relevant item stands on this place
    bucket = 0
    for place in range(places):
        rank = group.above + place + 1
        while cuts[bucket] < rank:
            bucket += 1
        discount = 1.0 / np.log2(rank + 1.0)
        sums[bucket, HIT] += first
        sums[bucket, FIRST] += first / rank
        sums[bucket, FOUND] += share
        # McSherry & Najork 2008: relevant items expected down to this place, given that it holds one
        sums[bucket, PRECISIONS] += share * (group.found + place * rise + 1.0) / rank
        sums[bucket, DCG] += share * discount
        sums[bucket, GRADED_DCG] += group.gain / group.size * discount
        sums[bucket, ERR] += group.reading * stops[place] / rank
        if place + 1 < places:
            first *= (group.size - place - group.relevant) / (group.size - place - 1)
    reading_on: float = group.reading * past
    return reading_on


@kernel
def _measure_list(lists: RankedLists, user: int, cuts: Int64Array, sums: Float64Array) -> float:
    """Fills `sums` (n_cuts, 7) of one list and returns its AUC (NaN without a relevant or an irrelevant candidate)."""
    start, end, length = lists.indptr[user], lists.indptr[user + 1], lists.length[user]
    found, reading, lost = 0.0, 1.0, 0.0
    while start < end and lists.above[start] < length:
        above, size = lists.above[start], lists.tied[start]
        relevant, gain, after = 0.0, 0.0, start
        while after < end and lists.above[after] == above:
            relevant += lists.relevant[after]
            gain += lists.gain[after]
            after += 1
        lost += relevant * (above - found + 0.5 * (size - relevant))
        if above < cuts[-1]:
            group = Group(above, size, relevant, gain, found, reading)
            reading = _add_group(group, lists.stop[start:after], cuts, sums)
        found += relevant
        start = after
    irrelevant, wanted = length - found, found
    for row in range(start, end):  # not candidates: they count as below all candidates
        wanted += lists.relevant[row]
        lost += lists.relevant[row] * irrelevant
    for bucket in range(1, cuts.size):
        for column in range(_N_SUMS):
            sums[bucket, column] += sums[bucket - 1, column]
    return 1.0 - lost / (wanted * irrelevant) if wanted * irrelevant > 0 else np.nan


@parallel_kernel
def _measure(lists: RankedLists, cuts: Int64Array, sums: Float64Array, auc: Float64Array) -> None:
    for user in prange(auc.size):
        auc[user] = _measure_list(lists, user, cuts, sums[user])


def measure(lists: RankedLists, cuts: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Sums (n_users, n_cuts, 7) up to each of the ascending `cuts`, and the AUC (n_users,) of every list."""
    sums, auc = np.zeros((lists.length.size, cuts.size, _N_SUMS)), np.empty(lists.length.size)
    _measure(lists, cuts, sums, auc)
    return sums, auc


@kernel
def _order_list(scores, first, order):
    """`order` becomes the rows from `first` on by falling score, equal ones in their own order, NaN last."""
    bits = (scores + np.float32(0.0)).view(np.int32)  # the sum makes one zero of the two
    keys = np.empty(scores.size, np.int64)
    for row in range(scores.size):
        # the bits of a float rise with it, but fall among the negative ones
        rising = np.int64(bits[row]) if bits[row] >= 0 else np.int64(bits[row] ^ np.int32(0x7FFFFFFF))
        keys[row] = (_LAST if np.isnan(scores[row]) else -rising) * _SHIFT + row
    keys.sort()
    for row in range(scores.size):
        order[row] = first + keys[row] % _SHIFT


@parallel_kernel
def _order_lists(scores: Float32Array, indptr: Int64Array, order: Int64Array) -> None:
    for user in prange(indptr.size - 1):
        first, end = indptr[user], indptr[user + 1]
        _order_list(scores[first:end], first, order[first:end])


def order_lists(scores: Float32Array, indptr: Int64Array) -> Int64Array:
    """(n_rows,) the rows of every list (CSR) by falling score, equal ones in their own order, NaN last."""
    order = np.empty(scores.size, np.int64)
    _order_lists(scores, indptr, order)
    return order


@kernel
def _levels_below(levels: Float32Array, score: float, known: int) -> int:
    """Position of the first of the `known` falling levels that does not exceed `score`."""
    low, high = 0, known
    while low < high:
        middle = (low + high) // 2
        if levels[middle] > score:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _count_one(score, levels, reached, above, tied):
    """Counts a candidate on its level, and above the first level below it; summed over the levels in the end."""
    level = _levels_below(levels, score, reached)
    if levels[level] == score:
        tied[level] += 1
        level += 1
    if level < levels.size:
        above[level] += 1


@kernel
def _still_reached(above, reached, depth):
    """How many of the first levels have fewer than `depth` candidates above them so far."""
    total = 0
    for level in range(reached):
        total += above[level]
        if total >= depth:
            return level
    return reached


@kernel
def _count(candidates, levels, depth, above, tied):
    """Counts the candidates above and on each of the falling `levels`; returns how many candidates there are.

    A level with `depth` candidates above it is no longer needed: one vector comparison rejects most candidates.
    """
    above[:], tied[:] = 0, 0
    floor = score_reached(candidates, depth, np.empty(MAXIMA, np.float32))
    reached, length, item = levels.size, 0, 0  # only the levels before `reached` matter
    while reached > 0 and levels[reached - 1] < floor:
        reached -= 1
    while item + MASK <= candidates.size:
        length += count(at_least(candidates, item, -np.inf))
        mask = at_least(candidates, item, levels[reached - 1]) if reached > 0 else 0
        while mask:
            _count_one(candidates[item + lowest(mask)], levels, reached, above, tied)
            mask &= mask - 1
        item += MASK
        if item % _CHUNK == 0:
            reached = _still_reached(above, reached, depth)
    for score in candidates[item:]:
        length += not np.isnan(score)
        if reached > 0 and score >= levels[reached - 1]:
            _count_one(score, levels, reached, above, tied)
    for level in range(1, levels.size):
        above[level] += above[level - 1]
    for level in range(reached, levels.size):
        above[level] = max(above[level], depth)
    return length


@kernel
def _place(candidates, levels, depth, above, tied):
    """As `_count`; NaN at the end of the levels marks labels that are not candidates."""
    known = 0
    while known < levels.size and not np.isnan(levels[known]):
        known += 1
    length = _count(candidates, levels[:known], depth, above[:known], tied[:known])
    above[known:], tied[known:] = length, 1
    return length


@parallel_kernel
def _place_in_catalog(block, indptr, levels, depth, above, tied, length):
    for user in prange(block.shape[0]):
        start, end = indptr[user], indptr[user + 1]
        length[user] = _place(block[user], levels[start:end], depth, above[start:end], tied[start:end])


def place_in_catalog(
    block: Float32Array, indptr: Int64Array, levels: Float32Array, depth: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Ranks of scores among all items whose score in `block` is not NaN.

    Parameters
    ----------
    block
        (n_users, n_items) scores.
    indptr, levels
        Distinct scores of each user's labels (CSR), falling; NaN, at the end, for one that is not a candidate.
    depth
        For levels with `depth` or more candidates above them the counts are only lower bounds.

    Returns
    -------
    above, tied
        (n_levels,) candidates of higher and of equal score.
    length
        (n_users,) candidates.
    """
    above = np.empty(levels.size, np.int64)
    tied = np.empty(levels.size, np.int64)
    length = np.empty(block.shape[0], np.int64)
    _place_in_catalog(block, indptr, levels, depth, above, tied, length)
    return above, tied, length
