"""The next item regressed on the decayed past, at several scales of time at once: closed form, features cut for each item.

    h_t = sum_{s < t} d_k^(t-1-s) L(s, t) past_s e(i_s, k)         for scales k; L(s, t) what pauses leave of the past
    G = sum_t v_t h_t h_t',   B = sum_t v_t h_t e(i_t)'            v_t what row t counts as a next item
    W_i = (G[N, N] + lambda I)^-1 B[N, i]

N(i): at each scale the features f with the largest B_fi / (sqrt(G_ff n_i) + shrink).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array
from topnrank.models.sequence._sequence_kernel import (
    Links,
    PairBlocks,
    count_pairs,
    fill_pairs,
    futures,
    nearest_features,
    solve_features,
)
from topnrank.models.sequence.links import links_of
from topnrank.models.sequence.timeline import FAINTEST, Timeline, decayed


@dataclass(frozen=True)
class NextItemSystem:
    """What the regressions of all items share, whatever their lambda."""

    blocks: PairBlocks
    chosen: Int32Array
    """(n_items, T S) features of each item, ascending, -1 after them"""
    right: Float32Array
    """(n_items, T S) B of them"""
    unit: float
    """What a penalty of one row is on the scale of G"""

    @classmethod
    def of(cls, timeline: Timeline, decays: FloatArray, neighbors: int, shrink: float, longest: int) -> Self:
        """G by pairs of items, and the nearest features of each item."""
        decays = np.ascontiguousarray(decays, np.float64)
        events, m, S = timeline.events, timeline.n_items, len(decays)
        reach = min(longest, _reach(decays))
        R = np.zeros((len(events.items), S, S), np.float32)
        futures(events, decays, R)
        sizes = np.zeros(m, np.int64)
        count_pairs(events, reach, sizes)
        indptr = indptr_from_counts(sizes)
        blocks = PairBlocks(
            indptr,
            np.empty(indptr[-1], np.int32),
            np.empty((indptr[-1], S, S), np.float32),
            np.empty((m, S, S), np.float32),
        )
        fill_pairs(events, decays, reach, R, *blocks)
        unit = max(float((events.wanted * events.past**2).mean()), 1e-12)
        norms = np.bincount(events.items, weights=events.wanted, minlength=m)
        chosen = np.empty((m, S * max(1, min(neighbors, m))), np.int32)
        right = np.zeros(chosen.shape, np.float32)
        nearest_features(events, decays, reach, blocks.diagonal, norms, shrink * unit, chosen, right)
        return cls(blocks, chosen, right, unit)

    def solve(self, penalty: float) -> Links:
        """W, seen from the features."""
        weights = np.zeros((1, *self.chosen.shape), np.float32)
        penalties = np.array([penalty * self.unit])
        solve_features(self.blocks, penalties, self.chosen, self.right, weights)
        return links_of(self.chosen, weights[0], self.blocks.diagonal.shape[0] * self.blocks.diagonal.shape[1])


def ridge_past(timeline: Timeline, decays: FloatArray) -> Float64Array:
    """(n, S) what the rows of histories count."""
    return np.asarray(decayed(timeline.ages(), decays) * timeline.events.past[:, None])


def _reach(decays: FloatArray) -> int:
    """Rows after which nothing is left of the past."""
    slowest = float(np.max(decays))
    return 1 if slowest == 0 else 2**31 if slowest >= 1 else max(1, math.ceil(math.log(FAINTEST) / math.log(slowest)))
