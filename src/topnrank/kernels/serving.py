"""Scores of given pairs, and the n best of a block of scores."""

import numpy as np

from topnrank._typing import Float32Array, Int64Array
from topnrank.kernels._jit import parallel_kernel, prange
from topnrank.kernels.optimisers import dot


@parallel_kernel
def pair_scores(U, V, b, users, items, scores):
    """scores[p] = <U[users[p]], V[items[p]]> + b[items[p]]."""
    for p in prange(users.size):
        scores[p] = dot(U[users[p]], V[items[p]]) + b[items[p]]


@parallel_kernel
def top_items(block: Float32Array, k: int) -> Int64Array:
    """(n_users, k) items of the highest scores, best first, equal scores by item; NaN is no candidate, -1 no item."""
    top = np.full((block.shape[0], k), -1, np.int64)
    for user in prange(block.shape[0]):
        for item in range(block.shape[1]):
            score = block[user, item]
            last = top[user, k - 1]
            if np.isnan(score) or (last >= 0 and score <= block[user, last]):
                continue
            place = k - 1
            while place > 0 and (top[user, place - 1] < 0 or block[user, top[user, place - 1]] < score):
                top[user, place] = top[user, place - 1]
                place -= 1
            top[user, place] = item
    return top
