"""The neighbor term over a batch: its scores and the gradient of its scale (reference: scorers/neighbors.py)."""

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange, summing_kernel
from topnrank.kernels.work_stealing import claim, new_work


@summing_kernel
def _marked_sum(near, w, marks):
    """Sum of the weights times the marks of their items."""
    total = np.float32(0.0)
    for t in range(near.size):
        total += w[t] * marks[near[t]]
    return total


@parallel_kernel
def batch_neighbor_scores(batch, rows, neighbors, weights, marks, neighbor_scores):
    """Neighbor scores of the lists of a batch: own rows as prepared (leave-one-out), sampled rows from the user's positives.

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
