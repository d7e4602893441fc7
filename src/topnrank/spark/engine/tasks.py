"""What the tasks of the Spark engine compute; nothing here needs pyspark.

A task holds one block of users. It gets what changes (`BatchStep`) by a broadcast, runs its part of the batch with the CPU
engine's kernels, and returns its users' new vectors and the gradient sums of the items. Tasks are functions of their input
alone: Spark may run one again after an executor was lost, or twice at once, with the same result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import Float32Array, FloatArray, Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport, TrainingTime
from topnrank.engines.cpu import CpuEngine
from topnrank.kernels.updates import add_rows, step_number, step_rows
from topnrank.scorers import Parameters, TrainingLists
from topnrank.scorers.neighbors import SCALE

EMPTY_REPORT = StepReport(0.0, 0, 0, 0.0)


class TrainingBlock(NamedTuple):
    """The training lists of consecutive users."""

    first: int
    """Index of the first user"""
    rows: TrainingLists


class UserVectors(NamedTuple):
    """The vectors of a block's users, where the scorer has such, and their accumulators."""

    values: Float32Array
    accumulators: Float32Array


class BlockResult(NamedTuple):
    """Result of a step on a block of users."""

    vectors: UserVectors | None
    sums: ItemSums | None
    """None where no user of the block is in the batch"""
    received: int = 0
    """Bytes of the rows that were sent to the block, where rows are routed"""


@dataclass(frozen=True)
class BatchStep:
    """What is the same for all blocks in one step."""

    parameters: Parameters
    """Of the items; empty where rows are routed"""
    users: Int64Array | None
    """Indices of the batch's users, ascending; None for all"""
    when: TrainingTime

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return bytes_of(*self.parameters.values()) + (0 if self.users is None else self.users.nbytes)


def partition_lists(rows: TrainingLists, blocks: int) -> list[TrainingBlock]:
    """The lists of all users in at most `blocks` parts of about equally many rows; none is empty."""
    n_users = rows.indptr.size - 1
    wanted = np.searchsorted(rows.indptr, np.linspace(0, rows.indptr[-1], blocks + 1)[1:-1])
    ends = np.unique(np.concatenate([[0], wanted, [n_users]]))
    return [TrainingBlock(int(first), _lists_of(rows, int(first), int(end))) for first, end in pairwise(ends)]


def _lists_of(rows: TrainingLists, first: int, end: int) -> TrainingLists:
    """The lists of the users first .. end - 1."""
    own = slice(int(rows.indptr[first]), int(rows.indptr[end]))
    parts = {name: getattr(rows, name) for name in rows._fields if name != "indptr"}
    kept = {name: part[own] if part.size else part for name, part in parts.items()}
    return TrainingLists(indptr=rows.indptr[first : end + 1] - rows.indptr[first], **kept)


def local_users(step: BatchStep, block: TrainingBlock) -> Int64Array:
    """The batch's users in the block, by their position there."""
    n_users = block.rows.indptr.size - 1
    if step.users is None:
        return np.arange(n_users)
    first, end = np.searchsorted(step.users, [block.first, block.first + n_users])
    return step.users[first:end] - block.first


def run_block(problem: Problem, step: BatchStep, block: TrainingBlock, vectors: UserVectors | None) -> BlockResult:
    """The block's part of a batch, with the parameters of all items at hand."""
    return _run(problem, step, block, vectors, step.parameters, None)


def _run(
    problem: Problem,
    step: BatchStep,
    block: TrainingBlock,
    vectors: UserVectors | None,
    items: Parameters,
    item_ids: Int32Array | None,
) -> BlockResult:
    """A step of a CPU engine of one thread; the vectors are copied first, because the input of a task must not change."""
    users, name = local_users(step, block), problem.scorer.user_block
    if users.size == 0:
        return BlockResult(vectors, None)
    state = State(dict(items), dict(items))  # `sums` uses no accumulators of items
    if vectors is not None and name is not None:
        state.parameters[name], state.accumulators[name] = vectors.values.copy(), vectors.accumulators.copy()
    problem = replace(problem, rows=block.rows, first_user=block.first)
    sums = CpuEngine(problem, state, num_threads=1, item_ids=item_ids).sums(users, step.when)
    if name is None:
        return BlockResult(None, sums)
    return BlockResult(UserVectors(state.parameters[name], state.accumulators[name]), sums)


# -- the item side: the sums of the blocks are added up, then every item in the batch is updated once -----------------


def merge_sums(parts: Sequence[ItemSums]) -> ItemSums:
    """The sums of all parts, added in their order; items ascending."""
    items = np.unique(np.concatenate([part.items for part in parts]))
    positions = [np.searchsorted(items, part.items).astype(np.int64) for part in parts]

    def added(rows: Sequence[Any]) -> Any:
        total = np.zeros((items.size, *rows[0].shape[1:]), rows[0].dtype)
        for where, part in zip(positions, rows, strict=True):
            add_rows(where, _as_rows(part), _as_rows(total))
        return total

    return ItemSums(
        items,
        {name: added([part.gradients[name] for part in parts]) for name in parts[0].gradients},
        added([part.in_lists for part in parts]),
        added([part.in_histories for part in parts]),
        np.sum([part.scale for part in parts], axis=0),
        add_reports([part.report for part in parts]),
    )


def add_reports(reports: Sequence[StepReport]) -> StepReport:
    """The sum of each field."""
    return StepReport(*(sum(numbers) for numbers in zip(*reports, strict=True)))


