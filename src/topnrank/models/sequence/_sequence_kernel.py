"""Kernels of models that know the order of a user's items: directed counts, the next-item ridge, scores by links.

Every turn of a parallel loop writes its own rows and sums in a fixed order: bits do not depend on the number of threads.
The formulas stand in `reference.py`, which computes the same with dense matrices.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.vectors import fetch

CHUNKS = 32
"""Parts of a loop over items; each has its own scratch."""


class Events(NamedTuple):
    """The rows of all users in the order of time, CSR by user, and where each item stands in them."""

    indptr: Int64Array
    items: Int32Array
    past: Float32Array
    """(n,) what a row counts in the past of later ones"""
    wanted: Float32Array
    """(n,) what a row counts as the next item; 0: it is none"""
    links: Float32Array
    """(n,) what is left of the past from this row to the user's next one: 1, or less where time has passed"""
    owners: Int32Array
    item_indptr: Int64Array
    """With `places`: the rows of each item, ascending"""
    places: Int64Array


class PairBlocks(NamedTuple):
    """A symmetric matrix of S x S blocks, one for each pair of items: the diagonal, and what is right of it as CSR."""

    indptr: Int64Array
    columns: Int32Array
    values: Float32Array
    """(n_pairs, S, S)"""
    diagonal: Float32Array
    """(n_items, S, S)"""


class PairSums(NamedTuple):
    """G, and B as CSR by the next item: what came before it, and the sums of each scale."""

    blocks: PairBlocks
    indptr: Int64Array
    others: Int32Array
    """Ascending within an item"""
    pasts: Float32Array
    """(n_others, S)"""


class Scales(NamedTuple):
    """Scales of time: what is left of a row after one more, and after how many too little is left to look at; (S,) each."""

    decays: Float64Array
    reaches: Int64Array


class Links(NamedTuple):
    """For each feature, which is an item at one scale of time, the items that it speaks for; CSR."""

    indptr: Int64Array
    targets: Int32Array
    values: Float32Array


# ----------------------------------------------------------------------------------------------------
# Directed counts: a comes d rows after b.


@kernel
def _count_after(item, events, gamma, sums, active):
    """C[item, :] into the zeroed scratch `sums`; returns how many columns stand in `active`."""
    n = 0
    for e in range(events.item_indptr[item], events.item_indptr[item + 1]):
        p = events.places[e]
        if events.past[p] == 0.0:
            continue
        end = min(events.indptr[events.owners[p] + 1], p + gamma.size)
        left = events.past[p]
        for q in range(p + 1, end):
            left *= events.links[q - 1]
            weight = left * events.wanted[q] * gamma[q - p]
            if weight == 0.0:
                continue
            other = events.items[q]
            if sums[other] == 0.0:
                active[n] = other
                n += 1
            sums[other] += weight
    return n


@parallel_kernel
def count_transitions(events, gamma, counts):
    """counts[b] = items that come after b within the window, so many rows as `gamma` has entries."""
    m = counts.size
    for chunk in prange(CHUNKS):
        sums, active = np.zeros(m), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _count_after(item, events, gamma, sums, active)
            for t in range(n):
                sums[active[t]] = 0.0
            counts[item] = n


@parallel_kernel
def fill_transitions(events, gamma, indptr, targets, values):
    """C by rows: ascending `targets` of each item and the sums of gamma over all steps from it to them."""
    m = indptr.size - 1
    for chunk in prange(CHUNKS):
        sums, active = np.zeros(m), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _count_after(item, events, gamma, sums, active)
            active[:n].sort()
            for t in range(n):
                targets[indptr[item] + t] = active[t]
                values[indptr[item] + t] = sums[active[t]]
                sums[active[t]] = 0.0


# ----------------------------------------------------------------------------------------------------
# The next-item ridge: G = sum_t v_t h_t h_t' and B = sum_t v_t h_t e(i_t)' over all rows t of all users, h_t the decayed
# past.
#
# For rows s < r of a user and scales k, l:  G gets past_s past_r d_k^(r-s) L(s, r) R_kl(r), L the product of the links
# between them and R_kl(r) = sum_{t > r} v_t (d_k d_l)^(t-1-r) L(r, t)^2, which runs backwards through the user's rows.


@parallel_kernel
def futures(events, decays, R):
    """R_kl of every row, (n, S, S)."""
    S = decays.size
    for user in prange(events.indptr.size - 1):
        for r in range(events.indptr[user + 1] - 2, events.indptr[user] - 1, -1):
            last = r + 2 == events.indptr[user + 1]
            square = events.links[r] * events.links[r]
            for k in range(S):
                for j in range(S):
                    later = 0.0 if last else decays[k] * decays[j] * R[r + 1, k, j]
                    R[r, k, j] = square * (events.wanted[r + 1] + later)


