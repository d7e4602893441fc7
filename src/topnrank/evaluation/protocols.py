"""The two protocols: which candidates a user's list holds, and the ranks of the labels in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topnrank._checks import is_number
from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.errors import DivergenceError, ParameterError
from topnrank.evaluation import _metrics_kernel as kernels
from topnrank.evaluation.beyond_accuracy import ItemCounts, TopLists
from topnrank.evaluation.labels import Labels, Ranker
from topnrank.evaluation.metrics import Measured, Metric, cuts_of, depth_of
from topnrank.kernels.top_items import mask_seen
from topnrank.rng import stream

PROTOCOLS = ("rated", "catalog")

_BLOCK_BYTES = 24 * 2**20
"""Size of a block of scores in `catalog`, so that it fits the cache."""

_PAIRS = 2**17
"""Pairs scored at once in `rated`: a model gathers a vector or two for each of them."""


@dataclass(frozen=True)
class Ranking:
    """The measured lists of all users."""

    measured: Measured
    top: TopLists
    n_seen: int = 0
    """Test rows left out because the user has the item in training."""


def rank_rated(
    model: Ranker, labels: Labels, metrics: Sequence[Metric], *, item_counts: ItemCounts | None = None
) -> Ranking:
    """Lists of the user's own test items; those the model does not know come last. For `item_counts` see `TopLists`."""
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
    tied = np.repeat(groups.sizes, groups.sizes)
    top = TopLists.of(metrics, model, labels.users, item_counts)
    top.add(labels.owner, ranked.items, np.arange(len(order)) - labels.indptr[labels.owner])
    return Ranking(_measure(ranked, above, tied, np.diff(labels.indptr), metrics), top)


def users_at_once(n_items: int) -> int:
    """Users whose scores of all items are held at a time."""
    return max(1, _BLOCK_BYTES // (4 * n_items))


def rank_catalog(
    model: Ranker,
    labels: Labels,
    metrics: Sequence[Metric],
    *,
    exclude_seen: bool,
    item_counts: ItemCounts | None = None,
) -> Ranking:
    """Lists of every item of the model, without the user's training items where `exclude_seen`.

    Test items the model does not know are in no list, but count as relevant items not found.
    """
    n_users, n_items = len(labels.users), len(model.fitted.items)
    size = users_at_once(n_items)
    top = TopLists.of(metrics, model, labels.users, item_counts)
    parts, n_seen = [], 0
    for first in range(0, n_users, size):
        part = labels.between(first, min(first + size, n_users))
        block = _score_block(model, part.users, exclude_seen=exclude_seen)
        scores = np.where(part.items >= 0, block[part.owner, part.items], np.float32(np.nan))
        kept = (part.items < 0) | ~np.isnan(scores)
        n_seen += len(kept) - int(kept.sum())
        part, scores = part.where(kept), scores[kept]
        order = kernels.order_lists(scores, part.indptr)
        groups = _tie_groups(scores[order], part.owner)
        indptr = np.searchsorted(groups.owner, np.arange(len(part.users) + 1))
        above, tied, length = kernels.place_in_catalog(block, indptr, scores[order][groups.starts], depth_of(metrics))
        above, tied = np.repeat(above, groups.sizes), np.repeat(tied, groups.sizes)
        parts.append(_measure(part.rows(order), above, tied, length, metrics))
        top.add_block(first, block)
    names = ("sums", "auc", "ideal", "n_relevant", "length")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    own = {name: np.concatenate([part.own[name] for part in parts]) for name in parts[0].own}
    return Ranking(replace(parts[0], **joined, own=own), top, n_seen)


def _score_block(model: Ranker, users: Int64Array, *, exclude_seen: bool) -> Float32Array:
    """(len(users), n_items) scores, writable; NaN marks the training items, which are not candidates."""
    block = np.require(model.score_block(users), dtype=np.float32, requirements=["C", "W", "O"])
    if np.isnan(block).any():
        row, item = np.argwhere(np.isnan(block))[0]
        raise _nan_error(model, int(users[row]), int(item))
    if exclude_seen:
        mask_seen(block, model.fitted.indptr, model.fitted.indices, users)
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


def _measure(
    labels: Labels, above: Int64Array, tied: Int64Array, length: Int64Array, metrics: Sequence[Metric]
) -> Measured:
    """Measure lists of labels, best first.

    `above` and `tied`, (n_rows,), count the candidates of higher and of equal score; `length`, (n_users,), all of them.
    """
    cuts = cuts_of(metrics)
    sums, auc = kernels.measure(
        kernels.RankedLists(labels.indptr, above, tied, labels.relevant, labels.gain, labels.stop, length), cuts
    )
    ideal = np.zeros((len(labels.users), len(cuts)))  # DCG of each user's graded gains in their best order
    if labels.gain.any():
        owner = labels.owner
        rank = np.arange(len(owner)) - labels.indptr[owner]
        gains = labels.gain[np.lexsort((-labels.gain, owner))] / np.log2(rank + 2.0)
        for column, cut in enumerate(cuts):
            ideal[:, column] = np.bincount(owner, weights=gains * (rank < cut), minlength=len(ideal))
    n_relevant = np.bincount(labels.owner, weights=labels.relevant, minlength=len(labels.users)).astype(np.float64)
    own = {
        metric.name: own_values(metric.function, labels, above, tied, length)
        for metric in metrics
        if metric.function is not None
    }
    return Measured(cuts, sums, auc, ideal, n_relevant, length, own)


def own_values(
    function: Callable[[Float64Array], float], labels: Labels, above: Int64Array, tied: Int64Array, length: Int64Array
) -> Float64Array:
    """(n_users,) what a function of the caller makes of each list; items of one score stand in random order there."""
    values = np.full(len(labels.users), np.nan)
    for user in np.flatnonzero(np.bincount(labels.owner, labels.relevant, len(values)) > 0).tolist():
        random = stream(0, "own metric", int(labels.users[user]))
        relevance = np.zeros(length[user])
        rows = slice(labels.indptr[user], labels.indptr[user + 1])
        for first in np.unique(above[rows][above[rows] < length[user]]).tolist():
            group = np.flatnonzero(above[rows] == first)
            places = random.permutation(int(tied[rows][group[0]]))[: len(group)] + first
            relevance[places] = labels.relevant[rows][group]
        value = function(relevance)
        if not is_number(value) and not (isinstance(value, float) and np.isnan(value)):
            name = getattr(function, "__name__", type(function).__name__)
            raise ParameterError(f"metrics: {name} must return a number for a list, got {value!r}")
        values[user] = value
    return values


def _nan_error(model: Ranker, user: int, item: int) -> DivergenceError:
    return DivergenceError(
        f"{type(model).__name__} gives NaN as the score of user {model.fitted.users.ids.item(user)!r} and item "
        f"{model.fitted.items.ids.item(item)!r}; fit it again with a smaller learning rate"
    )
