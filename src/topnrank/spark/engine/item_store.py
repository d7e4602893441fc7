"""Where the item side of the Spark engine lives: on the driver, broadcast whole, or in blocks whose rows are routed."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

import numpy as np

from topnrank._typing import Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport, remember_arrays
from topnrank.spark.engine.checkpoints import checkpointed, lasting, one_by_one
from topnrank.spark.engine.item_side import bytes_of, merge
from topnrank.spark.engine.settings import SparkSettings
from topnrank.spark.engine.tasks import (
    Answer,
    BlockVisit,
    ItemBlock,
    Report,
    Step,
    TrainingBlock,
    apply,
    cut_items,
    joined,
    needed_items,
    split_sums,
    step_item_block,
    visit_block,
    visit_routed,
)

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

MAX_PARTS = 64
"""Ranges of items whose sums the executors add up each by itself."""


class Blocks(NamedTuple):
    """The users' side: lists that never change, and vectors, where the scorer has such."""

    lists: "RDD[TrainingBlock]"
    vectors: "RDD[BlockVisit]"
    """Beside each block what its latest visit left"""
    problem: Callable[[], Problem]
    """In a task: what never changes of the problem, without rows"""


class Traffic(NamedTuple):
    """Bytes of numbers that a visit moved."""

    down: int
    """To the users: to every executor where items are broadcast, in all where rows are routed"""
    up: int
    """Sums from the users, in all"""
    routed: bool = False


class Items(Protocol):
    """The item side."""

    problem: Problem

    def sent(self) -> State:
        """What is broadcast with each visit."""
        ...

    def step(self, blocks: Blocks, step: "Broadcast[Step]") -> tuple[StepReport, "RDD[BlockVisit]", Traffic]:
        """One visit: what it reports, what it leaves of the users' blocks, and the bytes that it moved."""
        ...

    def state(self) -> State:
        """All parameters and accumulators, on the driver."""
        ...

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        ...

    def cut_lineage(self) -> None:
        """After this nothing depends on visits before."""
        ...


def spread(context: "SparkContext", elements: list[Any]) -> "RDD[Any]":
    """One partition for each element, however large: it travels as a broadcast of its own.

    What `parallelize` is given becomes part of the tasks, of which the driver's JVM holds several copies at once.
    """
    parts = [context.parallelize([0], 1).map(_value_of(context.broadcast(element))) for element in elements]
    return context.union(parts)


def _value_of(broadcast: "Broadcast[Any]") -> Callable[[int], Any]:
    return lambda _: broadcast.value


@final
class BroadcastItems:
    """Parameters on the driver: broadcast whole, stepped there by the sums of all blocks."""

    def __init__(self, problem: Problem, state: State, settings: SparkSettings) -> None:
        self.problem, self._state, self._settings = problem, state, settings
        self._starts = item_ranges(state, MAX_PARTS)
        self._largest = 0
        """Bytes of the largest sums that a block has sent"""

    def sent(self) -> State:
        """All of them; accumulators where blocks step items themselves."""
        return State(self._state.parameters, self._state.accumulators if self._settings.localPasses > 1 else {})

    def step(self, blocks: Blocks, step: "Broadcast[Step]") -> tuple[StepReport, "RDD[BlockVisit]", Traffic]:
        """Each block visits, the sums are added up in the order of the blocks, the items step."""
        problem = blocks.problem
        task = lambda pair: visit_block(problem(), step.value, pair[0], pair[1].vectors)  # noqa: E731
        after = one_by_one(blocks.lists.zip(blocks.vectors).map(task))
        if self.problem.scorer.user_block is not None:  # else nothing of it is used again
            after = after.persist(lasting())
        parts = self._sums(after)
        self._largest = max(self._largest, *map(bytes_of, parts))
        sums = merge(parts)
        moved = sums.report.moved + apply(self.problem, self._state, sums, step.value.passes)
        return sums.report._replace(moved=moved), after, Traffic(step.value.nbytes, sum(map(bytes_of, parts)))

    def _sums(self, after: "RDD[BlockVisit]") -> list[ItemSums]:
        """The sums of every block; where together they are many, those of every part of the items, added up before."""
        n_blocks, starts = after.getNumPartitions(), self._starts
        if n_blocks * self._largest <= self._settings.reduceLimit:
            return list(after.flatMap(lambda left: [] if left.sums is None else [left.sums]).collect())
        pieces = after.mapPartitionsWithIndex(
            lambda b, own: (piece for left in own for piece in _pieces(left, starts, b))
        )
        merged = pieces.groupByKey(starts.size - 1, _itself).flatMap(lambda pair: _merged(_in_order(pair[1])))
        return list(merged.collect())

    def state(self) -> State:
        """As it lies here."""
        return self._state

    def remember(self) -> Callable[[], None]:
        """Copies."""
        return remember_arrays(self._state.parameters)

    def cut_lineage(self) -> None:
        """There is none."""


