"""The two protocols: which candidates a user's list holds, and where the labels stand in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.errors import DivergenceError
from topnrank.evaluation import _metrics_kernel as kernels
from topnrank.evaluation.beyond_accuracy import ItemCounts, TopLists
from topnrank.evaluation.labels import Labels, Ranker
from topnrank.evaluation.metrics import Measured, Metric, cuts_of, depth_of
from topnrank.kernels.top_items import mask_seen

PROTOCOLS = ("rated", "catalog")

_BLOCK_BYTES = 24 * 2**20
"""Size of a block of scores in `catalog`: larger ones do not fit the cache."""

_PAIRS = 2**17
"""Pairs scored at once in `rated`: a model gathers a vector or two for each."""


@dataclass(frozen=True)
class Ranking:
    """The measured lists of all users."""

    measured: Measured
    top: TopLists
    n_seen: int = 0
    """Test rows left out because the user has the item in training."""


def rank_rated(model: Ranker, labels: Labels, metrics: Sequence[Metric], crowd: ItemCounts | None = None) -> Ranking:
    """Lists that hold the user's own test items; those the model does not know come last. For `crowd` see `TopLists`."""
    scores = np.full(len(labels.items), -np.inf, dtype=np.float32)
    known = np.flatnonzero(labels.items >= 0)
    users = labels.users[labels.owner]
    for start in range(0, len(known), _PAIRS):
        rows = known[start : start + _PAIRS]
        scores[rows] = model.score_pairs(users[rows], labels.items[rows])
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise _nan_error(model, int(users[row]), int(labels.items[row]))
    order = kernels.order_lists(scores, labels.indptr)
    ranked, groups = labels.rows(order), _tie_groups(scores[order], labels.owner)
    above = np.repeat(groups.starts - labels.indptr[groups.owner], groups.sizes)
    places = (above, np.repeat(groups.sizes, groups.sizes), np.diff(labels.indptr))
    top = TopLists.of(metrics, model, labels.users, crowd)
    top.add(labels.owner, ranked.items, np.arange(len(order)) - labels.indptr[labels.owner])
    return Ranking(_measure(ranked, places, metrics), top)


def rank_catalog(
    model: Ranker, labels: Labels, metrics: Sequence[Metric], *, exclude_seen: bool, crowd: ItemCounts | None = None
) -> Ranking:
    """Lists that hold every item of the model, without the user's training items where `exclude_seen`.

    Test items the model does not know stand nowhere, but count among those it should have found.
    """
    n_users, n_items = len(labels.users), len(model.item_map)
    size = max(1, _BLOCK_BYTES // (4 * n_items))
    top = TopLists.of(metrics, model, labels.users, crowd)
    parts, n_rows = [], 0
    for first in range(0, n_users, size):
        block_labels = labels.between(first, min(first + size, n_users))
        block = _scores(model, block_labels.users, exclude_seen=exclude_seen)
        measured, n_kept = _rank_block(block, block_labels, metrics)
        top.add_block(first, block)
        parts.append(measured)
        n_rows += n_kept
    names = ("sums", "auc", "ideal", "n_relevant", "length")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Ranking(replace(parts[0], **joined), top, len(labels.items) - n_rows)


def _rank_block(block: Float32Array, labels: Labels, metrics: Sequence[Metric]) -> tuple[Measured, int]:
    """Measure the lists of a few users, NaN for no candidate; also returns how many labels were not seen in training."""
    scores = np.where(labels.items >= 0, block[labels.owner, labels.items], np.float32(np.nan))
    unseen = (labels.items < 0) | ~np.isnan(scores)
    labels, scores = labels.where(unseen), scores[unseen]
    order = kernels.order_lists(scores, labels.indptr)
    groups = _tie_groups(scores[order], labels.owner)
    indptr = np.searchsorted(groups.owner, np.arange(len(labels.users) + 1))
    above, tied, length = kernels.place_in_catalog(block, indptr, scores[order][groups.starts], depth_of(metrics))
    places = (np.repeat(above, groups.sizes), np.repeat(tied, groups.sizes), length)
    return _measure(labels.rows(order), places, metrics), len(scores)


def _scores(model: Ranker, users: Int64Array, *, exclude_seen: bool) -> Float32Array:
    """(len(users), n_items) scores in an array of our own; NaN marks training items that are no candidates."""
    block = np.require(model.score_block(users), dtype=np.float32, requirements=["C", "W", "O"])
    if np.isnan(block).any():
        row, item = np.argwhere(np.isnan(block))[0]
        raise _nan_error(model, int(users[row]), int(item))
    if exclude_seen:
        mask_seen(block, model.seen_indptr, model.seen_indices, users)
    return block


@dataclass(frozen=True)
class _TieGroups:
    """Neighboring rows of one user with equal scores, (n_groups,) each."""

    starts: Int64Array
    sizes: Int64Array
    owner: Int64Array


def _tie_groups(scores: Float32Array, owner: Int64Array) -> _TieGroups:
    """The groups of rows that are sorted by user and score; each NaN is a group of its own."""
    new = np.ones(len(scores), dtype=np.bool_)
    new[1:] = (scores[1:] != scores[:-1]) | (owner[1:] != owner[:-1])
    starts = np.flatnonzero(new)
    return _TieGroups(starts, np.diff(starts, append=len(scores)), owner[starts])


def _measure(labels: Labels, places: tuple[Int64Array, Int64Array, Int64Array], metrics: Sequence[Metric]) -> Measured:
    """`places`: above and tied of each row, best first, and the length of each user's list."""
    above, tied, length = places
    cuts = cuts_of(metrics)
    lists = kernels.RankedLists(labels.indptr, above, tied, labels.relevant, labels.gain, labels.stop, length)
    sums, auc = kernels.measure(lists, cuts)
    return Measured(cuts, sums, auc, _ideal(labels, cuts), labels.n_relevant, length)


def _ideal(labels: Labels, cuts: Int64Array) -> Float64Array:
    """(n_users, n_cuts) DCG of each user's graded gains in their best order."""
    ideal = np.zeros((len(labels.users), len(cuts)))
    if labels.gain.any():
        owner = labels.owner
        place = np.arange(len(owner)) - labels.indptr[owner]
        gains = labels.gain[np.lexsort((-labels.gain, owner))] / np.log2(place + 2.0)
        for column, cut in enumerate(cuts):
            ideal[:, column] = np.bincount(owner, weights=gains * (place < cut), minlength=len(ideal))
    return ideal


def _nan_error(model: Ranker, user: int, item: int) -> DivergenceError:
    return DivergenceError(
        f"{type(model).__name__} gives NaN as the score of user {model.user_map.ids.item(user)!r} and item "
        f"{model.item_map.ids.item(item)!r}; fit it again with a smaller learning rate"
    )
