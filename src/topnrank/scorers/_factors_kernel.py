"""The factors scorer over a batch: f_i = <u, v_i> + b_i (reference: scorers/factors.py)."""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.updates import CHUNKS, chunk_size, dot, place_in_chunk, step_number, step_row
from topnrank.kernels.work_stealing import claim, new_work


class FactorState(NamedTuple):
    """Parameters of the factors scorer, or their accumulators."""

    U: Float32Array
    V: Float32Array
    b: Float32Array


@parallel_kernel
def factor_scores(batch, state, scores):
    """Scores of every list of the batch."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            u = state.U[batch.users[n]]
            for p in range(batch.offsets[n], batch.offsets[n + 1]):
                scores[p] = dot(u, state.V[batch.items[p]]) + state.b[batch.items[p]]


@parallel_kernel
def factor_user_step(batch, G, state, accumulators, rule, moved):
    """Each user of the batch steps along dL/du = sum_i G_i v_i, plus its penalty."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        gradient = np.empty(state.U.shape[1], np.float32)
        for n in claim(work, worker, batch.users.size):
            gradient[:] = 0.0
            for p in range(batch.offsets[n], batch.offsets[n + 1]):
                g = np.float32(G[p])
                if g != 0.0:  # most are 0 behind ReLU's gate
                    v = state.V[batch.items[p]]
                    for d in range(v.size):
                        gradient[d] += g * v[d]
            user = batch.users[n]
            moved[n] = step_row(rule, 1, gradient, state.U[user], accumulators.U[user])


@kernel
def _step_items(batch, active_items, G, state, accumulators, rules, chunk, moved):
    """The steps of a chunk of the active items."""
    gradient = np.empty(state.V.shape[1], np.float32)
    U, V, of_V, users, own = state.U, state.V, accumulators.V, batch.users, batch.own
    visits = active_items.visits
    for turn in range(chunk_size(chunk, active_items.items.size)):
        t = place_in_chunk(chunk, turn)
        item = active_items.items[t]
        gradient[:] = 0.0
        bias_gradient, count = 0.0, 0.0
        for place in range(active_items.starts[t], active_items.starts[t + 1]):
            p, n = visits[place, 0], visits[place, 1]
            g = np.float32(G[p])
            count += 1.0 if p < own[n] else batch.counts[n]
            if g != 0.0:
                bias_gradient += G[p]
                u = U[users[n]]
                for d in range(gradient.size):
                    gradient[d] += g * u[d]
        distance = step_row(rules[0], count, gradient, V[item], of_V[item])
        moved[t] = distance + step_number(rules[1], count, bias_gradient, state.b, accumulators.b, item)


@parallel_kernel
def factor_item_step(batch, active_items, G, state, accumulators, rules, moved):
    """Each active item steps v and b once along the batch's sum of G_i u, in the batch's order of users; rules of v, b."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for chunk in claim(work, worker, CHUNKS):
            _step_items(batch, active_items, G, state, accumulators, rules, chunk, moved)
