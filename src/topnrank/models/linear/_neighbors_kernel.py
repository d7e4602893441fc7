"""Kernels of the neighbor ridge: nearest items, one small regression per item, leave-one-out predictions, scores."""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Int32Array, Int64Array, UInt64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange

# ----------------------------------------------------------------------------------------------------
# What the neighbor ridge says of an item that a user likes when the user, or the session, is left out: closed form.
#
# `likes` is a `kernels.neighbors.Likes`, A the inverse (G[N, N] + lambda I)^-1 and w = W_i of one item.


@kernel
def left_out(item, A, w, likes, position, neighbor_scores):
    """What the regression without user u says of (u, item), for every user of the item, from the one with all users.

    With x the user's likes among N(i), rho their strengths, h = w_u x'Ax and g = w_u rho'Ax:
    rho'W_i - g (1 - x'W_i) / (1 - h), the identity of leave-one-out in ridge regression for a target of 1. `position` is -1
    but for the items of N(i).
    """
    held, rho = np.empty(w.size, np.int64), np.empty(w.size)
    for p in range(likes.item_indptr[item], likes.item_indptr[item + 1]):
        user = likes.users[p]
        n = 0
        for q in range(likes.indptr[user], likes.indptr[user + 1]):
            t = position[likes.items[q]]
            if t >= 0:
                held[n], rho[n] = t, likes.recency_weights[q]
                n += 1
        score, plain, h, g = 0.0, 0.0, 0.0, 0.0
        for a in range(n):
            row = A[held[a]]
            score += rho[a] * w[held[a]]
            plain += w[held[a]]
            h += row[held[a]]
            g += rho[a] * row[held[a]]
            for b in range(a):
                h += 2.0 * row[held[b]]
                g += (rho[a] + rho[b]) * row[held[b]]
        h *= likes.weights[user]
        g *= likes.weights[user]
        neighbor_scores[likes.entries[p]] = score - g * (1.0 - plain) / (1.0 - h)


@kernel
def left_out_sessions(item, A, w, likes, position, neighbor_scores):
    """`left_out` where co-occurrences are those of sessions: the one with the item is left out, x are its likes.

    The score is that of its owner, so that rho are the strengths of all likes of the owner among N(i).
    """
    held, near, rho = np.empty(w.size, np.int64), np.empty(w.size, np.int64), np.empty(w.size)
    for p in range(likes.item_indptr[item], likes.item_indptr[item + 1]):
        session = likes.users[p]
        owner, n, m, score = likes.owners[session], 0, 0, 0.0
        for q in range(likes.whole_indptr[owner], likes.whole_indptr[owner + 1]):
            t = position[likes.whole_items[q]]
            if t >= 0:
                near[m], rho[m] = t, likes.whole_strengths[q]
                score += rho[m] * w[t]
                m += 1
        for q in range(likes.indptr[session], likes.indptr[session + 1]):
            t = position[likes.items[q]]
            if t >= 0:
                held[n] = t
                n += 1
        plain, h, g = 0.0, 0.0, 0.0
        for a in range(n):
            row = A[held[a]]
            plain += w[held[a]]
            for b in range(n):
                h += row[held[b]]
            for b in range(m):
                g += rho[b] * row[near[b]]
        h *= likes.weights[session]
        g *= likes.weights[session]
        neighbor_scores[likes.entries[p]] = score - g * (1.0 - plain) / (1.0 - h)


CHUNKS = 32
"""Parts of a loop over items; each has its own scratch, so that nothing depends on the number of threads."""


class Likes(NamedTuple):
    """The liked pairs seen from the users and from the items."""

    indptr: Int64Array
    """(n_users + 1,) CSR by user"""
    items: Int32Array
    """(n,) ascending within a user"""
    item_indptr: Int64Array
    """(n_items + 1,) CSR by item"""
    users: Int32Array
    """(n,)"""
    entries: Int64Array
    """(n,) where each pair of `users` stands in `items`"""
    weights: Float32Array
    """(n_users,) w > 0"""
    recency_weights: Float32Array
    """(n,) rho of `items` where a user's likes are summed"""
    owners: Int32Array
    """Empty; or, where each "user" is one session of a user, (n_users,) whose session it is"""
    whole_indptr: Int64Array
    """With `owners`: CSR by owner of all likes"""
    whole_items: Int32Array
    whole_strengths: Float32Array


