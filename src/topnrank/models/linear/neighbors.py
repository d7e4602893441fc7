"""Item neighbors in closed form: fitting the regressions, and scoring with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from topnrank._csr import row_owner
from topnrank._memory import require_memory
from topnrank._typing import BoolArray, Float32Array, Float64Array, FloatArray, Int32Array, Int64Array, IntArray
from topnrank.models.base import Fitted
from topnrank.models.linear._neighbors_kernel import (
    Gram,
    Likes,
    Sources,
    add_neighbor_scores,
    add_neighbor_scores_of_list,
    by_source,
    count_upper,
    gram_and_neighbors,
    pair_neighbor_scores,
    solve_neighbors,
    solve_neighbors_left_out,
)
from topnrank.rng import stream
from topnrank.scorers import Neighbors
from topnrank.scorers.base import EQUAL_RECENCY
from topnrank.scorers.neighbors import SCALE

# ----------------------------------------------------------------------------------------------------
# Neighbors from likes: one small ridge regression for each item, closed form (formulas: `scorers/_neighbors_kernel.py`).


@dataclass(frozen=True)
class Ridge:
    """The settings of the regressions."""

    neighbors: int = 50
    """T: items that may explain an item."""
    penalty: float = 100.0
    """lambda, on the scale of counts: that many users keep the weights near 0."""
    shrink: float = 20.0
    """Added to the cosine's denominator, on the scale of counts: rare pairs count less when neighbors are chosen."""
    user_power: float = 0.25
    """a: a user with n likes counts n^-a."""
    longest: int = 1000
    """Of a user with more likes only so many, drawn once, enter the co-occurrences, whose cost is the sum of squares."""
    sessions: float | None = None
    """Seconds without an event that end a session; then sessions stand in the place of users above. None: users do."""


NO_SESSIONS = np.empty(0, np.int64)
MOST_BYTES = 2**28
"""The entries of G are found by a bit for each pair of items where that takes no more; else they are searched, slower."""


class LikedItems(NamedTuple):
    """Liked pairs, CSR by user, items ascending."""

    indptr: Int64Array
    items: Int32Array
    n_items: int
    recency_weights: Float32Array = EQUAL_RECENCY
    """(n,) rho, what each like counts where a user's likes are summed; empty when all count 1"""
    sessions: Int64Array = NO_SESSIONS
    """(n,) which session a like is of, counted through all users in their order; empty when a user's likes are together"""


_NO_SCORES = np.empty(0, np.float32)
_NO_OWNERS = np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)


class Solved(NamedTuple):
    """What the regressions give."""

    neighbors: Neighbors
    neighbor_scores: Float32Array
    """For each liked pair what its item's regression says without its user, or its session; empty unless asked for"""


def fit_neighbors(liked: LikedItems, ridge: Ridge, *, left_out: bool = False) -> Solved:
    """N and W of all items; with `left_out` also the scores of the liked pairs by the regression without their user.

    Where likes are of sessions, these take the place of users, and what is left out is the session of the pair.
    """
    together = CoOccurrences.of(liked, ridge, ridge.neighbors)
    if left_out:
        return together.solve_left_out(ridge.neighbors, ridge.penalty)
    return Solved(together.solve(ridge.neighbors, [ridge.penalty])[0], _NO_SCORES)


