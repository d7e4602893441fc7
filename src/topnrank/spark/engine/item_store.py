"""The item parameters of the Spark engine: on the driver and broadcast whole, or in blocks whose rows are routed."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

import numpy as np

from topnrank._typing import Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport
from topnrank.scorers import Parameters
from topnrank.spark.engine.checkpoints import checkpointed, one_by_one, persisted
from topnrank.spark.engine.settings import SparkSettings
from topnrank.spark.engine.tasks import (
    BatchStep,
    BlockResult,
    ItemBlock,
    ItemReport,
    ItemRows,
    TrainingBlock,
    add_reports,
    bytes_of,
    joined,
    merge_sums,
    needed_items,
    partition_items,
    partition_sums,
    rows_for,
    run_block,
    run_routed_block,
    update_item_block,
    update_items,
)

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

MAX_PARTS = 64
"""Most ranges of items whose sums are added up by one task each."""


class Blocks(NamedTuple):
    """The users' side: lists, which never change, and vectors, where the scorer has such."""

    lists: "RDD[TrainingBlock]"
    results: "RDD[BlockResult]"
    """Of each block in the latest step: its users' vectors"""
    problem: Callable[[], Problem]
    """Inside a task: the problem without rows"""


class Traffic(NamedTuple):
    """Bytes of arrays that a step moved."""

    down: int
    """To the users: to every executor where items are broadcast, in all where rows are routed"""
    up: int
    """Sums from the users, in all"""
    routed: bool = False


class StepResult(NamedTuple):
    """Result of a step on all blocks."""

    report: StepReport
    blocks: "RDD[BlockResult]"
    traffic: Traffic


class Items(Protocol):
    """The item side."""

    def broadcast_parameters(self) -> Parameters:
        """What is broadcast with each step."""
        ...

    def step(self, blocks: Blocks, step: "Broadcast[BatchStep]") -> StepResult:
        """One step of users and items."""
        ...

    def state(self) -> State:
        """Parameters and accumulators, on the driver."""
        ...

    def cut_lineage(self) -> None:
        """After this nothing depends on earlier steps."""
        ...


def distribute(context: "SparkContext", elements: list[Any]) -> "RDD[Any]":
    """One partition for each element, however large: it is sent as a broadcast of its own.

    What `parallelize` is given becomes part of the tasks, of which the driver's JVM holds several copies at once.
    """

    def partition(broadcast: "Broadcast[Any]") -> "RDD[Any]":
        return context.parallelize([0], 1).map(lambda _: broadcast.value)

    return context.union([partition(context.broadcast(element)) for element in elements])


@final
class BroadcastItems:
    """Parameters on the driver: broadcast whole, updated there by the sums of all blocks."""

    def __init__(self, problem: Problem, state: State, settings: SparkSettings) -> None:
        self._problem, self._state, self._settings = problem, state, settings
        self._starts = item_ranges(state, MAX_PARTS)
        self._largest = 0
        """Bytes of the largest sums that a block has sent"""

    def broadcast_parameters(self) -> Parameters:
        """All of them."""
        return self._state.parameters

    def step(self, blocks: Blocks, step: "Broadcast[BatchStep]") -> StepResult:
        """A task for each block; the sums are added up in the order of the blocks, and the items updated."""
        problem = blocks.problem

        def task(pair: tuple[TrainingBlock, BlockResult]) -> BlockResult:
            return run_block(problem(), step.value, pair[0], pair[1].vectors)

        results = blocks.lists.zip(blocks.results).map(task)
        # without users' vectors nothing of the results is used again
        results = one_by_one(results) if self._problem.scorer.user_block is None else persisted(results)
        parts = self._sums(results)
        self._largest = max(self._largest, *map(bytes_of, parts))
        traffic = Traffic(step.value.nbytes, bytes_of(*parts))
        sums = merge_sums(parts)
        moved = sums.report.moved + update_items(self._problem, self._state, sums)
        return StepResult(sums.report._replace(moved=moved), results, traffic)

    def _sums(self, results: "RDD[BlockResult]") -> list[ItemSums]:
        """The sums of every block; where they are large, those of every range of items, added up by the executors."""
        if results.getNumPartitions() * self._largest <= self._settings.reduceLimit:
            return list(results.flatMap(lambda result: [] if result.sums is None else [result.sums]).collect())
        merged = _sums_by_range(results, self._starts).flatMap(lambda pair: [merge_sums(pair[1])] if pair[1] else [])
        return list(merged.collect())

    def state(self) -> State:
        """On the driver already."""
        return self._state

    def cut_lineage(self) -> None:
        """There is none."""