class Gram(NamedTuple):
    """G: its diagonal, and what is right of it as CSR with ascending columns."""

    indptr: Int64Array
    columns: Int32Array
    values: Float32Array
    diagonal: Float32Array
    filled: UInt64Array
    """(n_items, n_items / 64) a bit for each column of a row that is not 0; no rows where that takes too much memory"""
    before: Int32Array
    """(n_items, n_items / 64) the entries of a row before each 64 columns; no rows without `filled`"""


class Sources(NamedTuple):
    """The weights seen from the items that pull: for each j the items i with j in N(i), CSR."""

    indptr: Int64Array
    targets: Int32Array
    values: Float32Array


@kernel
def _accumulate(item, likes, sums, active_items):
    """Row `item` of G into the zeroed scratch `sums`; returns the number of columns, which stand in `active_items`."""
    n = 0
    for p in range(likes.item_indptr[item], likes.item_indptr[item + 1]):
        user = likes.users[p]
        w = likes.weights[user]
        for q in range(likes.indptr[user], likes.indptr[user + 1]):
            other = likes.items[q]
            if sums[other] == 0.0:
                active_items[n] = other
                n += 1
            sums[other] += w
    return n


@kernel
def _nearest(item, sums, active_items, norms, shrink, chosen):
    """The items with the highest cosine to `item`, nearest first, into `chosen`; `item` itself fills the rest."""
    T, n = chosen.size, 0
    scores = np.empty(T, np.float64)
    for other in active_items:
        if other == item:
            continue
        score = sums[other] / (np.sqrt(norms[item] * norms[other]) + shrink)
        if n == T and score <= scores[T - 1]:
            continue
        place = min(n, T - 1)
        while place > 0 and scores[place - 1] < score:
            scores[place], chosen[place] = scores[place - 1], chosen[place - 1]
            place -= 1
        scores[place], chosen[place] = score, other
        n = min(n + 1, T)
    chosen[n:] = item


@parallel_kernel
def count_upper(likes, counts):
    """counts[i] = columns j > i of row i of G that are not 0."""
    m = counts.size
    for chunk in prange(CHUNKS):
        sums, active_items = np.zeros(m, np.float32), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _accumulate(item, likes, sums, active_items)
            above = 0
            for t in range(n):
                above += active_items[t] > item
                sums[active_items[t]] = 0.0
            counts[item] = above


@parallel_kernel
def gram_and_neighbors(likes, gram, shrink, columns, values, filled, before, ranked):
    """The upper half of G into the four arrays, which are those of `gram`; each item's nearest into `ranked`."""
    m = gram.diagonal.size
    for chunk in prange(CHUNKS):
        sums, active_items = np.zeros(m, np.float32), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _accumulate(item, likes, sums, active_items)
            active_items[:n].sort()  # the order of equal cosines, and of the columns
            _nearest(item, sums, active_items[:n], gram.diagonal, shrink, ranked[item])
            place = gram.indptr[item]
            for t in range(n):
                other = active_items[t]
                if other > item:
                    columns[place], values[place] = other, sums[other]
                    place += 1
                sums[other] = 0.0
            if filled.size:
                _mark(columns[gram.indptr[item] : place], filled[item], before[item])


@kernel
def _mark(columns, filled, before):
    """The bits of ascending `columns` into the zeros of `filled`, and how many stand before each word of them."""
    last = -1
    for t in range(columns.size):
        word = columns[t] >> 6
        while last < word:
            last += 1
            before[last] = t
        filled[word] |= np.uint64(1) << np.uint64(columns[t] & 63)
    before[last + 1 :] = columns.size


