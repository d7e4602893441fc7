"""The history scorer over a batch (reference: scorers/history.py).

    f_i = b_i + <s_u - c_u rho_ui (y_i + e_ui x_i), q_i>,    s_u = c_u sum_j rho_uj (y_j + e_uj x_j),    c_u = (m - 1)^-h

e x stands for sum_b e_b x_b over the channels b: one for ratings, or one for each type of feedback; the vectors x_b of an
item stand one after another in its row of X.

The self term of an item needs only the numbers <y_i, q_i> and <x_i, q_i>, computed once per active item, and in the
backward pass the sums over visits of G c rho and G c rho e: leave-one-out costs next to nothing per rating.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array
from topnrank.kernels.jit import kernel, leaf_kernel, parallel_kernel, prange
from topnrank.kernels.updates import CHUNKS, add_two, chunk_size, dot, place_in_chunk, step_number, step_row
from topnrank.kernels.vectors import fetch
from topnrank.kernels.work_stealing import claim, new_work

AHEAD = 8
"""Rows of the parameters are prefetched this many rows ahead: their order is not predictable by the hardware."""


class HistoryState(NamedTuple):
    """Parameters of the history scorer, or their accumulators."""

    Q: Float32Array
    Y: Float32Array
    X: Float32Array
    b: Float32Array


class HistorySums(NamedTuple):
    """What is kept of each user of a batch between the phases."""

    c: Float32Array
    """(b, 2) scale of the history without one item, for own rows, and of the whole one, for sampled rows"""
    s: Float32Array
    """(b, k) history sums, unscaled"""
    gradient: Float32Array
    """(b, k) sum_i c G_i q_i"""


class SelfProducts(NamedTuple):
    """Products of the self terms of the active items."""

    y: Float32Array
    """(n_items,) <y_i, q_i>"""
    x: Float32Array
    """(n_items, channels) <x_ib, q_i>"""


@kernel
def history_scale(size, exponent):
    """size^-exponent, and 0 for an empty history."""
    return np.float32(float(size) ** -exponent) if size > 0 else np.float32(0.0)


@parallel_kernel
def self_products(active_items, state, yq, xq):
    """<y_i, q_i> and <x_ib, q_i> of the active items, into arrays over all items, (n_items,) and (n_items, channels)."""
    k = state.Q.shape[1]
    for t in prange(active_items.items.size):
        item = active_items.items[t]
        yq[item] = dot(state.Y[item], state.Q[item])
        for b in range(xq.shape[1]):
            xq[item, b] = dot(state.X[item, b * k : (b + 1) * k], state.Q[item])


@kernel
def _add_part(rho, y, x, e, s):
    """s += rho (y + sum_b e_b x_b)."""
    for d in range(s.size):
        s[d] += rho * y[d]
    for b in range(e.size):
        factor = rho * e[b]
        if factor != 0.0:
            for d in range(s.size):
                s[d] += factor * x[b * s.size + d]


@kernel
def history_vector(rows, user, state, exponent, s):
    """s_u of one user for prediction: m^-h times the sum over the whole history."""
    lo, hi = rows.indptr[user], rows.indptr[user + 1]
    c = history_scale(hi - lo, exponent)
    s[:] = 0.0
    for p in range(lo, hi):
        rho = c * rows.recency_weights[p] if rows.recency_weights.size else c
        _add_part(rho, state.Y[rows.items[p]], state.X[rows.items[p]], rows.residuals[p], s)


@parallel_kernel
def history_vectors(rows, state, exponent, vectors):
    """`history_vector` of every user."""
    for user in prange(rows.indptr.size - 1):
        history_vector(rows, user, state, exponent, vectors[user])


@kernel
def _history_sum(batch, Y, X, n, s):
    """s = sum_j rho_j (y_j + sum_b e_jb x_jb) of user n, two rows at a time; an odd last one twice, then by 0."""
    items, recency_weights, residuals = batch.items, batch.recency_weights, batch.residuals
    lo, hi, k = batch.offsets[n], batch.own[n], s.size
    s[:] = 0.0
    for p in range(lo, hi, 2):
        q = min(p + 1, hi - 1)
        i, j = items[p], items[q]
        if p + AHEAD + 1 < hi:
            fetch(Y, items[p + AHEAD])
            fetch(X, items[p + AHEAD])
            fetch(Y, items[p + AHEAD + 1])
            fetch(X, items[p + AHEAD + 1])
        rho, sigma = recency_weights[p], recency_weights[q] if q > p else np.float32(0.0)
        add_two(s, rho, Y[i], sigma, Y[j])
        for b in range(residuals.shape[1]):
            e, f = rho * residuals[p, b], sigma * residuals[q, b]
            if e != 0.0 or f != 0.0:
                add_two(s, e, X[i, b * k : (b + 1) * k], f, X[j, b * k : (b + 1) * k])


@kernel
def _user_scores(batch, state, products, n, c, s, scores):
    """Scores of the list of user n by the history sum s; c holds the scales without one item and of all."""
    yq, xq = products.y, products.x
    Q, bias, items = state.Q, state.b, batch.items
    for p in range(batch.first[n], batch.own[n]):
        item = items[p]
        if p + AHEAD < batch.own[n]:
            fetch(Q, items[p + AHEAD])
        self_term = yq[item]
        for b in range(xq.shape[1]):
            self_term += batch.residuals[p, b] * xq[item, b]
        scores[p] = c[0] * (dot(s, Q[item]) - batch.recency_weights[p] * self_term) + bias[item]
    for p in range(batch.own[n], batch.offsets[n + 1]):
        if p + AHEAD < batch.offsets[n + 1]:
            fetch(Q, items[p + AHEAD])
        scores[p] = c[1] * dot(s, Q[items[p]]) + bias[items[p]]


@parallel_kernel
def history_scores(batch, state, exponent, products, scales, vectors, scores):
    """Scales c, unscaled history sums and scores of every list, own rows leave-one-out."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            size = batch.own[n] - batch.offsets[n]
            scales[n, 0], scales[n, 1] = history_scale(size - 1, exponent), history_scale(size, exponent)
            _history_sum(batch, state.Y, state.X, n, vectors[n])
            _user_scores(batch, state, products, n, scales[n], vectors[n], scores)