@kernel
def _mark(other, item, marked, active, n):
    """Remembers a pair with a later item; returns how many there are."""
    if other > item and not marked[other]:
        marked[other] = True
        active[n] = other
        return n + 1
    return n


@kernel
def _others(item, events, reach, marked, active):
    """The items after `item` by number that stand at most `reach` rows from it in a user's history; returns how many."""
    n = 0
    for e in range(events.item_indptr[item], events.item_indptr[item + 1]):
        p = events.places[e]
        owner = events.owners[p]
        first, end = max(events.indptr[owner], p - reach), min(events.indptr[owner + 1], p + reach + 1)
        for q in range(first, end):
            n = _mark(events.items[q], item, marked, active, n)
    return n


@parallel_kernel
def count_pairs(events, reach, counts):
    """counts[i] = items j > i that share a user's history within `reach` rows."""
    m = counts.size
    for chunk in prange(CHUNKS):
        marked, active = np.zeros(m, np.bool_), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _others(item, events, reach, marked, active)
            for t in range(n):
                marked[active[t]] = False
            counts[item] = n


@kernel
def _add_later(item, p, end, events, scales, R, sums):
    """Row p of `item` with all rows after it."""
    S = scales.decays.size
    for k in range(S):
        f = np.float64(events.past[p])
        for q in range(p + 1, min(end, p + 1 + scales.reaches[k])):
            f *= scales.decays[k] * events.links[q - 1]
            other = events.items[q]
            if other >= item:
                part = f * events.past[q]
                for j in range(S):
                    sums[other, k, j] += part * R[q, k, j]


@kernel
def _add_earlier(item, p, first, events, scales, R, sums):
    """Row p of `item` with all rows before it."""
    S = scales.decays.size
    for j in range(S):
        f = np.float64(events.past[p])
        for q in range(p - 1, max(first, p - scales.reaches[j]) - 1, -1):
            f *= scales.decays[j] * events.links[q]
            other = events.items[q]
            if other >= item:
                part = f * events.past[q]
                for k in range(S):
                    sums[other, k, j] += part * R[p, k, j]


@parallel_kernel
def fill_pairs(events, scales, reach, R, indptr, columns, values, diagonal):
    """G by blocks; `columns` ascend within an item."""
    m, S = diagonal.shape[0], scales.decays.size
    for chunk in prange(CHUNKS):
        marked, active = np.zeros(m, np.bool_), np.empty(m, np.int32)
        sums = np.zeros((m, S, S))
        for item in range(chunk, m, CHUNKS):
            n = _others(item, events, reach, marked, active)
            active[:n].sort()
            for e in range(events.item_indptr[item], events.item_indptr[item + 1]):
                p = events.places[e]
                owner = events.owners[p]
                first, end = max(events.indptr[owner], p - reach), min(events.indptr[owner + 1], p + reach + 1)
                for k in range(S):
                    for j in range(S):
                        sums[item, k, j] += events.past[p] * events.past[p] * R[p, k, j]
                _add_later(item, p, end, events, scales, R, sums)
                _add_earlier(item, p, first, events, scales, R, sums)
            diagonal[item] = sums[item]
            sums[item] = 0.0
            for t in range(n):
                columns[indptr[item] + t] = active[t]
                values[indptr[item] + t] = sums[active[t]]
                sums[active[t]] = 0.0
                marked[active[t]] = False


@kernel
def _add_pasts(item, events, scales, sums, marked, active):
    """B[:, item] into the zeroed scratch `sums` (n_items, S); returns how many items stand in `active`, each `marked`."""
    n = 0
    for e in range(events.item_indptr[item], events.item_indptr[item + 1]):
        t = events.places[e]
        if events.wanted[t] == 0.0:
            continue
        start = events.indptr[events.owners[t]]
        for k in range(scales.decays.size):
            f = np.float64(events.wanted[t])
            for s in range(t - 1, max(start, t - 1 - scales.reaches[k]) - 1, -1):
                f *= events.links[s] if s == t - 1 else scales.decays[k] * events.links[s]
                if f == 0.0:
                    break
                other = events.items[s]
                if not marked[other]:
                    marked[other] = True
                    active[n] = other
                    n += 1
                sums[other, k] += f * events.past[s]
    return n


