"""Models of order (Transitions, NextItemRidge) in the cluster: every block of users sums, one shuffle adds the sums up.

    block of rows --> timeline --> C, G, B of its users --> by ranges of items, added --> driver: the same solves as locally
                         '--------------------- what each row counts in the scores <-- settings

Rows stay in the cluster. To the driver come the sums, which are as large as the model; the likes, as item numbers, where
neighbors stand beside; and the rows of users with about `MOST_ROWS` rows where settings are "auto".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import RDD, StorageLevel

from topnrank._csr import indptr_from_counts
from topnrank._typing import IdArray, Int64Array
from topnrank.data.feedback.by_name import feedback_from
from topnrank.data.feedback.liked import likes_of_counts
from topnrank.data.feedback.policies import Feedback
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.models.factor.run import data_digest
from topnrank.models.linear.likes import likes_info
from topnrank.models.linear.neighbors import LikedItems
from topnrank.models.recent_popularity import TimedPairs
from topnrank.models.sequence.counts import count
from topnrank.models.sequence.links import link_arrays
from topnrank.models.sequence.model import OrderedModel, decay_list, row_arrays
from topnrank.models.sequence.parts import (
    Part,
    bias_alone,
    liked_pairs,
    likes_in,
    repeat_links,
    summed,
    undirected_links,
)
from topnrank.models.sequence.ridge import pair_sums
from topnrank.models.sequence.sums import ItemRows, OrderSums, added, below_each_other
from topnrank.models.sequence.timeline import Timeline, Totals
from topnrank.rng import mix
from topnrank.spark.data.interactions import SparkInteractions, UserBlock, collect_ids
from topnrank.spark.data.partition import partition_tables
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, ModelBlock
from topnrank.spark.jobs.popularity import MOST_ROWS, popularity_of_pairs
from topnrank.spark.jobs.prepare import DataCounts, is_local
from topnrank.spark.jobs.tables import task_threads
from topnrank.spark.session.session import described


class OrderBlock(NamedTuple):
    """The rows of the users of a block, in their order."""

    number: int
    first: int
    weighted: Interactions
    timeline: Timeline
    digest: int


def policy_of(local: OrderedModel, data: SparkInteractions, found: DataCounts) -> Feedback | None:
    """The feedback by which the rows are weighted; None where it needs the rows of all users at once."""
    policy = None
    if local.feedback is None:
        policy = likes_of_counts(found.ratings, None if data.type_names else found.weights)
    if policy is None:
        sample = data.blocks.first().interactions(data.n_items, data.type_names)
        policy = feedback_from(local.feedback, sample)
    return policy if is_local(policy) else None


def train_order(local: OrderedModel, data: SparkInteractions) -> DistributedModel | None:
    """The model trained on `data`; None where its feedback needs the rows of all users at once."""
    found = DataCounts.of(data)
    policy = policy_of(local, data, found)
    if policy is None:
        return None
    local.check()
    explicit = local.with_explicit_defaults(_some_rows(data)) if local.open_settings() else local
    with described(data.session.sparkContext, "sums over the order of rows"):
        blocks = _ordered_blocks(explicit, policy, data)
        try:
            return _Training(local, explicit, policy, data, blocks).run(found)
        finally:
            blocks.unpersist()


def _some_rows(data: SparkInteractions) -> Interactions:
    """All rows, or where there are too many those of users drawn by their numbers, by which settings are chosen."""
    if data.n_rows <= MOST_ROWS:
        return data.collect()
    share = np.uint64(MOST_ROWS / data.n_rows * 2.0**64)

    def drawn(block: UserBlock) -> UserBlock:
        rows = block.interactions(data.n_items)
        kept = mix((block.first + rows.user_index).astype(np.uint64)) < share
        taken = rows.take(kept)
        columns = {name: values[kept] for name, values in block.data.items() if name != "indptr"}
        return replace(block, data={"indptr": taken.indptr, **columns})

    return replace(data, blocks=data.blocks.map(drawn)).collect()


def _ordered_blocks(model: OrderedModel, policy: Feedback, data: SparkInteractions) -> "RDD[OrderBlock]":
    """The blocks with their rows in order; with the ids, by which rows of one moment are drawn."""
    items = data.session.sparkContext.broadcast(collect_ids(data.items))
    ids = partition_tables(data.users.select("block", "number", "id"), data.n_blocks)
    build = partial(_ordered, model=model, policy=policy, names=data.type_names)
    made = data.blocks.zip(ids).map(lambda both: build(both[0], both[1], items.value))
    return made.persist(StorageLevel.MEMORY_AND_DISK)


def _ordered(
    block: UserBlock,
    users: list[pa.Table],
    items: IdArray,
    model: OrderedModel,
    policy: Feedback,
    names: tuple[str, ...],
) -> OrderBlock:
    """Inside a task: the rows of a block in order."""
    table = pa.concat_tables(users).sort_by("number")
    ids = table["id"].to_numpy()
    own = IdMap(np.asarray(ids, np.int64 if ids.dtype.kind == "i" else object))
    columns: dict[str, Any] = dict(block.data)
    weighted = policy(Interactions(own, IdMap(items), type_names=names, **columns))
    digest = data_digest(block.interactions(len(items), names), block.first)
    return OrderBlock(block.number, block.first, weighted, model.timeline(weighted), digest)


@dataclass(frozen=True)
class _Training:
    """A training on blocks in order."""

    local: OrderedModel
    model: OrderedModel
    """With nothing "auto\""""
    policy: Feedback
    data: SparkInteractions
    blocks: "RDD[OrderBlock]"

    def run(self, found: DataCounts) -> DistributedModel:
        """Sums, learns, and makes the model."""
        data = self.data
        digests = sum(self.blocks.map(lambda block: block.digest).collect()) % 2**64
        totals = self._totals()
        if not totals.wanted:
            raise DataError(
                f"{type(self.local).__name__}: none of the {data.n_rows} rows has a weight above 0, so nobody likes "
                "anything; check the feedback: it says which ratings or events count as liked"
            )
        learned = summed([self.model.learn_from(self._sums(totals)), *self._beside()])
        info = likes_info(self.policy, f"{digests:016x}", rated=found.ratings is not None, counts=found.ratings)
        chosen = {name: getattr(self.model, name) for name in self.local.open_settings()}
        info = replace(info, chosen=chosen, rows=data.n_rows)
        unfitted = type(self.local)(**self.local.get_params())
        parameters = ItemParameters(unfitted, link_arrays(learned.links, learned.bias), info, data.n_items)
        model = self.model
        made = self.blocks.map(lambda block: _model_block(block, model)).persist(StorageLevel.MEMORY_AND_DISK)
        made.count()  # computed now, because what it is made of is let go
        shared = data.session.sparkContext.broadcast(parameters)
        return DistributedModel(
            data.session, parameters, data.users, data.items, made, data.firsts, shared, cached=data.cached
        )

    def _totals(self) -> Totals:
        """Added in the order of the blocks."""
        parts = self.blocks.map(lambda block: block.timeline.totals()).collect()
        return Totals(*(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True)))

    def _sums(self, totals: Totals) -> OrderSums:
        """The sums of all blocks: those for a range of items meet in one task, which adds them in the order of blocks."""
        model, n_ranges = self.model, max(1, min(self.data.n_blocks, self.data.n_items))
        firsts = np.arange(n_ranges + 1) * self.data.n_items // n_ranges
        pieces = self.blocks.flatMap(lambda block: _pieces(block, model, firsts))
        together = pieces.partitionBy(n_ranges, int).mapPartitions(_add_pieces, preservesPartitioning=True)
        found = [one for _, one in sorted(together.collect(), key=lambda pair: int(pair[0]))]
        return OrderSums.of(totals, {name: below_each_other([one[name] for one in found]) for name in found[0]})

    def _beside(self) -> list[Part]:
        """What stands beside the directed part, without a past."""
        beside, parts = self.model.beside, []
        if beside.undirected:
            links = undirected_links(self._likes())
            nothing = np.zeros(self.data.n_items)
            parts.append(Part(links, nothing, np.zeros((0, 1))).times(beside.undirected))
        if beside.recent_popularity:
            scores = popularity_of_pairs(self.data, self.blocks, _pairs_of).scores
            parts.append(bias_alone(scores).times(beside.recent_popularity))
        if beside.repeats:
            parts.append(repeat_links(self.data.n_items).times(beside.repeats))
        return parts

    def _likes(self) -> LikedItems:
        """The likes of all users, on the driver."""
        parts: list[LikedItems] = self.blocks.map(lambda block: likes_in(block.timeline)).collect()
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        return LikedItems(indptr_from_counts(sizes), np.concatenate([part.items for part in parts]), self.data.n_items)


