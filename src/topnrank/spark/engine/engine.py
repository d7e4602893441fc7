"""The Spark engine: the same visits as the CPU engine's, their users spread over a cluster.

    driver                                 executors, one task for each block of users
    item parameters, accumulators  ------> broadcast
                                           the block's part of the batch: user phase, sums for the items (spark_tasks.py)
    one step of every touched item <------ sums, added up in the order of the blocks

Items too large to broadcast live in blocks of their own, and rows travel where they are needed (spark_items.py).
The blocks of training lists are persisted and never change. Users' vectors, where the scorer has such, are a persisted RDD
beside them that each visit replaces; its lineage is cut every few visits. With the same seed the parameters are the CPU
engine's to float tolerance for any number of blocks, and have the same bits for the same number of blocks, whichever
executor does what, also where one is lost.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from topnrank._typing import Float32Array, Int64Array
from topnrank.engines.base import END_OF_TRAINING, Problem, State, StepReport, TrainingTime
from topnrank.errors import ParameterError
from topnrank.scorers.base import NO_ROWS, Parameters
from topnrank.spark.engine.checkpoints import checkpointed, lasting, one_by_one, require_shared
from topnrank.spark.engine.item_store import Blocks, BroadcastItems, Items, RoutedItems, Traffic, spread
from topnrank.spark.engine.local_passes import expected_rows
from topnrank.spark.engine.settings import SparkSettings, usual_blocks
from topnrank.spark.engine.tasks import BlockVisit, Step, TrainingBlock, UserVectors, cut
from topnrank.spark.session.job_names import named

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import SparkSession

SMALL_VECTORS = 8 * 2**20
"""Bytes of users' vectors that may travel as part of tasks."""


