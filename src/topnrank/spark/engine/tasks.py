"""What the tasks of the Spark engine do; nothing here needs pyspark.

A task holds one block of users. It gets what changes (`Step`) by a broadcast, visits its part of the batch with the CPU
engine's kernels, and leaves its users' new vectors and the sums for the items. Tasks are functions of their input alone:
Spark may run one again after an executor was lost, or twice at once, and nothing is different.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport, TrainingTime
from topnrank.engines.cpu import CpuEngine
from topnrank.scorers import Parameters, TrainingLists, UpdateRule
from topnrank.spark.engine.item_side import NOBODY, bytes_of, merge, step_items
from topnrank.spark.engine.local_passes import copies, moments, move_items, visit_locally


class TrainingBlock(NamedTuple):
    """The training lists of some users whose numbers follow each other."""

    first: int
    """The number of the first of them"""
    rows: TrainingLists


class UserVectors(NamedTuple):
    """The vectors of a block's users, where the scorer has such, and their accumulators."""

    values: Float32Array
    accumulators: Float32Array


class BlockVisit(NamedTuple):
    """What a visit leaves of a block."""

    vectors: UserVectors | None
    sums: ItemSums | None
    """None where no user of the block is in the batch"""
    received: int = 0
    """Bytes of the rows that were sent to the block, where rows are routed"""


@dataclass(frozen=True)
class Step:
    """What of a visit is the same for all blocks, but changes from visit to visit."""

    rules: dict[str, UpdateRule]
    parameters: Parameters
    """Of the items, where all of them travel"""
    users: Int64Array | None
    """Numbers of the batch's users, ascending; None for all"""
    when: TrainingTime
    passes: int = 1
    """Visits of the batch until blocks hear of each other (`local_passes`)"""
    share: float = 1.0
    """Of all users, in the batch"""
    accumulators: Parameters = field(default_factory=dict)
    """Beside the parameters, where blocks step items themselves"""

    @property
    def nbytes(self) -> int:
        """Bytes of numbers."""
        blocks = [*self.parameters.values(), *self.accumulators.values()]
        return sum(block.nbytes for block in blocks) + (0 if self.users is None else self.users.nbytes)


def cut(rows: TrainingLists, blocks: int) -> list[TrainingBlock]:
    """The lists of all users in at most `blocks` parts of about equally many rows; none is empty."""
    n_users = rows.indptr.size - 1
    wanted = np.searchsorted(rows.indptr, np.linspace(0, rows.indptr[-1], blocks + 1)[1:-1])
    ends = np.unique(np.concatenate([[0], wanted, [n_users]]))
    return [TrainingBlock(int(first), rows_of(rows, int(first), int(end))) for first, end in pairwise(ends)]


def rows_of(rows: TrainingLists, first: int, end: int) -> TrainingLists:
    """The lists of the users first .. end - 1."""
    own = slice(int(rows.indptr[first]), int(rows.indptr[end]))
    parts = {name: getattr(rows, name) for name in rows._fields if name != "indptr"}
    kept = {name: part[own] if part.size else part for name, part in parts.items()}
    return TrainingLists(indptr=rows.indptr[first : end + 1] - rows.indptr[first], **kept)


def local_users(step: Step, block: TrainingBlock) -> Int64Array:
    """The batch's users in the block, by their place there."""
    n_users = block.rows.indptr.size - 1
    if step.users is None:
        return np.arange(n_users)
    first, end = np.searchsorted(step.users, [block.first, block.first + n_users])
    return step.users[first:end] - block.first


def _engine(
    problem: Problem,
    step: Step,
    block: TrainingBlock,
    vectors: UserVectors | None,
    items: State,
    item_ids: Int32Array | None = None,
) -> CpuEngine:
    """A CPU engine of one thread on the block. What it changes is copied: what a task was given stays as it is."""
    problem = replace(problem, rows=block.rows, first_user=block.first, rules=step.rules)
    kept = copies if step.passes > 1 else dict  # else items do not step here
    parameters, accumulators = kept(items.parameters), kept(items.accumulators or items.parameters)
    name = problem.scorer.user_block
    if vectors is not None and name is not None:
        parameters[name], accumulators[name] = vectors.values.copy(), vectors.accumulators.copy()
    return CpuEngine(problem, State(parameters, accumulators), num_threads=1, item_ids=item_ids)


def visit_block(problem: Problem, step: Step, block: TrainingBlock, vectors: UserVectors | None) -> BlockVisit:
    """The block's part of a batch, with all items at hand."""
    users = local_users(step, block)
    if users.size == 0:
        return BlockVisit(vectors, None)
    return _visited(_engine(problem, step, block, vectors, State(step.parameters, step.accumulators)), users, step)


