"""Training kernels of the neighbor term: its scores in a batch and the gradient of its scale."""

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange, summing_kernel
from topnrank.kernels.work_stealing import claim, new_work

# ----------------------------------------------------------------------------------------------------
# The neighbor ridge: for each item one small regression on its nearest items (reference: tests; model: neighbor_ridge).
#
#     G = X' diag(w) X,  X the (users, items) matrix of likes          co-occurrence, sparse; only its upper half is kept
#     N(i) = the T items j != i with the largest G_ij / (sqrt(G_ii G_jj) + shrink)
#     W_i  = (G[N, N] + lambda I)^-1 G[N, i]                            one T x T system for each item, in parallel
#
# EASE (Steck 2019) is the same regression with N(i) = all other items, which needs an m x m inverse.


@summing_kernel
def _marked_sum(near, w, marks):
    """Sum of the weights times the marks of their items."""
    total = np.float32(0.0)
    for t in range(near.size):
        total += w[t] * marks[near[t]]
    return total


@parallel_kernel
def batch_neighbor_scores(batch, rows, neighbors, weights, marks, neighbor_scores):
    """The neighbors' scores of the lists of a batch: own rows as prepared (left out), sampled ones from the user's likes.

    `marks` (workers, n_items) is zero before and after.
    """
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        marked = marks[worker]
        for n in claim(work, worker, batch.users.size):
            lo, hi = rows.indptr[batch.users[n]], rows.indptr[batch.users[n] + 1]
            place = batch.first[n]
            for p in range(lo, hi):
                if rows.listed.size == 0 or rows.listed[p]:
                    neighbor_scores[place] = rows.neighbor_scores[p]
                    place += 1
                if rows.gains[p] > 0.0:
                    marked[rows.items[p]] = rows.recency_weights[p] if rows.recency_weights.size else 1.0
            for p in range(batch.own[n], batch.offsets[n + 1]):
                item = batch.items[p]
                neighbor_scores[p] = _marked_sum(neighbors[item], weights[item], marked)
            for p in range(lo, hi):
                marked[rows.items[p]] = 0.0


@kernel
def scale_gradient(batch, G, neighbor_scores):
    """sum over all list rows of the batch of G_i z_i."""
    total = 0.0
    for n in range(batch.users.size):
        for p in range(batch.first[n], batch.offsets[n + 1]):
            total += G[p] * neighbor_scores[p]
    return total