@dataclass(frozen=True)
class CoOccurrences:
    """What all regressions on the same likes share, whatever their number of neighbors and their lambda."""

    liked: LikedItems
    places: Int64Array
    """(n_kept,) where the likes that are counted stand in `liked`"""
    likes: Likes
    gram: Gram
    scale: float
    """What a penalty of one user is on the scale of G"""
    ranked: Int32Array
    """(n_items, most) the items nearest to each item, nearest first; the item itself fills the rest"""

    @classmethod
    def of(cls, liked: LikedItems, ridge: Ridge, most: int) -> Self:
        """G of the likes, and for each item the `most` items with the highest cosine."""
        parts, order, owners = _by_session(liked) if liked.sessions.size else (liked, None, None)
        kept = _kept(parts, ridge.longest)
        likes = _likes(parts, kept, ridge.user_power)
        if owners is not None:
            likes = likes._replace(
                owners=owners,
                whole_indptr=liked.indptr,
                whole_items=liked.items,
                whole_strengths=recency_weights_of(liked),
            )
        counts = np.repeat(likes.weights, np.diff(likes.indptr))
        diagonal = np.bincount(likes.items, weights=counts, minlength=liked.n_items)
        scale = max(float(diagonal.sum()) / max(likes.items.size, 1), 1e-12)  # penalty and shrink count plain users
        gram = _empty_gram(likes, diagonal.astype(np.float32))
        ranked = np.empty((liked.n_items, max(1, min(most, liked.n_items - 1))), np.int32)
        halves = gram.columns, gram.values, gram.filled, gram.before
        gram_and_neighbors(likes, gram, ridge.shrink * scale, *halves, ranked)
        return cls(liked, np.flatnonzero(kept) if order is None else order[kept], likes, gram, scale, ranked)

    def solve(self, neighbors: int, penalties: Sequence[float]) -> list[Neighbors]:
        """N and W of all items for each lambda; G[N, N] is collected once."""
        ranked = self.ranked[:, :neighbors]
        items = np.empty(ranked.shape, np.int32)
        weights = np.zeros((len(penalties), *ranked.shape), np.float32)
        solve_neighbors(self.gram, np.array(penalties, np.float64) * self.scale, ranked, items, weights)
        return [Neighbors(items, solved) for solved in weights]

    def solve_left_out(self, neighbors: int, penalty: float) -> Solved:
        """N and W of all items, and the scores of the liked pairs by the regressions without their user or session."""
        ranked = self.ranked[:, :neighbors]
        solved = Neighbors(np.empty(ranked.shape, np.int32), np.zeros(ranked.shape, np.float32))
        scores = np.zeros(self.likes.items.size, np.float32)
        solve_neighbors_left_out(self.likes, self.gram, penalty * self.scale, ranked, *solved, scores)
        return Solved(solved, self._of_all_likes(solved, scores))

    def _of_all_likes(self, neighbors: Neighbors, scores: Float32Array) -> Float32Array:
        """`scores` of the counted likes, and those of all others, which entered no regression."""
        liked = self.liked
        whole = np.empty(liked.items.size, np.float32)
        whole[self.places] = scores
        others = np.ones(liked.items.size, np.bool_)
        others[self.places] = False
        users = row_owner(liked.indptr)[others]
        rest = np.empty(users.size, np.float32)
        lists = liked.indptr, liked.items, recency_weights_of(liked)
        pair_neighbor_scores(*neighbors, lists, users, liked.items[others].astype(np.int64), rest)
        whole[others] = rest
        return whole


def _by_session(liked: LikedItems) -> tuple[LikedItems, Int64Array, Int32Array]:
    """The likes session by session, where each of them stands in `liked`, and the owners of the sessions."""
    order = np.argsort(liked.sessions, kind="stable")  # items still ascend within a session
    sizes = np.bincount(liked.sessions)
    starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int64)
    users = np.repeat(np.arange(liked.indptr.size - 1, dtype=np.int32), np.diff(liked.indptr))
    parts = LikedItems(starts, liked.items[order], liked.n_items, recency_weights_of(liked)[order])
    return parts, order, users[order[starts[:-1]]]


def seen_from_sources(neighbors: Neighbors) -> Sources:
    """The same weights, listed for each item that pulls."""
    n_items = len(neighbors.items)
    size = int((neighbors.items != np.arange(n_items)[:, None]).sum())
    sources = Sources(np.zeros(n_items + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.float32))
    by_source(neighbors.items, neighbors.weights, *sources)
    return sources


def _kept(liked: LikedItems, longest: int) -> BoolArray:
    """(n,) whether a pair enters the co-occurrences: all but those beyond `longest` of a user, drawn at random."""
    sizes = np.diff(liked.indptr)
    kept = np.ones(liked.items.size, np.bool_)
    for user in np.flatnonzero(sizes > longest):
        lo = int(liked.indptr[user])
        dropped = stream(0, "longest", int(user)).permutation(int(sizes[user]))[longest:]
        kept[lo + dropped] = False
    return kept


def _likes(liked: LikedItems, kept: BoolArray, power: float) -> Likes:
    """The kept pairs from both sides, with the users' weights."""
    sizes = np.diff(np.concatenate([[0], np.cumsum(kept)])[liked.indptr])
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    items = liked.items[kept]
    entries = np.argsort(items, kind="stable")
    users = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)[entries]
    item_indptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=liked.n_items))]).astype(np.int64)
    weights = (np.maximum(sizes, 1) ** -power).astype(np.float32)
    own = (indptr, items, item_indptr, users, entries, weights, recency_weights_of(liked)[kept])
    return Likes(*own, *_NO_OWNERS)


def recency_weights_of(liked: LikedItems) -> Float32Array:
    """(n,) strengths, also where all count alike."""
    return liked.recency_weights if liked.recency_weights.size else np.ones(liked.items.size, np.float32)


