"""The factors scorer over a batch: f_i = <u, v_i> + b_i (reference: scorers/factors.py)."""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array
from topnrank.kernels._jit import parallel_kernel, prange
from topnrank.kernels.optimisers import dot, step_number, step_row


class FactorState(NamedTuple):
    """Parameters of the factors scorer, or their accumulators."""

    U: Float32Array
    V: Float32Array
    b: Float32Array


@parallel_kernel
def factor_scores(batch, state, scores):
    """Scores of every list of the batch."""
    for n in prange(batch.users.size):
        u = state.U[batch.users[n]]
        for p in range(batch.offsets[n], batch.offsets[n + 1]):
            scores[p] = dot(u, state.V[batch.items[p]]) + state.b[batch.items[p]]


@parallel_kernel
def factor_user_step(batch, G, state, accumulators, rule, moved):
    """Each user of the batch steps along dL/du = sum_i G_i v_i, plus its penalty."""
    for n in prange(batch.users.size):
        gradient = np.zeros(state.U.shape[1], np.float32)
        for p in range(batch.offsets[n], batch.offsets[n + 1]):
            v = state.V[batch.items[p]]
            g = np.float32(G[p])
            for d in range(v.size):
                gradient[d] += g * v[d]
        user = batch.users[n]
        moved[n] = step_row(rule, 1, gradient, state.U[user], accumulators.U[user])


@parallel_kernel
def factor_item_step(batch, touched, G, state, accumulators, rules, moved):
    """Each touched item steps v and b once along the batch's sum of G_i u, in the batch's order of users; rules of v, b."""
    for t in prange(touched.items.size):
        item = touched.items[t]
        gradient = np.zeros(state.V.shape[1], np.float32)
        bias_gradient, visits = 0.0, 0.0
        for place in range(touched.starts[t], touched.starts[t + 1]):
            n, p = touched.owners[place], touched.entries[place]
            u, g = state.U[batch.users[n]], np.float32(G[p])
            bias_gradient += G[p]
            visits += 1.0 if p < batch.own[n] else batch.counts[n]
            for d in range(u.size):
                gradient[d] += g * u[d]
        moved[t] = step_row(rules[0], visits, gradient, state.V[item], accumulators.V[item])
        moved[t] += step_number(rules[1], visits, bias_gradient, state.b, accumulators.b, item)