@final
class SparkEngine:
    """Visits batches on a Spark cluster."""

    def __init__(self, problem: Problem, state: State, session: "SparkSession", lists: "RDD[TrainingBlock]") -> None:
        """`lists` has a block of the users' lists in each partition, ascending; `problem` needs no rows."""
        self._problem, self._context, self.settings = problem, session.sparkContext, SparkSettings.of(session.conf)
        if problem.adaptive and self.settings.localPasses > 1:
            raise ParameterError("spark.topnrank.localPasses must be 1 for a step that adapts itself; unset it")
        self._user_block = problem.scorer.user_block
        require_shared(self._context)
        lists = one_by_one(lists).setName("topnrank: the users' lists").persist(lasting())
        ends = lists.map(lambda block: block.first + block.rows.indptr.size - 1).collect()
        self._starts: Int64Array = np.array([0, *ends], np.int64)
        self._rest = {name: block for name, block in state.accumulators.items() if name not in state.parameters}
        """What others keep among the accumulators; it belongs to no item and stays here"""
        of_items = [name for name in state.parameters if name != self._user_block]
        self._items = self._item_side(State(*({name: blocks[name] for name in of_items} for blocks in _both(state))))
        self._blocks = Blocks(lists, self._scattered(state), self._fixed(lists, state.parameters["item_bias"].size))
        self._steps: list[Broadcast[Step]] = []
        self._gathered: State | None = state
        self.traffic = Traffic(0, 0)
        """Of the latest visit"""

    def _fixed(self, lists: "RDD[TrainingBlock]", n_items: int) -> Callable[[], Problem]:
        """The problem without rows, for tasks: tables travel once, by broadcast; scorer and objective, which may be the
        user's own classes, with each task, because only what belongs to a task is pickled with its code."""
        small = replace(self._problem, rows=NO_ROWS, n_items=n_items, sampling_weights=None, neighbors=None)

        def with_tables(*tables: Any) -> Callable[[], Problem]:
            kept = self._context.broadcast(tables)
            return lambda: replace(
                small, **dict(zip(("sampling_weights", "neighbors", "item_rows"), kept.value, strict=False))
            )

        tables = self._problem.sampling_weights, self._problem.neighbors
        frozen = with_tables(*tables)
        if self.settings.localPasses == 1:
            return frozen
        rows = lists.map(lambda block: expected_rows(replace(frozen(), rows=block.rows), n_items)).reduce(np.add)
        return with_tables(*tables, rows)

    @classmethod
    def of_rows(cls, problem: Problem, state: State, session: "SparkSession") -> "SparkEngine":
        """From rows that the driver has."""
        context, n_rows = session.sparkContext, problem.rows.items.size
        wanted = SparkSettings.of(session.conf).blocks
        blocks = cut(problem.rows, wanted or usual_blocks(context, n_rows))
        return cls(problem, state, session, spread(context, blocks))

    def _item_side(self, state: State) -> Items:
        if sum(block.nbytes for block in state.parameters.values()) <= self.settings.broadcastLimit:
            return BroadcastItems(self._problem, state, self.settings)
        return RoutedItems(self._problem, state, self._context, self._starts.size - 1)

    # -- the state ----------------------------------------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        """May be replaced between visits, as long as scorer, objective and rows stay the same."""
        return self._problem

    @problem.setter
    def problem(self, problem: Problem) -> None:
        self._problem = self._items.problem = problem

    @property
    def state(self) -> State:
        """All parameters, on the driver."""
        if self._gathered is None:
            with named(self._context, "the parameters to the driver"):
                self._gathered = self._gather()
        return self._gathered

    def _gather(self) -> State:
        items = self._items.state()
        state = State(dict(items.parameters), dict(items.accumulators) | self._rest)
        if self._user_block is not None:
            parts = self._blocks.vectors.map(_vectors_of).collect()
            state.parameters[self._user_block] = np.concatenate([part.values for part in parts])
            state.accumulators[self._user_block] = np.concatenate([part.accumulators for part in parts])
        return state

    def item_state(self) -> State:
        """The items' part of the state, on the driver."""
        return self._items.state()

    def user_vectors(self) -> "RDD[Float32Array] | None":
        """The users' vectors of every block, in the cluster; None where the scorer has none."""
        return None if self._user_block is None else self._blocks.vectors.map(lambda left: _vectors_of(left).values)

    def close(self) -> None:
        """Lets go of what the cluster keeps for the engine."""
        self._blocks.lists.unpersist()
        self._blocks.vectors.unpersist()

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        if self._steps:
            self._cut_lineage()  # what is kept must not depend on broadcasts that may be gone when it is put back
        put_items_back, vectors = self._items.remember(), self._blocks.vectors

        def put_back() -> None:
            put_items_back()
            self._blocks, self._gathered = self._blocks._replace(vectors=vectors), None

        return put_back

    def _scattered(self, state: State) -> "RDD[BlockVisit]":
        """Users' vectors from the driver to the blocks: where training starts, and to cut lineage."""
        name, ends = self._user_block, list(zip(self._starts[:-1], self._starts[1:], strict=True))
        if name is None:
            return self._context.parallelize([BlockVisit(None, None)] * len(ends), len(ends))
        values, accumulators = state.parameters[name], state.accumulators[name]
        parts = [BlockVisit(UserVectors(values[a:b], accumulators[a:b]), None) for a, b in ends]
        small = values.nbytes < SMALL_VECTORS
        return self._context.parallelize(parts, len(parts)) if small else spread(self._context, parts)

    # -- a visit ------------------------------------------------------------------------------------------------------

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch: each block's part of it, then one step of the items."""
        with named(self._context, f"iteration {when.iteration + 1}, {users.size:,} users"):
            return self._visit(users, when)

    def _visit(self, users: Int64Array, when: TrainingTime) -> StepReport:
        numbers = None if users.size == self._starts[-1] else np.sort(np.asarray(users, np.int64))
        items, passes, share = self._items.sent(), self.settings.localPasses, users.size / int(self._starts[-1])
        step = self._context.broadcast(
            Step(self._problem.rules, items.parameters, numbers, when, passes, share, items.accumulators)
        )
        self._steps.append(step)
        before = self._blocks.vectors
        report, after, self.traffic = self._items.step(self._blocks, step)
        self._gathered = None
        if self._user_block is not None:
            self._blocks = self._blocks._replace(vectors=after)
            before.unpersist()
        else:
            after.unpersist()
        if len(self._steps) >= self.settings.checkpointInterval:
            self._cut_lineage()
        return report

    def _cut_lineage(self) -> None:
        """From here on nothing that was lost needs a visit before, nor what was broadcast for it."""
        self._items.cut_lineage()
        if self._user_block is not None:
            old = self._blocks.vectors
            fresh = checkpointed(old)
            self._blocks = self._blocks._replace(vectors=self._scattered(self.state) if fresh is None else fresh)
            old.unpersist()
        for step in self._steps:
            step.destroy()
        self._steps.clear()


def _vectors_of(left: BlockVisit) -> UserVectors:
    assert left.vectors is not None
    return left.vectors


def _both(state: State) -> tuple[Parameters, Parameters]:
    return state.parameters, state.accumulators