@parallel_kernel
def history_gradient(batch, G, Q, scales, gradient):
    """sum_i c G_i q_i of every user of the batch."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            gradient[n] = 0.0
            last = batch.offsets[n + 1] - 1
            for p in range(batch.first[n], last + 1, 2):  # an odd last row twice, the second time by 0
                r = min(p + 1, last)
                if p + AHEAD < last:
                    fetch(Q, batch.items[p + AHEAD])
                    fetch(Q, batch.items[p + AHEAD + 1])
                g = np.float32(G[p]) * scales[n, 0 if p < batch.own[n] else 1]
                h = np.float32(G[r] if r > p else 0.0) * scales[n, 0 if r < batch.own[n] else 1]
                add_two(gradient[n], g, Q[batch.items[p]], h, Q[batch.items[r]])


@leaf_kernel
def _own_sums(visits, rows, G, sums, work, out):
    """Adds to `work` and `out` the sums over an item's visits by own rows, without leave-one-out; g_u = `sums.gradient`.

    The rows of `work` get sum c G_item s_u, sum rho g_u and for each channel sum rho e_b g_u; `out` (2, channels) the
    sums of c G_item rho e_b and c G_user rho e_b. Returned are the numbers sum G_item, and the sums of c G_item rho and
    c G_user rho, which with `out` remove the self term afterward; then in how many lists the item was. Rows of the
    history only have no gradient. Two visits at a time, an odd last one twice, the second time by 0.
    """
    first, recency_weights, residuals = rows
    c, s, gradient = sums
    bias, qc, yc, lists = 0.0, 0.0, 0.0, 0.0
    for v in range(0, len(visits), 2):
        w = min(v + 1, len(visits) - 1)
        p, q, n, m = visits[v, 0], visits[w, 0], visits[v, 1], visits[w, 1]
        rho, sigma = recency_weights[p], recency_weights[q] if w > v else np.float32(0.0)
        listed, also = p >= first[n], w > v and q >= first[m]
        item, other = G[1, p] if listed else 0.0, G[1, q] if also else 0.0
        g, h = np.float32(item) * c[n, 0], np.float32(other) * c[m, 0]
        g_user, h_user = G[0, p] * c[n, 0] if listed else 0.0, G[0, q] * c[m, 0] if also else 0.0
        add_two(work[0], g, s[n], h, s[m])
        add_two(work[1], rho, gradient[n], sigma, gradient[m])
        for b in range(out.shape[1]):
            e, f = rho * residuals[p, b], sigma * residuals[q, b]
            out[0, b] += g * e + h * f
            out[1, b] += g_user * e + h_user * f
            add_two(work[2 + b], e, gradient[n], f, gradient[m])
        bias += item + other
        lists += (1.0 if listed else 0.0) + (1.0 if also else 0.0)
        qc += g * rho + h * sigma
        yc += g_user * rho + h_user * sigma
    return bias, qc, yc, lists


@leaf_kernel
def _rated_sums(visits, rows, G, sums, work, out):
    """`_own_sums` for one channel, the usual case: one loop for the three rows of `work` reads `gradient` once."""
    first, recency_weights, residuals = rows
    c, s, gradient = sums
    for_q, for_y, for_x = work[0], work[1], work[2]
    bias, qc, yc, lists, qe, ye = 0.0, 0.0, 0.0, 0.0, np.float32(0.0), np.float32(0.0)
    for v in range(0, len(visits), 2):
        w = min(v + 1, len(visits) - 1)
        p, q, n, m = visits[v, 0], visits[w, 0], visits[v, 1], visits[w, 1]
        rho, sigma = recency_weights[p], recency_weights[q] if w > v else np.float32(0.0)
        listed, also = p >= first[n], w > v and q >= first[m]
        item, other = G[1, p] if listed else 0.0, G[1, q] if also else 0.0
        g, h = np.float32(item) * c[n, 0], np.float32(other) * c[m, 0]
        g_user, h_user = G[0, p] * c[n, 0] if listed else 0.0, G[0, q] * c[m, 0] if also else 0.0
        e, f = rho * residuals[p, 0], sigma * residuals[q, 0]
        one, two, gradient_one, gradient_two = s[n], s[m], gradient[n], gradient[m]
        for d in range(for_q.size):
            for_q[d] += g * one[d] + h * two[d]
            for_y[d] += rho * gradient_one[d] + sigma * gradient_two[d]
            for_x[d] += e * gradient_one[d] + f * gradient_two[d]
        bias += item + other
        lists += (1.0 if listed else 0.0) + (1.0 if also else 0.0)
        qc += g * rho + h * sigma
        yc += g_user * rho + h_user * sigma
        qe += g * e + h * f
        ye += g_user * e + h_user * f
    out[0, 0], out[1, 0] = qe, ye
    return bias, qc, yc, lists


@leaf_kernel
def _sampled_sums(visits, counts, G, sums, work):
    """Adds to `work` the sums over an item's visits by sampled rows; returns sum G_item and in how many lists they count."""
    c, s, _ = sums
    bias, lists = 0.0, 0.0
    for v in range(0, len(visits), 2):
        w = min(v + 1, len(visits) - 1)
        n, m, twin = visits[v, 1], visits[w, 1], 1.0 if w > v else 0.0
        first, second = G[1, visits[v, 0]], twin * G[1, visits[w, 0]]
        add_two(work[0], np.float32(first) * c[n, 1], s[n], np.float32(second) * c[m, 1], s[m])
        bias += first + second
        lists += counts[n] + twin * counts[m]
    return bias, lists