@parallel_kernel
def all_pasts(events, scales, B):
    """B' of all features and items, (n_items, n_items * S), zero before."""
    m, S = B.shape[0], scales.decays.size
    for chunk in prange(CHUNKS):
        sums, marked, active = np.zeros((m, S)), np.zeros(m, np.bool_), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _add_pasts(item, events, scales, sums, marked, active)
            for t in range(n):
                for k in range(S):
                    B[item, active[t] * S + k] = sums[active[t], k]
                sums[active[t]] = 0.0
                marked[active[t]] = False


@parallel_kernel
def whole_matrix(blocks, penalty, A):
    """The upper half of G + penalty I of all features into A, zero before; features by item, then scale."""
    S = blocks.diagonal.shape[1]
    for item in prange(blocks.diagonal.shape[0]):
        for k in range(S):
            row = A[item * S + k]
            for j in range(k, S):
                row[item * S + j] = blocks.diagonal[item, k, j]
            row[item * S + k] += penalty
            for e in range(blocks.indptr[item], blocks.indptr[item + 1]):
                for j in range(S):
                    row[blocks.columns[e] * S + j] = blocks.values[e, k, j]


@kernel
def _sink(scores, chosen, place, size):
    """Puts the entry at `place` of a heap where it belongs; the root is the lowest score, of equal ones the last feature."""
    while True:
        low = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < size and (
                scores[child] < scores[low] or (scores[child] == scores[low] and chosen[child] > chosen[low])
            ):
                low = child
        if low == place:
            return
        scores[place], scores[low] = scores[low], scores[place]
        chosen[place], chosen[low] = chosen[low], chosen[place]
        place = low


