"""BPR and WARP over a batch of lists: losses of random pairs (reference: losses/pairwise/reference.py).

Row i of a list owns the draws i * STRIDE, i * STRIDE + 1, ... of the list's key, as in the reference.
"""

from typing import NamedTuple

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.random import draw_below
from topnrank.kernels.sorting import descending_order
from topnrank.kernels.work_stealing import claim, new_work

STRIDE = 1 << 16
"""As in the reference."""


class BPRSettings(NamedTuple):
    """The fields of `PairwiseLogistic`."""

    tries: int
    pairs: int


class WarpSettings(NamedTuple):
    """The fields of `WarpHinge`."""

    margin: float
    tries: int


@kernel
def _row_draw(key, row, t, n):
    """Draw number t of a row: an integer from 0 to n - 1."""
    return draw_below(key, np.uint64(row * STRIDE + t), n)


@kernel
def _clear(G):
    """Zeros for both gradients of a list."""
    for side in range(2):
        for i in range(G.shape[1]):
            G[side, i] = 0.0


@kernel
def _push_apart(force, winner, loser, G):
    """Adds a pair's force to both gradients."""
    for side in range(2):
        G[side, winner] -= force
        G[side, loser] += force


@kernel
def _partner(settings, key, a, own, row, pair):
    """The row that a row's pair number `pair` is made with, or the row itself where there is none."""
    if own < a.size:
        return own + _row_draw(key, row, pair, a.size - own) if a[row] > 0.0 else row
    if own < 2:
        return row
    for t in range(settings.tries):
        other = _row_draw(key, row, pair * settings.tries + t, own - 1)
        other += other >= row
        if a[other] != a[row]:
            return other
    return row


@kernel
def _bpr(settings, key, f, a, own, G):
    """One list: draws the pairs of each own row; returns the loss."""
    value = 0.0
    for row in range(own):
        for pair in range(settings.pairs):
            other = _partner(settings, key, a, own, row, pair)
            if other == row:
                continue
            winner, loser = (row, other) if a[row] > a[other] else (other, row)
            x = f[winner] - f[loser]
            t = np.exp(-abs(x))
            value += max(-x, 0.0) + np.log1p(t)
            _push_apart((t if x > 0.0 else 1.0) / (1.0 + t), winner, loser, G)
    return value


@kernel
def _rows_below(a, own):
    """(own,) how many own rows have a lower gain than each."""
    order = descending_order(a[:own])
    below = np.empty(own, np.int64)
    lower = 0
    for r in range(own - 1, -1, -1):
        if r < own - 1 and a[order[r]] > a[order[r + 1]]:
            lower = own - 1 - r
        below[order[r]] = lower
    return below


@kernel
def _candidates(weights, a, own):
    """(own,) J of each own row; 0 for rows that are no positives."""
    if own == a.size:
        return _rows_below(a, own)
    unobserved = int(np.floor(weights[own:].sum() + 0.5))
    candidates = np.empty(own, np.int64)
    for row in range(own):
        candidates[row] = unobserved if a[row] > 0.0 else 0
    return candidates


@kernel
def _violator(settings, key, f, a, own, row):
    """The first violator that a row draws and T, the number of candidates it took; T = 0 where none is found."""
    T = 0
    for t in range(settings.tries):
        if own < a.size:
            other = own + _row_draw(key, row, t, a.size - own)
        else:
            other = _row_draw(key, row, t, own)
            if a[other] >= a[row]:
                continue
        T += 1
        if f[other] - f[row] + settings.margin > 0.0:
            return other, T
    return row, 0


@kernel
def _warp(settings, key, f, a, candidates, G):
    """One list: looks for a violator of each positive row; returns the loss."""
    value = 0.0
    own = candidates.size
    for row in range(own):
        if candidates[row] == 0:
            continue
        other, T = _violator(settings, key, f, a, own, row)
        if T > 0:
            phi = np.log1p(max(candidates[row] // T, 1))
            value += phi * (f[other] - f[row] + settings.margin)
            _push_apart(phi, row, other, G)
    return value


@parallel_kernel
def bpr_lists(settings, batch, scores, G, report):
    """BPR's loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = max(hi - lo, 0)
            if hi > lo:
                a, own = batch.gains[lo:hi], max(batch.own[n], lo) - lo
                _clear(G[:, lo:hi])
                report[n, 0] = _bpr(settings, batch.keys[n], scores[lo:hi], a, own, G[:, lo:hi])


@parallel_kernel
def warp_lists(settings, batch, scores, G, report):
    """WARP's loss for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = max(hi - lo, 0)
            if hi > lo:
                a, own = batch.gains[lo:hi], max(batch.own[n], lo) - lo
                candidates = _candidates(batch.weights[lo:hi], a, own)
                _clear(G[:, lo:hi])
                report[n, 0] = _warp(settings, batch.keys[n], scores[lo:hi], a, candidates, G[:, lo:hi])