def _visited(engine: CpuEngine, users: Int64Array, step: Step) -> BlockVisit:
    name = engine.problem.scorer.user_block
    if step.passes == 1:
        sums = engine.sums(users, step.when)
    else:
        sums = visit_locally(engine, users, moments(step.when, step.passes), step.share)
    if name is None:
        return BlockVisit(None, sums)
    return BlockVisit(UserVectors(engine.state.parameters[name], engine.state.accumulators[name]), sums)


# -- items in blocks of their own, whose rows travel where they are needed --------------------------------------------


class ItemBlock(NamedTuple):
    """The parameters of items whose numbers follow each other; the neighbors' scale is with the first."""

    first: int
    state: State


class Answer(NamedTuple):
    """Rows that an item block sends to a user block."""

    items: Int32Array
    rows: Parameters
    accumulators: Parameters
    """Where blocks step items themselves"""


class Report(NamedTuple):
    """What an item block tells the driver about a visit."""

    report: StepReport
    bytes: int
    """Of sums that it received"""


def cut_items(state: State, starts: Int64Array) -> list[ItemBlock]:
    """Parameters and accumulators in blocks of items; what has no row for each item, the neighbors' scale, goes first."""
    n_items = int(starts[-1])

    def part(blocks: Parameters, a: int, b: int) -> Parameters:
        return {name: block[a:b] for name, block in blocks.items() if len(block) == n_items or a == 0}

    return [
        ItemBlock(int(a), State(part(state.parameters, a, b), part(state.accumulators, a, b)))
        for a, b in pairwise(starts)
    ]


def needed_items(problem: Problem, step: Step, block: TrainingBlock) -> Int32Array:
    """The items that the block's part of the batch touches, ascending: known before their parameters are."""
    users = local_users(step, block)
    if users.size == 0:
        return np.empty(0, np.int32)
    nothing = {name: np.empty((0, 1), np.float32) for name in ("item_bias", "user_factors")}
    engine = _engine(replace(problem, neighbors=None), step, block, None, State(nothing, nothing))
    active_items = [engine.lay_out(users, when).items for when in moments(step.when, step.passes)]
    items: Int32Array = np.unique(np.concatenate(active_items))
    return items


def visit_routed(
    problem: Problem, step: Step, block: TrainingBlock, vectors: UserVectors | None, answers: Iterable[Answer]
) -> BlockVisit:
    """The block's part of a batch, with the rows that were asked for at hand."""
    users = local_users(step, block)
    if users.size == 0:
        return BlockVisit(vectors, None)
    parts = sorted((answer for answer in answers if answer.rows), key=lambda answer: answer.items[:1].tolist())
    item_ids = np.concatenate([part.items for part in parts])
    items = State(joined([part.rows for part in parts]), joined([part.accumulators for part in parts]))
    left = _visited(_engine(problem, step, block, vectors, items, item_ids), users, step)
    received = [*items.parameters.values(), *items.accumulators.values()]
    return left._replace(received=item_ids.nbytes + sum(block.nbytes for block in received))


def joined(parts: list[Parameters]) -> Parameters:
    """Blocks of parameters from their parts, one after another."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([part[name] for part in parts if name in part]) for name in names}


def step_item_block(problem: Problem, step: Step, block: ItemBlock, parts: list[ItemSums]) -> tuple[ItemBlock, Report]:
    """The block after its items' step; what it was given stays as it is."""
    if not parts:
        return block, Report(NOBODY, 0)
    sums = merge(parts)
    here = sums._replace(items=(sums.items - block.first).astype(np.int32))
    state = State(copies(block.state.parameters), copies(block.state.accumulators))
    moved = apply(replace(problem, rules=step.rules), state, here, step.passes)
    report = sums.report._replace(moved=sums.report.moved + moved)
    return ItemBlock(block.first, state), Report(report, sum(bytes_of(part) for part in parts))


def apply(problem: Problem, state: State, sums: ItemSums, passes: int) -> float:
    """The items' step, or their moves after several visits; returns the squared distance."""
    return step_items(problem, state, sums) if passes == 1 else move_items(state, sums)


def split_sums(sums: ItemSums | None, starts: Int64Array) -> list[ItemSums]:
    """The sums by block of items; what is no item's goes with the first."""
    if sums is None:
        return []
    order = np.argsort(sums.items, kind="stable")
    ends = np.searchsorted(sums.items[order], starts)
    pieces = []
    for part, (a, b) in enumerate(pairwise(ends)):
        rows = order[a:b]
        gradients = {name: block[rows] for name, block in sums.gradients.items()}
        rest = (sums.scale, sums.report) if part == 0 else (np.zeros_like(sums.scale), NOBODY)
        pieces.append(ItemSums(sums.items[rows], gradients, sums.in_lists[rows], sums.in_histories[rows], *rest))
    return pieces