@kernel
def _nearest(right, active, diagonal, scale, norm, shrink, chosen):
    """The features of one scale with the highest cosine to an item, into `chosen`; returns how many there are.

    A feature is item * S + scale. Of equal cosines the first ones of `active` are taken, whose items ascend.
    """
    size, n, S = chosen.size, 0, right.shape[1]
    scores = np.empty(size)
    for other in active:
        if right[other, scale] <= 0.0:
            continue
        score = right[other, scale] / (np.sqrt(norm * diagonal[other, scale, scale]) + shrink)
        if n < size:
            scores[n], chosen[n] = score, other * S + scale
            n += 1
            if n == size:
                for place in range(size // 2 - 1, -1, -1):
                    _sink(scores, chosen, place, size)
        elif score > scores[0]:
            scores[0], chosen[0] = score, other * S + scale
            _sink(scores, chosen, 0, size)
    return n


@kernel
def _choose_features(item, sums, active, diagonal, norm, shrink, chosen, right):
    """The nearest features of one item, whose B stands in `sums`."""
    size, S = 0, sums.shape[1]
    most = chosen.shape[1] // S
    for k in range(S):
        size += _nearest(sums, active, diagonal, k, norm, shrink, chosen[item, size : size + most])
    chosen[item, size:] = -1
    chosen[item, :size].sort()
    for t in range(size):
        right[item, t] = sums[chosen[item, t] // S, chosen[item, t] % S]


@parallel_kernel
def nearest_features(events, scales, diagonal, norms, shrink, chosen, right):
    """The features that may explain each item, ascending, -1 after them, into `chosen`; B of them into `right`."""
    m, S = diagonal.shape[0], scales.decays.size
    for chunk in prange(CHUNKS):
        sums, marked, active = np.zeros((m, S)), np.zeros(m, np.bool_), np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _add_pasts(item, events, scales, sums, marked, active)
            active[:n].sort()  # the order of equal cosines
            _choose_features(item, sums, active[:n], diagonal, norms[item], shrink, chosen, right)
            for t in range(n):
                sums[active[t]] = 0.0
                marked[active[t]] = False


@parallel_kernel
def count_pasts(events, scales, counts):
    """counts[i] = items that stand in the past of rows of i."""
    m = counts.size
    for chunk in prange(CHUNKS):
        sums, marked = np.zeros((m, scales.decays.size)), np.zeros(m, np.bool_)
        active = np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _add_pasts(item, events, scales, sums, marked, active)
            for t in range(n):
                sums[active[t]] = 0.0
                marked[active[t]] = False
            counts[item] = n


@parallel_kernel
def fill_pasts(events, scales, indptr, others, pasts):
    """B by next items."""
    m = indptr.size - 1
    for chunk in prange(CHUNKS):
        sums, marked = np.zeros((m, scales.decays.size)), np.zeros(m, np.bool_)
        active = np.empty(m, np.int32)
        for item in range(chunk, m, CHUNKS):
            n = _add_pasts(item, events, scales, sums, marked, active)
            active[:n].sort()
            for t in range(n):
                others[indptr[item] + t] = active[t]
                pasts[indptr[item] + t] = sums[active[t]]
                sums[active[t]] = 0.0
                marked[active[t]] = False


@parallel_kernel
def nearest_of_sums(indptr, others, pasts, diagonal, norms, shrink, chosen, right):
    """`nearest_features` by B that is there."""
    m, S = diagonal.shape[0], pasts.shape[1]
    for chunk in prange(CHUNKS):
        sums = np.zeros((m, S))
        for item in range(chunk, m, CHUNKS):
            active = others[indptr[item] : indptr[item + 1]]
            for t in range(active.size):
                sums[active[t]] = pasts[indptr[item] + t]
            _choose_features(item, sums, active, diagonal, norms[item], shrink, chosen, right)
            for other in active:
                sums[other] = 0.0


@kernel
def _place(blocks, row, column, start):
    """Where `column` stands, or would stand, in `row`, searched from `start` on."""
    low, high = start, blocks.indptr[row + 1]
    if low < high:  # columns ascend, so that it stands no further off than by their difference
        high = min(high, low + max(0, column - blocks.columns[low]) + 1)
    while low < high:
        middle = (low + high) // 2
        if blocks.columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _ends(near, S, ends):
    """Where the features of each item end among the ascending features `near`, into `ends`; returns how many items."""
    n = 0
    for t in range(near.size):
        if t > 0 and near[t] // S != near[t - 1] // S:
            ends[n] = t
            n += 1
    ends[n] = near.size
    return n + 1


@kernel
def _system(blocks, near, ends, places, A):
    """The upper half of G between the ascending features `near` into A; `ends` and `places` are scratch."""
    S, first = blocks.diagonal.shape[1], 0
    values, n = blocks.values.reshape(-1, S * S), 0
    if near.size:
        n = _ends(near, S, ends)
    for a in range(n):
        item = near[first] // S
        for s in range(first, ends[a]):
            for t in range(s, ends[a]):
                A[s, t] = blocks.diagonal[item, near[s] % S, near[t] % S]
        place = blocks.indptr[item]
        for b in range(a + 1, n):
            other, places[b] = near[ends[b - 1]] // S, -1
            place = _place(blocks, item, other, place)
            if place < blocks.indptr[item + 1] and blocks.columns[place] == other:
                places[b] = place
                fetch(values, place)  # most of the time is spent waiting for these numbers
        for s in range(first, ends[a]):
            row, k = A[s], (near[s] % S) * S
            for b in range(a + 1, n):
                for t in range(ends[b - 1], ends[b]):
                    row[t] = values[places[b], k + near[t] % S] if places[b] >= 0 else np.float32(0.0)
        first = ends[a]


@kernel
def _factorize(A, n):
    """Cholesky of A[:n, :n]: the upper half becomes U with A = U'U; four rows at a time are taken from two others.

    A slice would not do: the compiler would not know that the numbers of its rows stand side by side.
    """
    for first in range(0, n, 4):
        end = min(first + 4, n)
        for k in range(first, end):
            for r in range(first, k):
                factor = A[r, k]
                for c in range(k, n):
                    A[k, c] -= factor * A[r, c]
            A[k, k] = np.sqrt(A[k, k])
            for c in range(k + 1, n):
                A[k, c] /= A[k, k]
        if end - first < 4:
            continue
        one, two, three, four = A[first], A[first + 1], A[first + 2], A[first + 3]
        for r in range(end, n - 1, 2):
            a, b, c, d, row = one[r], two[r], three[r], four[r], A[r]
            e, f, g, h, below = one[r + 1], two[r + 1], three[r + 1], four[r + 1], A[r + 1]
            for t in range(r, n):  # of the lower half one number is spoiled, which nobody reads
                w, x, y, z = one[t], two[t], three[t], four[t]
                row[t] -= a * w + b * x + c * y + d * z
                below[t] -= e * w + f * x + g * y + h * z
        if (n - end) % 2:
            last = n - 1
            A[last, last] -= one[last] ** 2 + two[last] ** 2 + three[last] ** 2 + four[last] ** 2


@kernel
def _solve(A, x, n):
    """A[:n, :n]^-1 x in the place of x; the upper half of A is overwritten."""
    _factorize(A, n)
    for k in range(n):
        x[k] /= A[k, k]
        for c in range(k + 1, n):
            x[c] -= A[k, c] * x[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for c in range(k + 1, n):
            total -= A[k, c] * x[c]
        x[k] = total / A[k, k]


@parallel_kernel
def solve_features(blocks, penalties, chosen, right, solved):
    """The regression weights of every item on its features for each penalty into `solved`, (n_penalties, n_items, T)."""
    m, T = chosen.shape
    for chunk in prange(CHUNKS):
        system, U, w = np.empty((T, T), np.float32), np.empty((T, T), np.float32), np.empty(T)
        ends, places = np.empty(T, np.int64), np.empty(T, np.int64)
        for item in range(chunk, m, CHUNKS):
            size = 0
            while size < T and chosen[item, size] >= 0:
                size += 1
            _system(blocks, chosen[item, :size], ends, places, system)
            for p in range(penalties.size):
                for t in range(size):
                    U[t, t:size] = system[t, t:size]
                    U[t, t] += penalties[p]
                    w[t] = right[item, t]
                _solve(U, w, size)
                for t in range(size):
                    solved[p, item, t] = w[t]


@kernel
def links_of_features(chosen, weights, indptr, targets, values):
    """The weights seen from the features: for each of them the items that it explains, as CSR."""
    m, T = chosen.shape
    for item in range(m):
        for t in range(T):
            if chosen[item, t] >= 0:
                indptr[chosen[item, t] + 1] += 1
    for f in range(indptr.size - 1):
        indptr[f + 1] += indptr[f]
    place = indptr[:-1].copy()
    for item in range(m):
        for t in range(T):
            f = chosen[item, t]
            if f >= 0:
                targets[place[f]], values[place[f]] = item, weights[item, t]
                place[f] += 1


# ----------------------------------------------------------------------------------------------------
# Scores: sums over the features of a user's past.


@kernel
def add_links(links, items, weights, scores):
    """scores[i] += sum over the rows of a history and the scales k of weights[row, k] * link of (item, k) to i."""
    S = weights.shape[1]
    for p in range(items.size):
        for k in range(S):
            weight, f = weights[p, k], items[p] * S + k
            if weight == 0.0:
                continue
            for q in range(links.indptr[f], links.indptr[f + 1]):
                scores[links.targets[q]] += weight * links.values[q]


@parallel_kernel
def add_links_of_users(links, users, indptr, items, weights, block):
    """`add_links` for each row of `block`, the histories of `users` being CSR."""
    for n in prange(users.size):
        own = slice(indptr[users[n]], indptr[users[n] + 1])
        add_links(links, items[own], weights[own], block[n])


@kernel
def _link(links, feature, item):
    """The link of a feature to an item, 0 where there is none."""
    low, high = links.indptr[feature], links.indptr[feature + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if links.targets[middle] < item:
            low = middle + 1
        else:
            high = middle
    return links.values[low] if low < end and links.targets[low] == item else np.float32(0.0)


@parallel_kernel
def parts_of_links(links, items, scales, targets, parts):
    """parts[t, p, k] = the link of row p's item at scale k to targets[t]."""
    for t in prange(targets.size):
        for p in range(items.size):
            for k in range(scales):
                parts[t, p, k] = _link(links, items[p] * scales + k, targets[t])


@parallel_kernel
def pair_links(links, users, targets, indptr, items, weights, scores):
    """scores[n] += what the history of users[n] says of targets[n]."""
    S = weights.shape[1]
    for n in prange(users.size):
        total = scores[n]
        for p in range(indptr[users[n]], indptr[users[n] + 1]):
            for k in range(S):
                if weights[p, k] != 0.0:
                    total += weights[p, k] * _link(links, items[p] * S + k, targets[n])
        scores[n] = total


@parallel_kernel
def places_of_next(links, bias, users, wanted, indptr, items, weights, seen_indptr, seen, above):
    """above[n] = items outside the user's seen ones that score more than wanted[n], half of those that score as much."""
    m = bias.size
    for chunk in prange(CHUNKS):
        scores = np.empty(m, np.float32)
        for n in range(chunk, users.size, CHUNKS):
            own = slice(indptr[users[n]], indptr[users[n] + 1])
            scores[:] = bias
            add_links(links, items[own], weights[own], scores)
            for p in range(seen_indptr[users[n]], seen_indptr[users[n] + 1]):
                if seen[p] != wanted[n]:
                    scores[seen[p]] = -np.inf
            mine, more, equal = scores[wanted[n]], 0, 0
            for item in range(m):
                more += scores[item] > mine
                equal += scores[item] == mine
            above[n] = more + 0.5 * (equal - 1)


@parallel_kernel
def places_in_block(block, rows, wanted, above):
    """above[n] = items that score more than wanted[n] in its row of the block, and half of those that score as much."""
    for n in prange(wanted.size):
        scores, more, equal = block[rows[n]], 0, 0
        mine = scores[wanted[n]]
        for item in range(scores.size):
            more += scores[item] > mine
            equal += scores[item] == mine
        above[n] = more + 0.5 * (equal - 1)
