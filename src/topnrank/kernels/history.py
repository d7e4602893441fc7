"""The history scorer over a batch (reference: scorers/history.py).

    f_i = b_i + <s_u - c_u rho_ui (y_i + e_ui x_i), q_i>,    s_u = c_u sum_j rho_uj (y_j + e_uj x_j),    c_u = (m - 1)^-h

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
    """<y_i, q_i> and <x_i, q_i> of the touched items, into arrays over all items."""
    for t in prange(touched.items.size):
        item = touched.items[t]
        yq[item] = dot(state.Y[item], state.Q[item])
        xq[item] = dot(state.X[item], state.Q[item])


@parallel_kernel
def history_vectors(rows, state, exponent, vectors):
    """s_u of every user for prediction: m^-h times the sum over the whole history."""
    for user in prange(rows.indptr.size - 1):
        lo, hi = rows.indptr[user], rows.indptr[user + 1]
        c, s = history_scale(hi - lo, exponent), vectors[user]
        s[:] = 0.0
        for p in range(lo, hi):
            y, x, e = state.Y[rows.items[p]], state.X[rows.items[p]], rows.residuals[p]
            rho = c * rows.strengths[p] if rows.strengths.size else c
            for d in range(s.size):
                s[d] += rho * (y[d] + e * x[d])


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
            y, x, e, rho = state.Y[batch.items[p]], state.X[batch.items[p]], batch.residuals[p], batch.strengths[p]
            for d in range(s.size):
                s[d] += rho * (y[d] + e * x[d])
        for p in range(batch.first[n], batch.offsets[n + 1]):
            item = batch.items[p]
            if p < hi:
                mine = batch.strengths[p] * (yq[item] + batch.residuals[p] * xq[item])
                scores[p] = c_own * (dot(s, state.Q[item]) - mine) + state.b[item]
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
def _visit_sums(batch, G, sums, entries, owners, work):
    """Sums of one item over its visits, without leave-one-out.

    `work` gets sum c G_item s_u, sum rho pull_u, sum rho e pull_u; returned are the numbers sum G_item, and the sums of
    c G_item rho, c G_item rho e, c G_user rho, c G_user rho e that take the item's own part out again; then in how many
    lists and in how many histories the item was.
    """
    work[:] = 0.0
    bias, qc, qe, yc, xe = 0.0, 0.0, 0.0, 0.0, 0.0
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
        e = rho * batch.residuals[p]
        histories += 1
        if p < batch.first[n]:
            for d in range(s.size):
                work[1, d] += rho * pull[d]
                work[2, d] += e * pull[d]
            continue
        c = sums.c[n, 0]
        g = np.float32(G[1, p]) * c
        for d in range(s.size):
            work[0, d] += g * s[d]
            work[1, d] += rho * pull[d]
            work[2, d] += e * pull[d]
        lists += 1
        bias += G[1, p]
        qc += g * rho
        qe += g * e
        yc += G[0, p] * c * rho
        xe += G[0, p] * c * e
    return bias, np.float32(qc), np.float32(qe), np.float32(yc), np.float32(xe), lists, histories


@parallel_kernel
def history_item_step(batch, touched, G, sums, state, accumulators, rules, moved):
    """Each touched item steps once along the batch's sums, in the batch's order of users; rules of q, of y and x, of b."""
    for t in prange(touched.items.size):
        i, lo, hi = touched.items[t], touched.starts[t], touched.starts[t + 1]
        q, y, x = state.Q[i], state.Y[i], state.X[i]
        work = np.empty((3, q.size), np.float32)
        bias, qc, qe, yc, xe, lists, histories = _visit_sums(
            batch, G, sums, touched.entries[lo:hi], touched.owners[lo:hi], work
        )
        moved[t] = 0.0
        if histories > 0.0:  # items that were only sampled have no part in a history
            for d in range(q.size):
                work[0, d] -= qc * y[d] + qe * x[d]
                work[1, d] -= yc * q[d]
                work[2, d] -= xe * q[d]
            moved[t] += step_row(rules[1], histories, work[1], y, accumulators.Y[i])
            moved[t] += step_row(rules[1], histories, work[2], x, accumulators.X[i])
        moved[t] += step_row(rules[0], lists, work[0], q, accumulators.Q[i])
        moved[t] += step_number(rules[2], lists, bias, state.b, accumulators.b, i)