@kernel
def _ones(word):
    """The bits that are set in 64."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _value(gram, row, column):
    """G at a row and a column right of the diagonal, by the bits of the row; no branch, which would be guessed wrong."""
    word, bit = gram.filled[row, column >> 6], np.uint64(1) << np.uint64(column & 63)
    place = gram.indptr[row] + gram.before[row, column >> 6] + _ones(word & (bit - np.uint64(1)))
    found = np.float32((word >> np.uint64(column & 63)) & np.uint64(1))
    return found * gram.values[min(place, gram.values.size - 1)]


@kernel
def _entry(gram, row, column, start):
    """Where `column` stands, or would stand, in `row` of the upper half, searched from `start` on in steps that double."""
    low, end, step = start, gram.indptr[row + 1], 1
    while low + step < end and gram.columns[low + step] < column:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) // 2
        if gram.columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _system(gram, near, A):
    """G[N, N] into A."""
    for s in range(near.size):
        A[s, s] = gram.diagonal[near[s]]
        if gram.filled.size:
            for t in range(s + 1, near.size):
                A[s, t] = A[t, s] = _value(gram, near[s], near[t])
            continue
        place = gram.indptr[near[s]]
        for t in range(s + 1, near.size):
            place = _entry(gram, near[s], near[t], place)
            found = place < gram.indptr[near[s] + 1] and gram.columns[place] == near[t]
            A[s, t] = A[t, s] = gram.values[place] if found else 0.0


@kernel
def _pair(gram, i, j):
    """G_ij of two different items."""
    row, column = min(i, j), max(i, j)
    if gram.filled.size:
        return _value(gram, row, column)
    place = _entry(gram, row, column, gram.indptr[row])
    found = place < gram.indptr[row + 1] and gram.columns[place] == column
    return gram.values[place] if found else np.float32(0.0)


PANEL = 4
"""Rows that are taken from all others at a time: the others are then read and written a fourth as often."""


@kernel
def _take_panel(rows, factors, A, first):
    """Takes the products of four `factors` (4, n) and four `rows` (4, n) from the upper half of A, from row `first` on."""
    n = A.shape[0]
    p, q, r, s = rows[0], rows[1], rows[2], rows[3]
    for i in range(first, n):
        row, a, b, c, d = A[i], factors[0, i], factors[1, i], factors[2, i], factors[3, i]
        for j in range(i, n):
            row[j] -= a * p[j] + b * q[j] + c * r[j] + d * s[j]


@kernel
def _sweep(A, first, last, rows, factors):
    """Sweeps the symmetric A, of which the upper half counts, by the rows from `first` to `last`, at most four.

    With K those rows and B = A_KK^-1: A_KK becomes -B, A_KR becomes B A_KR, and A_RR loses A_RK B A_KR. Swept by all of its
    rows a positive definite matrix is its negative inverse.
    """
    n, size = A.shape[0], last - first
    rows[:], factors[:] = 0.0, 0.0
    for k in range(size):
        for j in range(n):
            factors[k, j] = A[first + k, j] if j >= first + k else A[j, first + k]
    B = factors[:size, first:last].copy()
    for k in range(size):  # Gauss-Jordan; needs no pivots in a positive definite matrix
        pivot = 1.0 / B[k, k]
        B[k, k] = 1.0
        for j in range(size):
            B[k, j] *= pivot
        for r in range(size):
            if r != k:
                factor = B[r, k]
                B[r, k] = 0.0
                for j in range(size):
                    B[r, j] -= factor * B[k, j]
    for k in range(size):
        for r in range(size):
            for j in range(n):
                rows[k, j] += B[k, r] * factors[r, j]
    _take_panel(rows, factors, A, 0)
    for k in range(size):
        for j in range(first + k, n):
            A[first + k, j] = rows[k, j]
        for i in range(first):
            A[i, first + k] = rows[k, i]
        for j in range(k, size):
            A[first + k, first + j] = -B[k, j]


@kernel
def _invert(A):
    """The inverse of a positive definite matrix in its own place, both halves."""
    n = A.shape[0]
    rows, factors = np.empty((PANEL, n)), np.empty((PANEL, n))
    for first in range(0, n, PANEL):
        _sweep(A, first, min(first + PANEL, n), rows, factors)
    for i in range(n):
        for j in range(i, n):
            A[i, j] = A[j, i] = -A[i, j]


@kernel
def _solve(A, x):
    """A^-1 x in the place of x, by Cholesky: the upper half of A becomes U with A = U'U."""
    n = A.shape[0]
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        for k in range(first, last):
            A[k, k] = np.sqrt(A[k, k])
            pivot = 1.0 / A[k, k]
            for c in range(k + 1, n):
                A[k, c] *= pivot
            for r in range(k + 1, last):
                factor = A[k, r]
                for c in range(r, n):
                    A[r, c] -= factor * A[k, c]
        if last < n:
            _take_panel(A[first:last], A[first:last], A, last)
    for k in range(n):
        x[k] /= A[k, k]
        for c in range(k + 1, n):
            x[c] -= A[k, c] * x[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for c in range(k + 1, n):
            total -= A[k, c] * x[c]
        x[k] = total / A[k, k]


@kernel
def _ascending(item, ranked, chosen):
    """N(item) into `chosen`, ascending; returns the part before the places that `item` itself fills."""
    size = 0
    while size < ranked.size and ranked[size] != item:
        size += 1
    chosen[:] = ranked
    chosen[:size].sort()
    return chosen[:size]


@parallel_kernel
def solve_neighbors(gram, penalties, ranked, neighbors, solved):
    """N of every item, ascending, into `neighbors`; W for each penalty into `solved`, (n_penalties, n_items, T)."""
    m, T = ranked.shape
    for chunk in prange(CHUNKS):
        system, U = np.empty((T, T)), np.empty((T, T))
        right, w = np.empty(T), np.empty(T)
        for item in range(chunk, m, CHUNKS):
            near = _ascending(item, ranked[item], neighbors[item])
            size = near.size
            _system(gram, near, system)
            for t in range(size):
                right[t] = _pair(gram, item, near[t])
            for p in range(penalties.size):
                for t in range(size):
                    U[t, t:size] = system[t, t:size]
                    U[t, t] += penalties[p]
                    w[t] = right[t]
                _solve(U[:size, :size], w[:size])
                for t in range(size):
                    solved[p, item, t] = w[t]


@parallel_kernel
def solve_neighbors_left_out(likes, gram, penalty, ranked, neighbors, solved, neighbor_scores):
    """`solve_neighbors` for one penalty, and the left-out scores of all liked pairs into `neighbor_scores`."""
    m = ranked.shape[0]
    for chunk in prange(CHUNKS):
        position = np.full(m, -1, np.int32)
        for item in range(chunk, m, CHUNKS):
            near = _ascending(item, ranked[item], neighbors[item])
            size = near.size
            A = np.empty((size, size))
            _system(gram, near, A)
            right, w = np.empty(size), np.zeros(size)
            for t in range(size):
                A[t, t] += penalty
                right[t] = _pair(gram, item, near[t])
                position[near[t]] = t
            _invert(A)
            for t in range(size):
                for s in range(size):
                    w[t] += A[t, s] * right[s]
                solved[item, t] = w[t]
            if likes.owners.size:
                left_out_sessions(item, A, w, likes, position, neighbor_scores)
            else:
                left_out(item, A, w, likes, position, neighbor_scores)
            for t in range(size):
                position[near[t]] = -1


@kernel
def by_source(neighbors, weights, indptr, targets, values):
    """The weights seen from the items that pull: for each j the items i with j in N(i), as CSR."""
    m, T = neighbors.shape
    for i in range(m):
        for t in range(T):
            if neighbors[i, t] != i:
                indptr[neighbors[i, t] + 1] += 1
    for j in range(m):
        indptr[j + 1] += indptr[j]
    place = indptr[:-1].copy()
    for i in range(m):
        for t in range(T):
            if neighbors[i, t] != i:
                j = neighbors[i, t]
                targets[place[j]], values[place[j]] = i, weights[i, t]
                place[j] += 1


@kernel
def add_neighbor_scores_of_list(sources, items, weights, scores):
    """scores[i] += sum over the items j of a list of weight * W_ji."""
    for p in range(items.size):
        j = items[p]
        for q in range(sources.indptr[j], sources.indptr[j + 1]):
            scores[sources.targets[q]] += weights[p] * sources.values[q]


@parallel_kernel
def add_neighbor_scores(sources, indptr, items, weights, block):
    """`add_neighbor_scores_of_list` for each row of `block`; lists as CSR."""
    for n in prange(block.shape[0]):
        own = slice(indptr[n], indptr[n + 1])
        add_neighbor_scores_of_list(sources, items[own], weights[own], block[n])


@parallel_kernel
def pair_neighbor_scores(near_items, near_weights, likes, users, items, scores):
    """scores[p] = sum over the items j of user users[p] of rho_j W_j,items[p]; likes = (indptr, ascending items, rho)."""
    indptr, indices, recency_weights = likes
    for p in prange(users.size):
        lo, hi = indptr[users[p]], indptr[users[p] + 1]
        near, w = near_items[items[p]], near_weights[items[p]]
        total, q = np.float32(0.0), lo
        for t in range(near.size):
            while q < hi and indices[q] < near[t]:
                q += 1
            if q < hi and indices[q] == near[t]:
                total += recency_weights[q] * w[t]
        scores[p] = total