def _pairs_of(block: OrderBlock) -> TimedPairs:
    """The liked rows of a block, users by their numbers among all."""
    pairs = liked_pairs(block.timeline)
    return pairs._replace(users=pairs.users + block.first)


def _pieces(block: OrderBlock, model: OrderedModel, firsts: Int64Array) -> Iterator[tuple[int, tuple[int, Any]]]:
    """Inside a task: the sums of a block, by ranges of items."""
    with task_threads():
        sums = _matrices(block.timeline, model)
    for number, (first, end) in enumerate(zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)):
        yield number, (block.number, {name: one.rows(first, end) for name, one in sums.items()})


def _matrices(timeline: Timeline, model: OrderedModel) -> dict[str, ItemRows]:
    """Inside a task: C, and where there are regressions G and B."""
    found: dict[str, ItemRows] = {}
    decays = getattr(model, "decays", None)
    if decays is None or model.get_params()["transitions"]:
        settings = model.count_settings()
        found["counts"] = ItemRows(*count(timeline, settings.window, settings.distance_power))
    if decays is not None:
        longest, m = int(model.get_params()["longest"]), np.arange(timeline.n_items, dtype=np.int32)
        pairs = pair_sums(timeline, decay_list(decays), longest)
        found["gram"] = ItemRows(*pairs.blocks[:3])
        found["diagonal"] = ItemRows(np.arange(m.size + 1), m, pairs.blocks.diagonal)
        found["pasts"] = ItemRows(pairs.indptr, pairs.others, pairs.pasts)
    return found


def _add_pieces(pieces: Iterable[tuple[int, tuple[int, Any]]]) -> Iterator[tuple[int, dict[str, ItemRows]]]:
    """Inside a task: the sums for a range of items."""
    by_range: dict[int, list[tuple[int, Any]]] = {}
    for number, piece in pieces:
        by_range.setdefault(number, []).append(piece)
    for number, found in by_range.items():
        parts = [part for _, part in sorted(found, key=lambda one: one[0])]
        yield number, {name: added([part[name] for part in parts]) for name in parts[0]}


def _model_block(block: OrderBlock, model: OrderedModel) -> ModelBlock:
    """Inside a task: what scoring needs."""
    pasts = np.concatenate([model.pasts(block.timeline), *model.beside.pasts(block.timeline)], axis=1)
    weighted = block.weighted
    arrays = row_arrays(weighted, block.timeline, pasts)
    return ModelBlock(block.number, block.first, weighted.indptr, weighted.indices, arrays)
