"""The n best of a block of scores with at most so many of a group."""

import numpy as np

from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.kernels._jit import kernel, parallel_kernel, prange


@kernel
def _victim(scores, chosen, groups, item, most):
    """Where the list loses an item for `item`: its last place, that of its group's worst, or -1 when it is no better."""
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
    """As `serving.top_items`, walking down from the best and passing over an item whose group has `most` in the list.

    groups[item] is a number from 0, or -1 for an item that is never passed over. One pass is exact: the walk yields the k
    best of the union of each group's `most` best, and an item that loses to those once loses for good.
    """
    top = np.full((block.shape[0], k), -1, np.int64)
    _top_items_by_group(block, groups, most, top)
    return top