@final
class RoutedItems:
    """Parameters in blocks on the executors; a step asks for the rows it needs and sends their sums back.

    Four stages: what each block of users needs; the rows, by block of items; the users' steps; the items' updates.
    """

    def __init__(self, problem: Problem, state: State, context: "SparkContext", n_blocks: int) -> None:
        self._problem, self._context, self._n_user_blocks = problem, context, n_blocks
        self._starts = item_ranges(state, n_blocks)
        self._blocks = self._parallelized(state)

    def _parallelized(self, state: State) -> "RDD[tuple[ItemBlock, ItemReport | None]]":
        blocks = partition_items(state, self._starts)
        return self._context.parallelize([(block, None) for block in blocks], len(blocks))

    def broadcast_parameters(self) -> Parameters:
        """None: rows are sent where they are needed."""
        return {}

    def step(self, blocks: Blocks, step: "Broadcast[BatchStep]") -> StepResult:
        """Requests, answers, users' steps, items' updates."""
        n_items, starts, problem = self._starts.size - 1, self._starts, blocks.problem

        def requests(sender: int, own: Iterator[TrainingBlock]) -> Iterator[tuple[int, tuple[int, Int32Array]]]:
            for block in own:  # to every item block, also where nothing is needed: all must get as many
                items = needed_items(problem(), step.value, block)
                ends = np.searchsorted(items, starts)
                for receiver in range(n_items):
                    yield receiver, (sender, items[ends[receiver] : ends[receiver + 1]])

        def answers(pair: Any) -> Iterator[tuple[int, ItemRows]]:
            (block, _), (_, requested) = pair
            return ((sender, rows_for(block, items)) for sender, items in requested)

        def run(given: Any) -> BlockResult:
            (block, before), (_, rows) = given
            return run_routed_block(problem(), step.value, block, before.vectors, rows)

        def update(pair: Any) -> tuple[ItemBlock, ItemReport]:
            (block, _), (_, parts) = pair
            return update_item_block(problem(), block, parts)

        asked = _grouped(blocks.lists.mapPartitionsWithIndex(requests), n_items)
        answered = _grouped(self._blocks.zip(asked).flatMap(answers), self._n_user_blocks)
        results = persisted(blocks.lists.zip(blocks.results).zip(answered).map(run))
        before, after = self._blocks, persisted(self._blocks.zip(_sums_by_range(results, starts)).map(update))
        reports: list[ItemReport] = after.map(lambda pair: pair[1]).collect()
        self._blocks = after
        before.unpersist()
        down = sum(results.map(lambda result: result.received).collect())
        traffic = Traffic(down, sum(report.received for report in reports), routed=True)
        return StepResult(add_reports([report.report for report in reports]), results, traffic)

    def state(self) -> State:
        """Fetched from the executors."""
        parts: list[State] = self._blocks.map(lambda pair: pair[0].state).collect()
        return State(joined([part.parameters for part in parts]), joined([part.accumulators for part in parts]))

    def cut_lineage(self) -> None:
        """By way of the checkpoint directory, or of the driver where there is none."""
        old, fresh = self._blocks, checkpointed(self._blocks)
        self._blocks = self._parallelized(self.state()) if fresh is None else fresh
        old.unpersist()


def item_ranges(state: State, parts: int) -> Int64Array:
    """Where each of at most `parts` ranges of items begins, and the last one ends."""
    n_items = state.parameters["item_bias"].size
    starts: Int64Array = np.unique(np.linspace(0, n_items, min(parts, n_items) + 1).astype(np.int64))
    return starts


def _grouped(pairs: "RDD[Any]", n: int) -> "RDD[Any]":
    """(receiver, list of what it was sent) for each of n receivers, one in each partition."""
    return one_by_one(pairs.groupByKey(n, lambda receiver: receiver).mapValues(list))


def _sums_by_range(results: "RDD[BlockResult]", starts: Int64Array) -> "RDD[Any]":
    """(range of items, sums of each block) for each range, in the order of the blocks."""

    def pieces(sender: int, own: Iterator[BlockResult]) -> Iterator[tuple[int, tuple[int, ItemSums | None]]]:
        for result in own:
            for receiver, piece in enumerate(partition_sums(result.sums, starts)):
                yield receiver, (sender, piece)

    def in_order(sent: list[tuple[int, ItemSums | None]]) -> list[ItemSums]:
        return [piece for _, piece in sorted(sent, key=lambda pair: pair[0]) if piece is not None]

    return _grouped(results.mapPartitionsWithIndex(pieces), starts.size - 1).mapValues(in_order)
