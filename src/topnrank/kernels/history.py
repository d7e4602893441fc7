"""The history scorer over a batch (reference: scorers/history.py).

    f_i = b_i + <s_u - c_u rho_ui (y_i + e_ui x_i), q_i>,    s_u = c_u sum_j rho_uj (y_j + e_uj x_j),    c_u = (m - 1)^-h

e x stands for sum_b e_b x_b over the channels b: one for ratings, or one for each type of feedback; the vectors x_b of an
item stand one after another in its row of X.

The own part of an item needs only the numbers <y_i, q_i> and <x_i, q_i>, computed once per touched item, and in the
backward pass the sums over visits of G c rho and G c rho e: leave-one-out costs next to nothing per rating.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array
from topnrank.kernels._jit import kernel, parallel_kernel, prange
from topnrank.kernels.optimisers import dot, step_number, step_row


class HistoryState(NamedTuple):
    """Parameters of the history scorer, or their accumulators."""

    Q: Float32Array
    Y: Float32Array
    X: Float32Array
    b: Float32Array


class HistorySums(NamedTuple):
    """What the users of a batch carry between the phases."""

    c: Float32Array
    """(b, 2) scale of the history without one item, for own rows, and of the whole one, for sampled rows"""
    s: Float32Array
    """(b, k) history sums, unscaled"""
    pull: Float32Array
    """(b, k) sum_i c G_i q_i"""


@kernel
def history_scale(size, exponent):
    """size^-exponent, and 0 for an empty history."""
    return np.float32(float(size) ** -exponent) if size > 0 else np.float32(0.0)


@parallel_kernel
def own_products(touched, state, yq, xq):
    """<y_i, q_i> and <x_ib, q_i> of the touched items, into arrays over all items, (n_items,) and (n_items, channels)."""
    k = state.Q.shape[1]
    for t in prange(touched.items.size):
        item = touched.items[t]
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


@parallel_kernel
def history_vectors(rows, state, exponent, vectors):
    """s_u of every user for prediction: m^-h times the sum over the whole history."""
    for user in prange(rows.indptr.size - 1):
        lo, hi = rows.indptr[user], rows.indptr[user + 1]
        c, s = history_scale(hi - lo, exponent), vectors[user]
        s[:] = 0.0
        for p in range(lo, hi):
            rho = c * rows.strengths[p] if rows.strengths.size else c
            _add_part(rho, state.Y[rows.items[p]], state.X[rows.items[p]], rows.residuals[p], s)


@parallel_kernel
def history_scores(batch, state, exponent, own, scales, vectors, scores):
    """Scales c, unscaled history sums and scores of every list, own rows leave-one-out; `own` = (yq, xq)."""
    yq, xq = own
    for n in prange(batch.users.size):
        lo, hi = batch.offsets[n], batch.own[n]
        c_own, c_new = history_scale(hi - lo - 1, exponent), history_scale(hi - lo, exponent)
        scales[n, 0], scales[n, 1] = c_own, c_new
        s = vectors[n]
        s[:] = 0.0
        for p in range(lo, hi):
            item = batch.items[p]
            _add_part(batch.strengths[p], state.Y[item], state.X[item], batch.residuals[p], s)
        for p in range(batch.first[n], batch.offsets[n + 1]):
            item = batch.items[p]
            if p < hi:
                mine = yq[item]
                for b in range(xq.shape[1]):
                    mine += batch.residuals[p, b] * xq[item, b]
                scores[p] = c_own * (dot(s, state.Q[item]) - batch.strengths[p] * mine) + state.b[item]
            else:
                scores[p] = c_new * dot(s, state.Q[item]) + state.b[item]


@parallel_kernel
def history_pull(batch, G, Q, scales, pull):
    """sum_i c G_i q_i of every user of the batch."""
    for n in prange(batch.users.size):
        g_user = pull[n]
        g_user[:] = 0.0
        for p in range(batch.first[n], batch.offsets[n + 1]):
            q = Q[batch.items[p]]
            g = np.float32(G[p]) * scales[n, 0 if p < batch.own[n] else 1]
            for d in range(q.size):
                g_user[d] += g * q[d]


@kernel
def _visit_sums(batch, G, sums, entries, owners, work, out):
    """Sums of one item over its visits, without leave-one-out.

    The rows of `work` get sum c G_item s_u, sum rho pull_u and for each channel sum rho e_b pull_u; `out` (2, channels) the
    sums of c G_item rho e_b and c G_user rho e_b. Returned are the numbers sum G_item, and the sums of c G_item rho and
    c G_user rho: these and `out` take the item's own part out again; then in how many lists and histories the item was.
    """
    work[:] = 0.0
    out[:] = 0.0
    bias, qc, yc = 0.0, 0.0, 0.0
    lists, histories = 0.0, 0.0
    for v in range(entries.size):
        p, n = entries[v], owners[v]
        s, pull = sums.s[n], sums.pull[n]
        if p >= batch.own[n]:
            g = np.float32(G[1, p]) * sums.c[n, 1]
            for d in range(s.size):
                work[0, d] += g * s[d]
            bias += G[1, p]
            lists += batch.counts[n]
            continue
        rho = batch.strengths[p]
        histories += 1
        for d in range(s.size):
            work[1, d] += rho * pull[d]
        listed = p >= batch.first[n]
        c = sums.c[n, 0]
        g, g_user = (np.float32(G[1, p]) * c, G[0, p] * c) if listed else (np.float32(0.0), 0.0)
        for b in range(out.shape[1]):
            e = rho * batch.residuals[p, b]
            if e != 0.0:
                out[0, b] += g * e
                out[1, b] += g_user * e
                for d in range(s.size):
                    work[2 + b, d] += e * pull[d]
        if listed:
            for d in range(s.size):
                work[0, d] += g * s[d]
            lists += 1
            bias += G[1, p]
            qc += g * rho
            yc += g_user * rho
    return bias, np.float32(qc), np.float32(yc), lists, histories


@parallel_kernel
def history_item_step(batch, touched, G, sums, state, accumulators, rules, moved):
    """Each touched item steps once along the batch's sums, in the batch's order of users; rules of q, of y and x, of b."""
    k, channels = state.Q.shape[1], batch.residuals.shape[1]
    for t in prange(touched.items.size):
        i, lo, hi = touched.items[t], touched.starts[t], touched.starts[t + 1]
        q, y, x = state.Q[i], state.Y[i], state.X[i]
        work, out = np.empty((2 + channels, k), np.float32), np.empty((2, channels), np.float32)
        bias, qc, yc, lists, histories = _visit_sums(
            batch, G, sums, touched.entries[lo:hi], touched.owners[lo:hi], work, out
        )
        moved[t] = 0.0
        if histories > 0.0:  # items that were only sampled have no part in a history
            for d in range(k):
                work[0, d] -= qc * y[d]
                work[1, d] -= yc * q[d]
            for b in range(channels):
                for d in range(k):
                    work[0, d] -= out[0, b] * x[b * k + d]
                    work[2 + b, d] -= out[1, b] * q[d]
            moved[t] += step_row(rules[1], histories, work[1], y, accumulators.Y[i])
            for b in range(channels):
                part = slice(b * k, (b + 1) * k)
                moved[t] += step_row(rules[1], histories, work[2 + b], x[part], accumulators.X[i][part])
        moved[t] += step_row(rules[0], lists, work[0], q, accumulators.Q[i])
        moved[t] += step_number(rules[2], lists, bias, state.b, accumulators.b, i)
