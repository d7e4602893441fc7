"""Linear models of a user's rows: the Gram matrix of sparse rows, and the scores that its inverse gives.

Weights above 0 are likes, below 0 dislikes; a weight of 0 says nothing. Every turn of a parallel loop writes its own row and
sums in a fixed order, so that bits do not depend on the number of threads.
"""

from topnrank.kernels.jit import parallel_kernel, prange


@parallel_kernel
def gram(indptr, indices, values, other_indptr, other_indices, other_values, G):
    """G[i, j] += sum of x_i x_j over the rows that hold both; the matrix is given by columns, then by rows (CSC, CSR)."""
    for i in prange(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            row = indices[p]
            for q in range(other_indptr[row], other_indptr[row + 1]):
                G[i, other_indices[q]] += values[p] * other_values[q]


@parallel_kernel
def add_item_rows(users, indptr, indices, weights, liked, disliked, scores):
    """scores[r] = sum over the rows of users[r] of w liked[item] for likes and |w| disliked[item] for dislikes."""
    for r in prange(users.size):
        user = users[r]
        scores[r, :] = 0.0
        for p in range(indptr[user], indptr[user + 1]):
            weight = weights[p]
            if weight > 0.0:
                for item in range(scores.shape[1]):
                    scores[r, item] += weight * liked[indices[p], item]
            elif weight < 0.0 and disliked.shape[0] > 0:
                for item in range(scores.shape[1]):
                    scores[r, item] -= weight * disliked[indices[p], item]


@parallel_kernel
def item_row_pairs(users, items, indptr, indices, weights, liked, disliked, scores):
    """scores[p] = the score of users[p] and items[p] that `add_item_rows` gives."""
    for p in prange(users.size):
        user, item, total = users[p], items[p], 0.0
        for q in range(indptr[user], indptr[user + 1]):
            weight = weights[q]
            if weight > 0.0:
                total += weight * liked[indices[q], item]
            elif weight < 0.0 and disliked.shape[0] > 0:
                total -= weight * disliked[indices[q], item]
        scores[p] = total


@parallel_kernel
def add_likes_of_users(vectors, indptr, indices, weights, scores):
    """scores[r, item] = sum over users of vectors[r, user] times the weight of their like of the item; rows are likes."""
    for r in prange(vectors.shape[0]):
        scores[r, :] = 0.0
        for user in range(vectors.shape[1]):
            share = vectors[r, user]
            for p in range(indptr[user], indptr[user + 1]):
                scores[r, indices[p]] += share * weights[p]


@parallel_kernel
def likes_of_users_pairs(users, items, indptr, indices, weights, kernel, free, scores):
    """Scores of pairs by the kernel over users; the likes are given by item (CSC), `free` is 1 - the items' leverage."""
    for p in prange(users.size):
        user, item, total, own = users[p], items[p], 0.0, 0.0
        for q in range(indptr[item], indptr[item + 1]):
            total -= kernel[user, indices[q]] * weights[q]
            if indices[q] == user:
                own = weights[q]
        scores[p] = (total + own - own * (1.0 - free[item])) / free[item]


@parallel_kernel
def leverages(indptr, indices, weights, kernel, out):
    """out[item] = x' kernel x for the item's column x of likes (CSC)."""
    for item in prange(indptr.size - 1):
        total = 0.0
        for p in range(indptr[item], indptr[item + 1]):
            part = 0.0
            for q in range(indptr[item], indptr[item + 1]):
                part += kernel[indices[p], indices[q]] * weights[q]
            total += part * weights[p]
        out[item] = total
