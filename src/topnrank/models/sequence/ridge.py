"""The next item regressed on the decayed past, at several scales of time at once: closed form, features cut for each item.

    h_t = sum_{s < t} d_k^(t-1-s) L(s, t) past_s e(i_s, k)         for scales k; L(s, t) what pauses leave of the past
    G = sum_t v_t h_t h_t',   B = sum_t v_t h_t e(i_t)'            v_t what row t counts as a next item
    W_i = (G[N, N] + lambda I)^-1 B[N, i]

N(i): at each scale the features f with the largest B_fi / (sqrt(G_ff n_i) + shrink), or all features, in one system for all
items.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._memory import require_memory
from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array
from topnrank.errors import DivergenceError
from topnrank.models.sequence._sequence_kernel import (
    Links,
    PairBlocks,
    PairSums,
    Scales,
    all_pasts,
    count_pairs,
    count_pasts,
    fill_pairs,
    fill_pasts,
    futures,
    nearest_features,
    nearest_of_sums,
    solve_features,
    whole_matrix,
)
from topnrank.models.sequence.links import links_of
from topnrank.models.sequence.timeline import Timeline, Totals, decayed

TRAINED = 0.01
"""In training, rows of the past that count less than this share are left out."""
KEPT = 800
"""Of the weights of an item on all features so many are kept, those that say most."""


class AllFeatures(NamedTuple):
    """What the regressions of all items on all features share, whatever their lambda."""

    blocks: PairBlocks
    right: Float32Array
    """(n_items, n_items S) B', features by item, then scale"""
    unit: float
    """What a penalty of one row is on the scale of G"""

    @classmethod
    def of(cls, timeline: Timeline, decays: FloatArray, longest: int) -> Self:
        """G by pairs of items, and B."""
        scales, m = scales_of(decays, longest), timeline.n_items
        right = np.zeros((m, m * len(decays)), np.float32)
        all_pasts(timeline.events, scales, right)
        return cls(pair_blocks(timeline, scales), right, timeline.totals().unit)

    @classmethod
    def of_sums(cls, pairs: PairSums, totals: Totals) -> Self:
        """The same of sums that were made elsewhere."""
        m, S = pairs.blocks.diagonal.shape[:2]
        right = np.zeros((m, m, S), np.float32)
        right[np.repeat(np.arange(m), np.diff(pairs.indptr)), pairs.others] = pairs.pasts
        return cls(pairs.blocks, right.reshape(m, m * S), totals.unit)

    def solve(self, penalty: float) -> Links:
        """W, seen from the features; the largest `KEPT` weights of each item, by what they move."""
        from scipy.linalg import get_lapack_funcs

        n = self.right.shape[1]
        require_memory(8 * n * n, "one system of all features", "give neighbors=100, so that each item has a small one")
        A = np.zeros((n, n), np.float32)
        whole_matrix(self.blocks, penalty * self.unit, A)
        potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (A,))
        U, failed = potrf(A.T, lower=True, overwrite_a=True)  # A in the order of columns, its lower half
        if failed:
            raise DivergenceError(
                "the regressions cannot be solved in single precision: the regularization is too small for these data; set "
                "it higher"
            )
        W, _ = potrs(U, self.right.T, lower=True)
        del U
        weights = np.ascontiguousarray(W.T)
        del W
        diagonal = np.ascontiguousarray(self.blocks.diagonal.diagonal(axis1=1, axis2=2)).ravel()
        if n <= KEPT:
            return links_of(np.tile(np.arange(n, dtype=np.int32), (len(weights), 1)), weights, n)
        chosen = np.empty((len(weights), KEPT), np.int32)
        for item, row in enumerate(weights):
            chosen[item] = np.sort(np.argpartition(row**2 * diagonal, n - KEPT)[n - KEPT :])
        return links_of(chosen, np.take_along_axis(weights, chosen, axis=1), n)


@dataclass(frozen=True)
class NextItemSystem:
    """What the regressions of all items on their nearest features share, whatever their lambda."""

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
        events, m, S = timeline.events, timeline.n_items, len(decays)
        scales, totals = scales_of(decays, longest), timeline.totals()
        unit, norms, blocks = totals.unit, totals.by_item, pair_blocks(timeline, scales)
        chosen = np.empty((m, S * max(1, min(neighbors, m))), np.int32)
        right = np.zeros(chosen.shape, np.float32)
        nearest_features(events, scales, blocks.diagonal, norms, shrink * unit, chosen, right)
        return cls(blocks, chosen, right, unit)

    @classmethod
    def of_sums(cls, pairs: PairSums, totals: Totals, neighbors: int, shrink: float) -> Self:
        """The same of sums that were made elsewhere."""
        m, S = pairs.blocks.diagonal.shape[:2]
        chosen = np.empty((m, S * max(1, min(neighbors, m))), np.int32)
        right = np.zeros(chosen.shape, np.float32)
        nearest_of_sums(*pairs[1:], pairs.blocks.diagonal, totals.by_item, shrink * totals.unit, chosen, right)
        return cls(pairs.blocks, chosen, right, totals.unit)

    def solve(self, penalty: float) -> Links:
        """W, seen from the features."""
        weights = np.zeros((1, *self.chosen.shape), np.float32)
        penalties = np.array([penalty * self.unit])
        solve_features(self.blocks, penalties, self.chosen, self.right, weights)
        return links_of(self.chosen, weights[0], self.blocks.diagonal.shape[0] * self.blocks.diagonal.shape[1])


def pair_sums(timeline: Timeline, decays: FloatArray, longest: int) -> PairSums:
    """G and B of all pairs."""
    m, scales = timeline.n_items, scales_of(decays, longest)
    sizes = np.zeros(m, np.int64)
    count_pasts(timeline.events, scales, sizes)
    indptr = indptr_from_counts(sizes)
    others, pasts = np.empty(indptr[-1], np.int32), np.empty((indptr[-1], len(decays)), np.float32)
    fill_pasts(timeline.events, scales, indptr, others, pasts)
    return PairSums(pair_blocks(timeline, scales), indptr, others, pasts)


def pair_blocks(timeline: Timeline, scales: Scales) -> PairBlocks:
    """G by pairs of items."""
    events, m, S = timeline.events, timeline.n_items, len(scales.decays)
    reach = max(1, int(scales.reaches.max()))
    R = np.zeros((len(events.items), S, S), np.float32)
    futures(events, scales.decays, R)
    sizes = np.zeros(m, np.int64)
    count_pairs(events, reach, sizes)
    indptr = indptr_from_counts(sizes)
    n_pairs = indptr[-1]
    values, diagonal = np.empty((n_pairs, S, S), np.float32), np.empty((m, S, S), np.float32)
    blocks = PairBlocks(indptr, np.empty(n_pairs, np.int32), values, diagonal)
    fill_pairs(events, scales, reach, R, *blocks)
    return blocks


def ridge_past(timeline: Timeline, decays: FloatArray) -> Float64Array:
    """(n, S) what the rows of histories count."""
    return np.asarray(timeline.in_scores(decayed(timeline.ages(), decays)))


def scales_of(decays: FloatArray, longest: int) -> Scales:
    """The scales, each with the rows after which nothing is left of the past, at most `longest`."""
    reaches = [0 if one == 0 else math.ceil(math.log(TRAINED) / math.log(one)) for one in decays]
    return Scales(np.ascontiguousarray(decays, np.float64), np.minimum(np.array(reaches, np.int64), longest))
