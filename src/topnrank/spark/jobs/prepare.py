"""`models.factor.prepare` for rows that live in a cluster: what all rows say together is added up, then each block is prepared.

What must be known of all rows: the overall mean and the items' offsets of ratings (two passes), how often items are liked,
and the neighbors, which the driver solves from the likes: they come to it as item numbers. Feedback that is a function of a
row and its user's other rows is weighted in the blocks; one that looks at all rows at once is for the driver (`is_local`).
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark import RDD, StorageLevel

from topnrank._typing import Float32Array, Int64Array
from topnrank.data.feedback.policies import Centered, EventWeights, Feedback, Threshold, Unary, WeightColumn
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.models.factor.prepare import (
    NEIGHBOR_SCORE_OF_A_LIKE,
    NO_FROZEN_TERMS,
    FrozenTerms,
    Prepared,
    Selection,
    facts_of,
    item_sampling_weights,
    like_sessions,
    prepare,
    values_of,
)
from topnrank.models.linear.neighbors import NO_SESSIONS, LikedItems, fit_neighbors
from topnrank.scorers import DeviationSums, RatingResiduals, TypeChannels
from topnrank.scorers.base import EQUAL_RECENCY, NO_ROWS
from topnrank.spark.data.interactions import SparkInteractions, UserBlock
from topnrank.spark.engine.tasks import TrainingBlock

_LOCAL = (Centered, EventWeights, Threshold, Unary, WeightColumn)
"""Feedback whose weights need no rows but the user's own."""


@dataclass(frozen=True)
class PreparedBlocks:
    """Training lists in the cluster, and what is needed to prepare others the same way."""

    lists: "RDD[TrainingBlock]"
    sizes: Int64Array
    """(n_users,) rows in each user's list"""
    residuals: RatingResiduals | TypeChannels | None
    facts: dict[str, Any]
    frozen: FrozenTerms


@dataclass(frozen=True)
class _Task:
    """What a block needs to be prepared."""

    policy: Feedback
    selection: Selection
    n_items: int
    type_names: tuple[str, ...]
    residuals: RatingResiduals | TypeChannels | None = None

    def rows(self, block: UserBlock) -> Interactions:
        return block.interactions(self.n_items, self.type_names)

    def prepared(self, block: UserBlock) -> Prepared:
        data = self.rows(block)
        earlier = Prepared(data, NO_ROWS, self.residuals, {})
        return prepare(data, self.policy, self.selection, strict=False, earlier=earlier)

    def lists(self, block: UserBlock) -> TrainingBlock:
        return TrainingBlock(block.first, self.prepared(block).rows)

    def sessions(self, block: UserBlock) -> Int64Array:
        """The sessions of the likes of the block, counted from 0."""
        prepared = self.prepared(block)
        assert self.selection.ridge is not None
        return like_sessions(prepared.data, prepared.rows.gains > 0, self.selection.ridge)

    def validation_error(self, block: UserBlock) -> tuple[str | None, str]:
        """Why the block alone could not teach an order, if so; and a digest of its rows."""
        data = self.rows(block)
        try:
            prepare(data, self.policy, self.selection._replace(ridge=None))
        except DataError as error:
            return str(error), data.fingerprint()
        return None, data.fingerprint()


def is_local(policy: Feedback) -> bool:
    """Whether the feedback weighs a row by itself and its user's other rows."""
    return type(policy) in _LOCAL


def prepare_blocks(data: SparkInteractions, policy: Feedback, selection: Selection) -> PreparedBlocks:
    """Training lists of all blocks."""
    task = _Task(policy, selection, data.n_items, data.type_names)
    complaints = data.blocks.map(task.validation_error).collect()
    if all(validation_error is not None for validation_error, _ in complaints):
        raise DataError(complaints[0][0])
    task = replace(task, residuals=_residuals(data, task))
    lists = data.blocks.map(task.lists).persist(StorageLevel.MEMORY_AND_DISK)
    lists, frozen = _frozen_terms(lists, task, data)
    sizes = np.concatenate(lists.map(_list_sizes).collect())
    digest = hashlib.sha256("".join(fingerprint for _, fingerprint in complaints).encode()).hexdigest()
    facts = {"fingerprint": digest[:16], "value": _value(data, task), **facts_of(policy, task.residuals)}
    return PreparedBlocks(lists, sizes, task.residuals, facts, frozen)


def _value(data: SparkInteractions, task: _Task) -> str:
    return str(data.blocks.map(lambda block: task.prepared(block).facts["value"]).first())