@leaf_kernel
def _remove_self_term(qc, yc, out, rows, work):
    """Removes the item's self term, rows = (q, y, x), from the sums over its visits."""
    q, y, x = rows
    k, none = q.size, np.float32(0.0)
    add_two(work[0], np.float32(-qc), y, none, y)
    add_two(work[1], np.float32(-yc), q, none, q)
    for b in range(out.shape[1]):
        add_two(work[0], -out[0, b], x[b * k : (b + 1) * k], none, y)
        add_two(work[2 + b], -out[1, b], q, none, q)


@kernel
def _step_items(batch, active_items, G, sums, state, stepped, rules, chunk, moved):
    """The steps of a chunk of the active items. The tuples are unpacked once: leaf kernels take plain arrays."""
    target, accumulators = stepped
    k, channels = state.Q.shape[1], batch.residuals.shape[1]
    work, out = np.empty((2 + channels, k), np.float32), np.empty((2, channels), np.float32)
    Q, Y, X, of_Q, of_Y, of_X = state.Q, state.Y, state.X, accumulators.Q, accumulators.Y, accumulators.X
    new_Q, new_Y, new_X = target.Q, target.Y, target.X
    starts, owns, visits = active_items.starts, active_items.own, active_items.visits
    rows, users = (batch.first, batch.recency_weights, batch.residuals), (sums.c, sums.s, sums.gradient)
    for turn in range(chunk_size(chunk, active_items.items.size)):
        t = place_in_chunk(chunk, turn)
        i, lo, own, hi = active_items.items[t], starts[t], owns[t], starts[t + 1]
        work[:] = 0.0
        out[:] = 0.0
        if channels == 1:
            bias, qc, yc, lists = _rated_sums(visits[lo:own], rows, G, users, work, out)
        else:
            bias, qc, yc, lists = _own_sums(visits[lo:own], rows, G, users, work, out)
        if own < hi:
            sampled = _sampled_sums(visits[own:hi], batch.counts, G, users, work)
            bias, lists = bias + sampled[0], lists + sampled[1]
        distance = 0.0
        if own > lo:  # items that were only sampled are in no history
            _remove_self_term(qc, yc, out, (Q[i], Y[i], X[i]), work)
            distance += step_row(rules[1], own - lo, work[1], new_Y[i], of_Y[i])
            for b in range(channels):
                part = slice(b * k, (b + 1) * k)
                distance += step_row(rules[1], own - lo, work[2 + b], new_X[i, part], of_X[i, part])
        distance += step_row(rules[0], lists, work[0], new_Q[i], of_Q[i])
        moved[t] = distance + step_number(rules[2], lists, bias, target.b, accumulators.b, i)


@parallel_kernel
def history_item_step(batch, active_items, G, sums, state, target, accumulators, rules, moved):
    """Each active item steps once along the batch's sums, in the batch's order of users; rules of q, of y and x, of b.

    The steps go to `target`: the state itself, or arrays of zeros that with `optimizers.SUM` get the sums.
    """
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for chunk in claim(work, worker, CHUNKS):
            _step_items(batch, active_items, G, sums, state, (target, accumulators), rules, chunk, moved)