def update_items(problem: Problem, state: State, sums: ItemSums) -> float:
    """Updates the items of `sums`, which are used up; returns the squared distance moved."""
    moved = 0.0
    for name, gradient in sums.gradients.items():
        counts = sums.in_histories if name in problem.scorer.history_blocks else sums.in_lists
        rule = np.array(problem.rules[name], np.float64)
        values, accumulators = _as_rows(state.parameters[name]), _as_rows(state.accumulators[name])
        distances = np.empty(sums.items.size)
        step_rows(rule, sums.items, counts, _as_rows(gradient), values, accumulators, distances)
        moved += float(distances.sum())
    if SCALE in state.parameters:
        rule, mean = np.array(problem.rules[SCALE], np.float64), float(sums.scale[0]) / max(sums.report.lists, 1)
        moved += float(step_number(rule, 1.0, mean, state.parameters[SCALE], state.accumulators[SCALE], 0))
    return moved


def _as_rows(block: FloatArray) -> Float32Array:
    """The block as rows; a bias is a row of one number."""
    rows: Float32Array = block.reshape(len(block), int(np.prod(block.shape[1:])))  # -1 fails where there are no rows
    return rows


def bytes_of(*arrays: Any) -> int:
    """Bytes of arrays, and of the arrays in sums."""
    total = 0
    for array in arrays:
        if isinstance(array, ItemSums):
            total += bytes_of(array.items, array.in_lists, array.in_histories, *array.gradients.values())
        else:
            total += array.nbytes
    return total


# -- items in blocks of their own, whose rows are sent where they are needed -------------------------------------------


class ItemBlock(NamedTuple):
    """The parameters of consecutive items; the neighbors' scale is in the first block."""

    first: int
    state: State


class ItemRows(NamedTuple):
    """Rows that an item block sends to a user block."""

    items: Int32Array
    parameters: Parameters


class ItemReport(NamedTuple):
    """What an item block tells the driver about a step."""

    report: StepReport
    received: int
    """Bytes of sums that were sent to the block"""


def partition_items(state: State, starts: Int64Array) -> list[ItemBlock]:
    """Parameters and accumulators in blocks of items; what has no row for each item, the neighbors' scale, goes first."""
    n_items = int(starts[-1])

    def part(blocks: Parameters, a: int, b: int) -> Parameters:
        return {name: block[a:b] for name, block in blocks.items() if len(block) == n_items or a == 0}

    return [
        ItemBlock(int(a), State(part(state.parameters, a, b), part(state.accumulators, a, b)))
        for a, b in pairwise(starts)
    ]


def needed_items(problem: Problem, step: BatchStep, block: TrainingBlock) -> Int32Array:
    """The items of the block's part of the batch, ascending: found without their parameters."""
    users = local_users(step, block)
    if users.size == 0:
        return np.empty(0, np.int32)
    nothing = {name: np.empty((0, 1), np.float32) for name in ("item_bias", "user_factors")}
    problem = replace(problem, neighbors=None, rows=block.rows, first_user=block.first)
    items: Int32Array = np.unique(CpuEngine(problem, State(nothing, nothing), 1).batch_items(users, step.when))
    return items


def rows_for(block: ItemBlock, items: Int32Array) -> ItemRows:
    """The rows of some items of the block, and what has no row for each item."""
    parameters, n_here = block.state.parameters, block.state.parameters["item_bias"].size
    here = items - block.first
    return ItemRows(items, {name: part[here] if len(part) == n_here else part for name, part in parameters.items()})


def run_routed_block(
    problem: Problem, step: BatchStep, block: TrainingBlock, vectors: UserVectors | None, answers: Iterable[ItemRows]
) -> BlockResult:
    """The block's part of a batch, with the rows at hand that it has asked for."""
    parts = sorted((answer for answer in answers if answer.parameters), key=lambda answer: answer.items[:1].tolist())
    if local_users(step, block).size == 0:
        return BlockResult(vectors, None)
    item_ids, items = np.concatenate([part.items for part in parts]), joined([part.parameters for part in parts])
    result = _run(problem, step, block, vectors, items, item_ids)
    return result._replace(received=bytes_of(item_ids, *items.values()))


def joined(parts: list[Parameters]) -> Parameters:
    """Blocks of parameters from their parts, one after another."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([part[name] for part in parts if name in part]) for name in names}


def update_item_block(problem: Problem, block: ItemBlock, parts: list[ItemSums]) -> tuple[ItemBlock, ItemReport]:
    """The block after its items' update; the input is not changed."""
    if not parts:
        return block, ItemReport(EMPTY_REPORT, 0)
    sums = merge_sums(parts)
    here = sums._replace(items=(sums.items - block.first).astype(np.int32))
    parts_of_state = (block.state.parameters, block.state.accumulators)
    state = State(*({name: array.copy() for name, array in part.items()} for part in parts_of_state))
    moved = update_items(problem, state, here)
    report = sums.report._replace(moved=sums.report.moved + moved)
    return ItemBlock(block.first, state), ItemReport(report, bytes_of(*parts))


def partition_sums(sums: ItemSums | None, starts: Int64Array) -> list[ItemSums | None]:
    """The sums by block of items; the gradient of the neighbors' scale and the report go to the first."""
    if sums is None:
        return [None] * (starts.size - 1)
    order = np.argsort(sums.items, kind="stable")
    ends = np.searchsorted(sums.items[order], starts)
    pieces: list[ItemSums | None] = []
    for part, (a, b) in enumerate(pairwise(ends)):
        rows = order[a:b]
        gradients = {name: block[rows] for name, block in sums.gradients.items()}
        rest = (sums.scale, sums.report) if part == 0 else (np.zeros_like(sums.scale), EMPTY_REPORT)
        pieces.append(ItemSums(sums.items[rows], gradients, sums.in_lists[rows], sums.in_histories[rows], *rest))
    return pieces