def _empty_gram(likes: Likes, diagonal: Float32Array) -> Gram:
    """Room for the upper half of G."""
    counts = np.zeros(diagonal.size, np.int64)
    count_upper(likes, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    advice = "leave out rare items with filter(min_item_users=...), or users with very long histories"
    require_memory(8 * int(indptr[-1]), "counting which items are liked together", advice)
    n_items = diagonal.size
    words = -(-n_items // 64)
    shape = (n_items, words) if 12 * n_items * words <= MOST_BYTES else (0, 0)
    size = max(1, int(indptr[-1]))  # one at least: an entry is read before it is known whether it is there
    entries = np.empty(size, np.int32), np.zeros(size, np.float32)
    return Gram(indptr, *entries, diagonal, np.zeros(shape, np.uint64), np.empty(shape, np.int32))


# ----------------------------------------------------------------------------------------------------
# The neighbors' part of a fitted model's scores: beta times the weights between an item and the items a user likes.


NEIGHBORS, WEIGHTS, LIKED, RECENCY_WEIGHTS = "neighbors", "neighbor_weights", "seen_liked", "seen_recency_weights"
"""Names of the arrays in a fitted model."""


class NeighborTerm(NamedTuple):
    """Neighbors of all items and likes of all users, ready for scoring."""

    scale: float
    neighbors: Neighbors
    sources: Sources
    indptr: Int64Array
    """With `liked`: CSR of the items each user likes, ascending"""
    liked: Int32Array
    recency_weights: Float32Array
    """rho of `liked`"""

    @classmethod
    def of(cls, neighbors: Neighbors, liked: LikedItems) -> Self:
        """Their scores at a scale of 1."""
        sources = seen_from_sources(neighbors)
        return cls(1.0, neighbors, sources, liked.indptr, liked.items, recency_weights_of(liked))

    def add_to(self, block: Float32Array, users: IntArray) -> None:
        """Adds the links of known users to their (len(users), n_items) scores."""
        if len(users) == 1:  # one user's request waits for no other thread
            own = slice(self.indptr[users[0]], self.indptr[users[0] + 1])
            weights = np.float32(self.scale) * self.recency_weights[own]
            add_neighbor_scores_of_list(self.sources, self.liked[own], weights, block[0])
            return
        sizes = self.indptr[1:][users] - self.indptr[:-1][users]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][users] - indptr[:-1], sizes)
        weights = np.float32(self.scale) * self.recency_weights[places]
        add_neighbor_scores(self.sources, indptr, self.liked[places], weights, block)

    def of_pairs(self, users: Int64Array, items: Int64Array) -> Float32Array:
        """(len(users),) links of pairs."""
        scores = np.empty(users.size, np.float32)
        pair_neighbor_scores(*self.neighbors, (self.indptr, self.liked, self.recency_weights), users, items, scores)
        return np.float32(self.scale) * scores

    def of_items(self, items: Int64Array) -> Float32Array:
        """(len(items), n_items) what each of `items` alone says of all items."""
        weights = np.zeros((items.size, self.neighbors.items.shape[0]), np.float32)
        for row, item in enumerate(items):
            self.add_history(weights[row], np.array([item]), np.ones(1))
        return weights

    def add_history(self, scores: Float32Array, liked: IntArray, recency_weights: FloatArray) -> None:
        """Adds the neighbor scores of one user, known by the items liked and their recency weights, to (n_items,) scores."""
        weights = (self.scale * recency_weights).astype(np.float32)
        add_neighbor_scores_of_list(self.sources, liked.astype(np.int32), weights, scores)

    def parts(self, items: IntArray, targets: IntArray) -> Float64Array:
        """(n_targets, n) beta W_ji for the n items j of a history and the targets i."""
        near, weights = self.neighbors.items[targets], self.neighbors.weights[targets]
        matches = near[:, :, None] == np.asarray(items)[None, None, :]
        return np.asarray(self.scale * (weights[:, :, None] * matches).sum(axis=1, dtype=np.float64))


def neighbor_arrays(neighbors: Neighbors, liked: BoolArray) -> dict[str, Any]:
    """What a fitted model keeps of its neighbors: N, W, and which of the seen rows are likes."""
    return {NEIGHBORS: neighbors.items, WEIGHTS: neighbors.weights, LIKED: liked.astype(np.uint8)}


def neighbor_term(fitted: Fitted) -> NeighborTerm | None:
    """The links of a fitted model, made ready once; None for a model without neighbors."""
    if NEIGHBORS not in fitted.arrays:
        return None
    return fitted.cached(NeighborTerm, lambda: _make_neighbor_term(fitted))


def _make_neighbor_term(fitted: Fitted) -> NeighborTerm:
    arrays: dict[str, Any] = dict(fitted.arrays)
    neighbors = Neighbors(arrays[NEIGHBORS], arrays[WEIGHTS])
    liked = fitted.arrays[LIKED] > 0
    indptr = np.concatenate([[0], np.cumsum(liked)])[fitted.indptr].astype(np.int64)
    scale = float(fitted.arrays[SCALE][0]) if SCALE in fitted.arrays else 1.0
    rho = arrays[RECENCY_WEIGHTS][liked] if RECENCY_WEIGHTS in arrays else np.ones(int(liked.sum()), np.float32)
    return NeighborTerm(scale, neighbors, seen_from_sources(neighbors), indptr, fitted.indices[liked], rho)
