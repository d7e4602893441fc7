"""`models.factor.prepare` for rows in a cluster: each block is prepared once, and completed by what all blocks say together.

    block of rows --> lists, residuals missing   --> sums over all blocks (driver)  --> lists with residuals and neighbors

What all rows say together: the overall mean and the items' offsets of ratings, how often items are liked, and the neighbors,
which the driver solves from the likes: they come to it as item indices. Feedback that is a function of a row and its user's
other rows is applied in the blocks; feedback that looks at all rows at once is for the driver (`is_local`).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pyspark import RDD, StorageLevel

from topnrank._typing import Float32Array, Int64Array
from topnrank.data.feedback.policies import (
    Amounts,
    Centered,
    EventWeights,
    Feedback,
    Threshold,
    Unary,
    WeightColumn,
)
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError
from topnrank.models.base import FitInfo
from topnrank.models.factor.fitted import VALUES, row_arrays
from topnrank.models.factor.prepare import (
    FrozenTerms,
    Prepared,
    add_neighbor_scores,
    check_trainable,
    fit_frozen_terms,
    fit_info,
    like_sessions,
    likes_of,
    training_lists,
    type_channels,
)
from topnrank.models.factor.recipe import Recipe
from topnrank.models.factor.run import data_digest
from topnrank.models.linear.neighbors import NO_SESSIONS, LikedItems
from topnrank.models.recent_popularity import ItemPopularity
from topnrank.scorers import DeviationSums, RatingResiduals, TrainingLists, TypeChannels
from topnrank.scorers.base import EQUAL_RECENCY, NO_ROWS
from topnrank.spark.data.interactions import SparkInteractions, UserBlock

_LOCAL = (Amounts, Centered, EventWeights, Threshold, Unary, WeightColumn)
"""Feedback whose weights need no rows but the user's own."""


def is_local(policy: Feedback) -> bool:
    """Whether the feedback weighs a row by itself and its user's other rows."""
    return type(policy) in _LOCAL


class PreparedBlock(NamedTuple):
    """The training lists of the users of a block."""

    number: int
    first: int
    rows: TrainingLists
    """Without residuals and neighbors' scores until all blocks are known"""
    arrays: dict[str, Any]
    """What a fitted model keeps of each row: `fitted.row_arrays`"""
    sessions: Int64Array
    """Of the likes, counted from 0 in the block"""
    summary: "_Summary"


class _Summary(NamedTuple):
    """What the driver needs of a block."""

    complaint: str | None
    """Why nothing could be learned from the block alone"""
    digest: int
    value: Literal["ratings", "weights"] = "weights"
    total: float = 0.0
    """Sum of the rows' values"""
    n_rows: int = 0
    sizes: Int64Array = NO_SESSIONS
    """(n_users,) rows in each user's list"""


@dataclass(frozen=True)
class PreparedBlocks:
    """Training lists in the cluster, persisted until `unpersist`."""

    blocks: "RDD[PreparedBlock]"
    sizes: Int64Array
    """(n_users,) rows in each user's list"""
    residuals: RatingResiduals | TypeChannels | None
    frozen: FrozenTerms
    info: FitInfo

    def with_popularity(self, popular: ItemPopularity) -> Self:
        """The same lists, with the popularity of items beside what is trained."""
        info = replace(self.info, half_life_days=popular.half_life)
        return replace(self, frozen=self.frozen._replace(popularity=popular.scores), info=info)

    def unpersist(self) -> None:
        """Frees memory and disk in the cluster."""
        self.blocks.unpersist()


class DataCounts(NamedTuple):
    """How often each rating, and each weight, occurs in all blocks; None where the data has none."""

    ratings: RatingCounts | None
    weights: RatingCounts | None

    @classmethod
    def of(cls, data: SparkInteractions) -> "DataCounts":
        """Counted block by block."""

        def count(block: UserBlock) -> list[RatingCounts | None]:
            columns = (block.data.get(name) for name in cls._fields)
            return [None if column is None else RatingCounts.of(column) for column in columns]

        found = zip(*data.blocks.map(count).collect(), strict=True)
        return cls(*(None if None in parts else RatingCounts.joined(parts) for parts in found))


def prepare_blocks(
    data: SparkInteractions, policy: Feedback, recipe: Recipe, found: DataCounts | None = None
) -> PreparedBlocks:
    """Training lists of all blocks; `found` are their ratings, where they are counted already."""
    found = DataCounts.of(data) if found is None else found
    selection, n_items, names = recipe.selection, data.n_items, data.type_names
    first = data.blocks.map(lambda block: _prepare(block, recipe, policy, n_items, names))
    first = first.persist(StorageLevel.MEMORY_AND_DISK)
    summaries: list[_Summary] = first.map(lambda block: block.summary).collect()
    complaints = [one.complaint for one in summaries]
    if None not in complaints:
        first.unpersist()
        raise DataError(complaints[0])
    residuals: RatingResiduals | TypeChannels | None = None
    if selection.user_representation == "history":
        if selection.by_type:
            residuals = type_channels(policy)
        else:
            residuals = _rating_residuals(first, summaries, n_items, found.ratings)
    counts = np.zeros(n_items, np.int64)
    if selection.negatives and selection.popular:
        for part in first.map(lambda block: _like_counts(block, n_items)).toLocalIterator(prefetchPartitions=True):
            counts += part
    likes, ends = _all_likes(first, n_items) if selection.ridge is not None else (_NO_LIKES, [])
    frozen, neighbor_scores = fit_frozen_terms(selection, residuals, counts, likes)
    blocks = first
    if residuals is not None or neighbor_scores is not None:
        parts = [None] * len(summaries) if neighbor_scores is None else np.split(neighbor_scores, ends)
        scores = first.context.parallelize(parts, len(parts))
        completed = first.zip(scores).map(lambda both: _complete(both[0], both[1], residuals))
        blocks = completed.persist(StorageLevel.MEMORY_AND_DISK)
        blocks.count()  # computed now, because the blocks that it is made of are let go
        first.unpersist()
    digest = sum(one.digest for one in summaries) % 2**64
    info = fit_info(f"{digest:016x}", summaries[0].value, policy, residuals, found.ratings)
    return PreparedBlocks(blocks, np.concatenate([one.sizes for one in summaries]), residuals, frozen, info)


