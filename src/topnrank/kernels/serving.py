"""Scores of given pairs, and the n best of a block of scores."""

import numpy as np
from numba import prange

from topnrank.kernels._jit import parallel_kernel
from topnrank.kernels.optimisers import dot


@parallel_kernel
def pair_scores(U, V, b, users, items, scores):
    """scores[p] = <U[users[p]], V[items[p]]> + b[items[p]]."""
    for p in prange(users.size):
        scores[p] = dot(U[users[p]], V[items[p]]) + b[items[p]]


@parallel_kernel
def top_n(block, best, best_scores):
    """The best columns of each row of `block`, best first, equal scores by column; -inf is never chosen, gaps hold -1."""
    n = best.shape[1]
    for row in prange(block.shape[0]):
        found = 0
        for column in range(block.shape[1]):
            score = block[row, column]
            if score == -np.inf or (found == n and score <= best_scores[row, n - 1]):
                continue
            found = min(found + 1, n)
            place = found - 1
            while place > 0 and best_scores[row, place - 1] < score:
                best[row, place] = best[row, place - 1]
                best_scores[row, place] = best_scores[row, place - 1]
                place -= 1
            best[row, place] = column
            best_scores[row, place] = score
        for place in range(found, n):
            best[row, place] = -1
            best_scores[row, place] = -np.inf
