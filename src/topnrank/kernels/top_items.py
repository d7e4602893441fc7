"""Scores of pairs and blocks, masking of seen items, and the n best items of each row."""

import numpy as np

from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.updates import dot
from topnrank.kernels.vectors import MASK, ROWS, WIDTH, at_least, count, lane_maxima, lowest, multiply

GROUP = 252
"""Users that share one packing of the items; it costs about as much as the scores of 20 users."""
PANELS = 16
"""Panels of `vectors.WIDTH` items that are packed at once: with 64 factors, 64 kB of a core's cache."""

_PER_PART, MAXIMA = 20, 4 * MASK
"""List positions for each MASK lanes of `score_reached`, and the largest number of lanes."""


@parallel_kernel
def pair_scores(U, V, b, users, items, scores):
    """scores[p] = <U[users[p]], V[items[p]]> + b[items[p]]."""
    for p in prange(users.size):
        scores[p] = dot(U[users[p]], V[items[p]]) + b[items[p]]


@kernel
def _pack(V, b, first, panels):
    """Packs items from `first` on into panels (1 + k, WIDTH), biases in the first row; returns the number of panels."""
    n = min(PANELS, (V.shape[0] - first + WIDTH - 1) // WIDTH)
    for panel in range(n):
        for lane in range(WIDTH):
            item = min(first + panel * WIDTH + lane, V.shape[0] - 1)  # the last item fills up the last panel
            panels[panel, 0, lane] = b[item]
            for k in range(V.shape[1]):
                panels[panel, k + 1, lane] = V[item, k]
    return n


@kernel
def _score_tile(own, panels, item, block, edge):
    """Scores of some users for the items of the panels; a panel that exceeds `block` is computed in `edge` and copied."""
    n_users, n_items = block.shape
    for row in range(0, n_users, ROWS):
        for panel in range(panels.shape[0]):
            first = item + panel * WIDTH
            if first + WIDTH <= n_items:
                multiply(own, row, n_users - 1, panels[panel], block, first)
            else:
                multiply(own, row, n_users - 1, panels[panel], edge, 0)
    first = item + (panels.shape[0] - 1) * WIDTH
    if first + WIDTH > n_items:
        block[:, first:] = edge[:, : n_items - first]


@kernel
def _score_part(U, V, b, first, end, item, block):
    """The scores of the users from `first` to `end` for one tile of items."""
    panels = np.empty((PANELS, V.shape[1] + 1, WIDTH), np.float32)
    n = _pack(V, b, item, panels)
    _score_tile(U[first:end], panels[:n], item, block[first:end], np.empty((end - first, WIDTH), np.float32))


@parallel_kernel
def block_scores(U: Float32Array, V: Float32Array, b: Float32Array, group: int, block: Float32Array) -> None:
    """block = U V' + b, (n_users, n_items), by tiles whose factors stay in the cache.

    Not BLAS: its threads and Numba's would wait for each other in turn, which costs more than the product itself.
    `group` is how many users share one packing of the items.
    """
    n_users, n_items = block.shape
    tiles = (n_items + PANELS * WIDTH - 1) // (PANELS * WIDTH)
    for part in prange((n_users + group - 1) // group * tiles):
        first, item = part // tiles * group, part % tiles * PANELS * WIDTH
        _score_part(U, V, b, first, min(first + group, n_users), item, block)


@kernel
def _score_one(U, V, b, block):
    """As `block_scores` for one user, on the calling thread."""
    for item in range(0, block.shape[1], PANELS * WIDTH):
        _score_part(U, V, b, 0, 1, item, block)


def scores_of(U: Float32Array, V: Float32Array, b: Float32Array) -> Float32Array:
    """(n_users, n_items) U V' + b."""
    block = np.empty((len(U), len(V)), np.float32)
    U, V = np.ascontiguousarray(U), np.ascontiguousarray(V)
    if len(U) == 1:
        _score_one(U, V, b, block)
    else:
        block_scores(U, V, b, GROUP, block)
    return block


@parallel_kernel
def mask_seen(block: Float32Array, indptr: Int64Array, indices: Int32Array, users: Int64Array) -> None:
    """Sets the scores of the items that the user of each row has seen to NaN; users below 0 have seen none."""
    for row in prange(users.size):
        if users[row] >= 0:
            for place in range(indptr[users[row]], indptr[users[row] + 1]):
                block[row, indices[place]] = np.nan


@kernel
def _insert(scores, items, filled, score, item):
    """Inserts an item after all that are not worse; a full list loses its last item."""
    place = min(filled, scores.size - 1)
    while place > 0 and scores[place - 1] < score:
        scores[place], items[place] = scores[place - 1], items[place - 1]
        place -= 1
    scores[place], items[place] = score, item


@kernel
def score_reached(row, k, maxima):
    """A score that at least k candidates reach, and not many more; -inf where the row is too short or k too large.

    The row is split into more than k lanes: the k-th highest of the maxima of the lanes is such a score.
    """
    parts = (k + _PER_PART - 1) // _PER_PART
    blocks = row.size // (parts * MASK)
    if blocks < 4 or parts * MASK > maxima.size:
        return np.float32(-np.inf)
    for part in range(parts):
        lane_maxima(row, part * blocks * MASK, blocks, maxima, part * MASK)
    found = np.float32(-np.inf)
    for lane in range(parts * MASK):
        if maxima[lane] > found:
            reached = 0
            for part in range(parts):
                reached += count(at_least(maxima, part * MASK, maxima[lane]))
            if reached >= k:
                found = maxima[lane]
    return found


@kernel
def _best_of(row, scores, maxima, items):
    """Fills the list `items`, best first; `scores`, of its length, and `maxima` are scratch."""
    filled, item, k = 0, 0, scores.size
    floor = score_reached(row, k, maxima)
    while item + MASK <= row.size:  # most of them are rejected, many at once
        mask = at_least(row, item, floor)
        while mask:
            candidate = item + lowest(mask)
            mask &= mask - 1
            if filled < k or row[candidate] > scores[k - 1]:
                _insert(scores, items, filled, row[candidate], candidate)
                filled = min(filled + 1, k)
                if filled == k:
                    floor = max(floor, scores[k - 1])
        item += MASK
    for candidate in range(item, row.size):
        if not np.isnan(row[candidate]) and (filled < k or row[candidate] > scores[k - 1]):
            _insert(scores, items, filled, row[candidate], candidate)
            filled = min(filled + 1, k)


@parallel_kernel
def _top_items(block, top):
    for user in prange(block.shape[0]):
        _best_of(block[user], np.empty(top.shape[1], np.float32), np.empty(MAXIMA, np.float32), top[user])


def top_items(block: Float32Array, k: int) -> Int64Array:
    """(n_users, k) items of the highest scores, best first, ties by item; NaN is left out, -1 where no item is left."""
    top = np.full((block.shape[0], k), -1, np.int64)
    if block.shape[0] == 1:  # one user's request waits for no other thread
        _best_of(block[0], np.empty(k, np.float32), np.empty(MAXIMA, np.float32), top[0])
    else:
        _top_items(block, top)
    return top


@kernel
def _victim(scores, chosen, groups, item, most):
    """Position that `item` replaces: the last one, that of the worst of its group, or -1 if it does not enter the list."""
    score, group = scores[item], groups[item]
    last = chosen.size - 1
    if np.isnan(score) or (chosen[last] >= 0 and score <= scores[chosen[last]]):
        return -1
    if group < 0:
        return last
    count, worst = 0, last
    for place in range(chosen.size):
        if chosen[place] < 0:
            break
        if groups[chosen[place]] == group:
            count, worst = count + 1, place
    if count < most:
        return last
    return worst if score > scores[chosen[worst]] else -1


@parallel_kernel
def _top_items_by_group(block, groups, most, top):
    for user in prange(block.shape[0]):
        scores, chosen = block[user], top[user]
        for item in range(scores.size):
            place = _victim(scores, chosen, groups, item, most)
            if place < 0:
                continue
            while place > 0 and (chosen[place - 1] < 0 or scores[chosen[place - 1]] < scores[item]):
                chosen[place] = chosen[place - 1]
                place -= 1
            chosen[place] = item


def top_items_by_group(block: Float32Array, k: int, groups: Int32Array, most: int) -> Int64Array:
    """As `top_items`, with at most `most` items of a group: those beyond are skipped on the way down from the best.

    groups[item] is a number from 0, or -1 for an item that is never skipped. One pass is exact: the walk yields the k
    best of the union of each group's `most` best, and an item that loses to those once loses for good.
    """
    top = np.full((block.shape[0], k), -1, np.int64)
    _top_items_by_group(block, groups, most, top)
    return top