def _residuals(data: SparkInteractions, task: _Task) -> RatingResiduals | TypeChannels | None:
    """What histories know of a row beside its item: sums of all blocks, in their order."""
    selection = task.selection
    if selection.users != "history":
        return None
    if selection.by_type:
        assert isinstance(task.policy, EventWeights)
        return TypeChannels(tuple(task.policy.weights.values()))

    def weighted(block: UserBlock) -> tuple[Interactions, Float32Array]:
        rows = task.policy(task.rows(block))
        return rows, values_of(rows)

    def total(block: UserBlock) -> tuple[float, int]:
        _, values = weighted(block)
        return float(values.sum(dtype=np.float64)), values.size

    totals = data.blocks.map(total).collect()
    mean = sum(part for part, _ in totals) / sum(size for _, size in totals)

    def sums(block: UserBlock) -> Any:
        rows, values = weighted(block)
        return RatingResiduals.sums(rows.indptr, rows.indices, values, mean, rows.n_items)

    counts, deviations = np.zeros(data.n_items, np.int64), np.zeros(data.n_items)
    for more, further in data.blocks.map(sums).toLocalIterator(prefetchPartitions=True):  # one block here at a time
        counts += more
        deviations += further
    return RatingResiduals.of_sums(DeviationSums(counts, deviations), mean)


def _frozen_terms(
    lists: "RDD[TrainingBlock]", task: _Task, data: SparkInteractions
) -> tuple["RDD[TrainingBlock]", FrozenTerms]:
    """Chances and neighbors, and lists with what the neighbors say of each like when its user is left out."""
    selection, n_items = task.selection, task.n_items
    frozen = NO_FROZEN_TERMS
    if isinstance(task.residuals, TypeChannels):
        frozen = frozen._replace(channels=len(task.residuals.weights))
    if selection.negatives and selection.popular:
        counts = np.zeros(n_items, np.int64)
        for part in lists.map(lambda block: _like_counts(block, n_items)).toLocalIterator(prefetchPartitions=True):
            counts += part
        frozen = frozen._replace(sampling_weights=item_sampling_weights(counts))
    if selection.ridge is None:
        return lists, frozen
    sessions = NO_SESSIONS
    if selection.ridge.sessions is not None:
        sessions = _through_all(data.blocks.map(task.sessions).collect())
    return _with_neighbors(lists, frozen, task, sessions)


def _through_all(parts: list[Int64Array]) -> Int64Array:
    """The numbers of the sessions of all blocks, each counted from 0, as numbers through all of them."""
    counts = [int(part.max(initial=-1)) + 1 for part in parts]
    return np.concatenate([part + first for part, first in zip(parts, np.cumsum([0, *counts]), strict=False)])


def _with_neighbors(
    lists: "RDD[TrainingBlock]", frozen: FrozenTerms, task: _Task, sessions: Int64Array
) -> tuple["RDD[TrainingBlock]", FrozenTerms]:
    parts = lists.map(_likes).collect()
    sizes, items, recency_weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    assert task.selection.ridge is not None
    liked = LikedItems(
        indptr, items, task.n_items, recency_weights if recency_weights.size else EQUAL_RECENCY, sessions
    )
    solved = fit_neighbors(liked, task.selection.ridge, left_out=True)
    ends = np.cumsum([part[1].size for part in parts])
    neighbor_scores = lists.context.parallelize(np.split(solved.neighbor_scores, ends[:-1]), len(parts))
    neighbor_term = lists.zip(neighbor_scores).map(_with_links).persist(StorageLevel.MEMORY_AND_DISK)
    scale = NEIGHBOR_SCORE_OF_A_LIKE / max(float(np.abs(solved.neighbor_scores).mean()), 1e-6)
    return neighbor_term, frozen._replace(neighbors=solved.neighbors, scale=scale)


def _with_links(pair: tuple[TrainingBlock, Float32Array]) -> TrainingBlock:
    block, solved = pair
    neighbor_scores = np.zeros(block.rows.items.size, np.float32)
    neighbor_scores[block.rows.gains > 0] = solved
    return block._replace(rows=block.rows._replace(neighbor_scores=neighbor_scores))


def _like_counts(block: TrainingBlock, n_items: int) -> Int64Array:
    return np.bincount(block.rows.items[block.rows.gains > 0], minlength=n_items)


def _likes(block: TrainingBlock) -> tuple[Int64Array, Any, Float32Array]:
    """Likes of each user, their items, and what each counts."""
    rows, liked = block.rows, block.rows.gains > 0
    sizes = np.diff(np.concatenate([[0], np.cumsum(liked)])[rows.indptr])
    return sizes, rows.items[liked], rows.recency_weights[liked] if rows.recency_weights.size else EQUAL_RECENCY


def _list_sizes(block: TrainingBlock) -> Int64Array:
    """Rows in the list of each user."""
    rows = block.rows
    listed = np.ones(rows.items.size, np.int64) if not rows.listed.size else rows.listed.astype(np.int64)
    return np.diff(np.concatenate([[0], np.cumsum(listed)])[rows.indptr])
