"""The Spark engine: the same steps as the CPU engine's, their users distributed over a cluster.

    driver                                 executors, one task for each block of users
    item parameters, accumulators  ------> broadcast
                                           the block's part of the batch: user phase, sums for the items (tasks.py)
    one update of every item       <------ sums, added up in the order of the blocks

Items too large to broadcast live in blocks of their own, and rows are sent where they are needed (item_store.py).
The blocks of training lists are persisted and never change. Users' vectors, where the scorer has such, are a persisted RDD
beside them that each step replaces; its lineage is cut every few steps. With the same seed the parameters are the CPU
engine's to float tolerance for any number of blocks, and have the same bits for the same number of blocks, whichever
executor runs which task, also where one is lost.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from topnrank._typing import Float32Array, Int64Array
from topnrank.engines.base import END_OF_TRAINING, Problem, State, StepReport, TrainingTime
from topnrank.scorers.base import NO_ROWS
from topnrank.spark.engine.checkpoints import checkpointed, persisted, require_shared
from topnrank.spark.engine.item_store import Blocks, BroadcastItems, Items, RoutedItems, Traffic, distribute
from topnrank.spark.engine.settings import SparkSettings, default_blocks
from topnrank.spark.engine.tasks import BatchStep, BlockResult, TrainingBlock, UserVectors, partition_lists
from topnrank.spark.session.session import described
from topnrank.spark.session.shipping import prepare_executors

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import SparkSession

SMALL_VECTORS = 8 * 2**20
"""Bytes of users' vectors that may be sent as part of tasks."""


@final
class SparkEngine:
    """Runs steps on a Spark cluster."""

    def __init__(self, problem: Problem, state: State, session: "SparkSession", lists: "RDD[TrainingBlock]") -> None:
        """`lists` has a block of the users' lists in each partition, ascending; `problem` needs no rows."""
        self.problem, self._context, self.settings = problem, session.sparkContext, SparkSettings.of(session.conf)
        self._user_block = problem.scorer.user_block
        require_shared(self._context)
        lists = persisted(lists).setName("topnrank: the users' lists")
        ends = lists.map(lambda block: block.first + block.rows.indptr.size - 1).collect()
        self._starts: Int64Array = np.array([0, *ends], np.int64)
        self._items = self._item_side(state)
        self._blocks = Blocks(lists, self._scattered(state), self._broadcast_problem(state))
        self._steps: list[Broadcast[BatchStep]] = []
        self._gathered: State | None = state
        self.traffic = Traffic(0, 0)
        """Of the latest step"""

    @classmethod
    def of_rows(cls, problem: Problem, state: State, session: "SparkSession") -> "SparkEngine":
        """From rows on the driver."""
        prepare_executors(session)
        context, n_rows = session.sparkContext, problem.rows.items.size
        blocks = partition_lists(problem.rows, SparkSettings.of(session.conf).blocks or default_blocks(context, n_rows))
        return cls(problem, state, session, distribute(context, blocks))

    def _broadcast_problem(self, state: State) -> Callable[[], Problem]:
        """The problem without rows, for tasks: tables by broadcast; scorer and objective, which may be the user's own
        classes, with each task, because only what belongs to a task is pickled with its code."""
        n_items = state.parameters["item_bias"].size
        small = replace(self.problem, rows=NO_ROWS, n_items=n_items, sampling_weights=None, neighbors=None)
        tables = self._context.broadcast((self.problem.sampling_weights, self.problem.neighbors))

        def problem() -> Problem:
            sampling_weights, neighbors = tables.value
            return replace(small, sampling_weights=sampling_weights, neighbors=neighbors)

        return problem

    def _item_side(self, state: State) -> Items:
        of_items = [name for name in state.parameters if name != self._user_block]
        state = State(*({name: part[name] for name in of_items} for part in (state.parameters, state.accumulators)))
        if sum(block.nbytes for block in state.parameters.values()) <= self.settings.broadcastLimit:
            return BroadcastItems(self.problem, state, self.settings)
        return RoutedItems(self.problem, state, self._context, self._starts.size - 1)

    @property
    def state(self) -> State:
        """All parameters and accumulators, on the driver."""
        if self._gathered is None:
            with described(self._context, "the parameters to the driver"):
                items = self._items.state()
                state = State(dict(items.parameters), dict(items.accumulators))
                if self._user_block is not None:
                    parts = self._blocks.results.map(_vectors_of).collect()
                    state.parameters[self._user_block] = np.concatenate([part.values for part in parts])
                    state.accumulators[self._user_block] = np.concatenate([part.accumulators for part in parts])
            self._gathered = state
        return self._gathered

    def item_state(self) -> State:
        """The items' part of the state, on the driver."""
        return self._items.state()

    def user_vectors(self) -> "RDD[Float32Array] | None":
        """The users' vectors of every block, in the cluster; None where the scorer has none."""
        return None if self._user_block is None else self._blocks.results.map(lambda result: _vectors_of(result).values)

    def close(self) -> None:
        """Frees what the cluster keeps for the engine."""
        self._blocks.lists.unpersist()
        self._blocks.results.unpersist()

    def _scattered(self, state: State) -> "RDD[BlockResult]":
        """Users' vectors from the driver to the blocks: at the start, and to cut lineage."""
        name, ends = self._user_block, list(zip(self._starts[:-1], self._starts[1:], strict=True))
        if name is None:
            return self._context.parallelize([BlockResult(None, None)] * len(ends), len(ends))
        values, accumulators = state.parameters[name], state.accumulators[name]
        parts: list[Any] = [BlockResult(UserVectors(values[a:b], accumulators[a:b]), None) for a, b in ends]
        if values.nbytes < SMALL_VECTORS:
            return self._context.parallelize(parts, len(parts))
        return distribute(self._context, parts)

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch: each block's part of it, then one update of the items."""
        with described(self._context, f"iteration {when.iteration + 1}, {users.size:,} users"):
            batch = None if users.size == self._starts[-1] else np.sort(np.asarray(users, np.int64))
            step = self._context.broadcast(BatchStep(self._items.broadcast_parameters(), batch, when))
            self._steps.append(step)
            before = self._blocks.results
            report, after, self.traffic = self._items.step(self._blocks, step)
            self._gathered = None
            if self._user_block is not None:
                self._blocks, after = self._blocks._replace(results=after), before
            after.unpersist()
            if len(self._steps) >= self.settings.checkpointInterval:
                self._cut_lineage()
            return report

    def _cut_lineage(self) -> None:
        """After this nothing that is lost needs an earlier step, nor what was broadcast for it."""
        self._items.cut_lineage()
        if self._user_block is not None:
            old = self._blocks.results
            fresh = checkpointed(old)
            self._blocks = self._blocks._replace(results=self._scattered(self.state) if fresh is None else fresh)
            old.unpersist()
        for step in self._steps:
            step.destroy()
        self._steps.clear()


def _vectors_of(result: BlockResult) -> UserVectors:
    assert result.vectors is not None
    return result.vectors