@final
class RoutedItems:
    """Parameters in blocks on the executors; a visit asks for the rows it needs and sends their sums back.

    Four stages: what each block of users needs; the rows, by block of items; the visits; the items' steps.
    """

    def __init__(self, problem: Problem, state: State, context: "SparkContext", n_blocks: int) -> None:
        self.problem, self._context, self._n_user_blocks = problem, context, n_blocks
        self.starts = item_ranges(state, n_blocks)
        self._put(state)

    def _put(self, state: State) -> None:
        blocks = cut_items(state, self.starts)
        self._blocks: RDD[tuple[ItemBlock, Report | None]] = self._context.parallelize(
            [(block, None) for block in blocks], len(blocks)
        )

    def sent(self) -> State:
        """Nothing: rows travel where they are needed."""
        return State({}, {})

    def step(self, blocks: Blocks, step: "Broadcast[Step]") -> tuple[StepReport, "RDD[BlockVisit]", Traffic]:
        """Requests, answers, visits, steps."""
        n_users, n_items, starts, problem = self._n_user_blocks, self.starts.size - 1, self.starts, blocks.problem
        requests = blocks.lists.mapPartitionsWithIndex(
            lambda b, own: (request for block in own for request in _requests(problem(), step.value, block, starts, b))
        )
        asked = one_by_one(requests.groupByKey(n_items, _itself).mapValues(list))
        answers = self._blocks.zip(asked).flatMap(lambda pair: _answers(pair[0][0], pair[1][1], step.value))
        answered = one_by_one(answers.groupByKey(n_users, _itself).mapValues(list))
        visits = blocks.lists.zip(blocks.vectors).zip(answered)
        task = lambda given: visit_routed(  # noqa: E731
            problem(), step.value, given[0][0], given[0][1].vectors, given[1][1]
        )
        after = one_by_one(visits.map(task)).persist(lasting())
        pieces = after.mapPartitionsWithIndex(
            lambda b, own: (piece for left in own for piece in _pieces(left, starts, b))
        )
        sums = one_by_one(pieces.groupByKey(n_items, _itself).mapValues(_in_order))
        stepped = self._blocks.zip(sums).map(
            lambda pair: step_item_block(problem(), step.value, pair[0][0], pair[1][1])
        )
        return self._finish(one_by_one(stepped).persist(lasting()), after)

    def _finish(self, stepped: Any, after: "RDD[BlockVisit]") -> tuple[StepReport, "RDD[BlockVisit]", Traffic]:
        reports: list[Report] = stepped.map(lambda pair: pair[1]).collect()
        before, self._blocks = self._blocks, stepped
        before.unpersist()
        report = StepReport(*(sum(numbers) for numbers in zip(*(report.report for report in reports), strict=True)))
        down = sum(after.map(lambda left: left.received).collect())
        return report, after, Traffic(down, sum(report.bytes for report in reports), routed=True)

    def state(self) -> State:
        """Fetched from the executors."""
        parts: list[State] = self._blocks.map(lambda pair: pair[0].state).collect()
        return State(joined([part.parameters for part in parts]), joined([part.accumulators for part in parts]))

    def remember(self) -> Callable[[], None]:
        """The blocks never change: which ones they were."""
        blocks = self._blocks

        def put_back() -> None:
            self._blocks = blocks

        return put_back

    def cut_lineage(self) -> None:
        """By way of the driver, or of the checkpoint directory where there is one."""
        old = self._blocks
        if (fresh := checkpointed(old)) is not None:
            self._blocks = fresh
        else:
            self._put(self.state())
        old.unpersist()


def item_ranges(state: State, parts: int) -> Int64Array:
    """Where each of at most `parts` ranges of items begins, and the last one ends."""
    n_items = state.parameters["item_bias"].size
    starts: Int64Array = np.unique(np.linspace(0, n_items, min(parts, n_items) + 1).astype(np.int64))
    return starts


def _itself(element: Any) -> Any:
    return element


def _requests(
    problem: Problem, step: Step, block: TrainingBlock, starts: Int64Array, sender: int
) -> Iterator[tuple[int, tuple[int, Int32Array]]]:
    """To every item block, also where nothing is needed: none may miss its turn."""
    items = needed_items(problem, step, block)
    ends = np.searchsorted(items, starts)
    for receiver in range(starts.size - 1):
        yield receiver, (sender, items[ends[receiver] : ends[receiver + 1]])


def _answers(block: ItemBlock, requests: list[tuple[int, Int32Array]], step: Step) -> Iterator[tuple[int, Answer]]:
    parameters, n_here = block.state.parameters, block.state.parameters["item_bias"].size
    accumulators = block.state.accumulators if step.passes > 1 else {}
    for sender, items in requests:
        here = items - block.first
        rows, beside = (
            {name: part[here] if len(part) == n_here else part for name, part in blocks.items()}
            for blocks in (parameters, accumulators)
        )
        yield sender, Answer(items, rows, beside)


def _pieces(left: BlockVisit, starts: Int64Array, sender: int) -> Iterator[tuple[int, tuple[int, ItemSums | None]]]:
    pieces: list[ItemSums | None] = [*split_sums(left.sums, starts)] or [None] * (starts.size - 1)
    for receiver, piece in enumerate(pieces):
        yield receiver, (sender, piece)


def _merged(parts: list[ItemSums]) -> list[ItemSums]:
    return [merge(parts)] if parts else []


def _in_order(pieces: Any) -> list[ItemSums]:
    return [piece for _, piece in sorted(pieces, key=lambda pair: pair[0]) if piece is not None]