def _prepare(
    block: UserBlock, recipe: Recipe, policy: Feedback, n_items: int, type_names: tuple[str, ...]
) -> PreparedBlock:
    """Inside a task: the lists of a block, but for what needs all blocks."""
    data = block.interactions(n_items, type_names)
    digest, complaint = data_digest(data, block.first), None
    weighted, selection = policy(data), recipe.selection
    try:
        check_trainable(weighted, selection)
    except DataError as error:
        complaint = str(error)
    try:
        rows = training_lists(weighted, selection)
        sessions = like_sessions(weighted, rows.gains > 0, selection.ridge)
    except DataError as error:  # such as no timestamps: then no block has any
        summary = _Summary(complaint or str(error), digest)
        return PreparedBlock(block.number, block.first, NO_ROWS, {}, NO_SESSIONS, summary)
    value: Literal["ratings", "weights"] = "weights" if weighted.ratings is None or selection.by_type else "ratings"
    arrays = row_arrays(recipe, Prepared(weighted, rows, None, FitInfo(value=value)))
    total = float(arrays[VALUES].sum(dtype=np.float64))
    summary = _Summary(complaint, digest, value, total, len(weighted), _list_sizes(rows))
    return PreparedBlock(block.number, block.first, rows, arrays, sessions, summary)


def _list_sizes(rows: TrainingLists) -> Int64Array:
    """(n_users,) rows in the list of each user."""
    listed = rows.listed.astype(np.int64) if rows.listed.size else np.ones(rows.items.size, np.int64)
    return np.diff(np.concatenate([[0], np.cumsum(listed)])[rows.indptr])


def _rating_residuals(
    blocks: "RDD[PreparedBlock]", summaries: list[_Summary], n_items: int, ratings: RatingCounts | None
) -> RatingResiduals:
    """What histories know of a row beside its item, by sums over all blocks, in their order."""
    unit = ratings.unit if ratings is not None and summaries[0].value == "ratings" else 1.0
    mean = sum(one.total for one in summaries) / sum(one.n_rows for one in summaries) / unit

    def sums(block: PreparedBlock) -> Any:
        values = block.arrays[VALUES].astype(np.float64) / unit
        return RatingResiduals.sums(block.rows.indptr, block.rows.items, values, mean, n_items)

    counts, deviations = np.zeros(n_items, np.int64), np.zeros(n_items)
    for more, further in blocks.map(sums).toLocalIterator(prefetchPartitions=True):  # one block here at a time
        counts += more
        deviations += further
    return RatingResiduals.of_sums(DeviationSums(counts, deviations), mean, unit)


def _like_counts(block: PreparedBlock, n_items: int) -> Int64Array:
    return np.bincount(block.rows.items[block.rows.gains > 0], minlength=n_items)


_NO_LIKES = LikedItems(np.zeros(1, np.int64), np.empty(0, np.int32), 0)


def _all_likes(blocks: "RDD[PreparedBlock]", n_items: int) -> tuple[LikedItems, list[int]]:
    """The likes of all users, on the driver, and where those of each block but the last end."""
    parts: list[LikedItems] = blocks.map(lambda block: likes_of(block.rows, n_items, block.sessions)).collect()
    ends = np.cumsum([part.items.size for part in parts])
    n_sessions = [int(part.sessions.max(initial=-1)) + 1 for part in parts]  # counted through all blocks
    first_sessions = np.cumsum([0, *n_sessions[:-1]])
    likes = LikedItems(
        np.concatenate(
            [[0], *(part.indptr[1:] + end - part.items.size for part, end in zip(parts, ends, strict=True))]
        ),
        np.concatenate([part.items for part in parts]),
        n_items,
        np.concatenate([EQUAL_RECENCY, *(part.recency_weights for part in parts)]),
        np.concatenate([part.sessions + more for part, more in zip(parts, first_sessions, strict=True)]),
    )
    return likes, ends[:-1].tolist()


def _complete(
    block: PreparedBlock, neighbor_scores: Float32Array | None, residuals: RatingResiduals | TypeChannels | None
) -> PreparedBlock:
    """Inside a task: the block with what all blocks say together."""
    rows = block.rows
    if residuals is not None:
        rows = rows._replace(residuals=residuals.of(rows.indptr, rows.items, block.arrays[VALUES]))
    if neighbor_scores is not None:
        rows = add_neighbor_scores(rows, neighbor_scores)
    return block._replace(rows=rows, sessions=NO_SESSIONS)
