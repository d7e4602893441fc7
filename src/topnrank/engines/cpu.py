"""The CPU engine: Numba kernels, all cores, the same bits for any number of threads."""

from collections.abc import Callable
from typing import final

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.engines.base import LAST, Moment, Problem, State, Visit
from topnrank.engines.compiled import compiled_lists
from topnrank.kernels._jit import threads
from topnrank.kernels.batches import Plan, invert, lay_out
from topnrank.kernels.context import Batch, Lists
from topnrank.kernels.factors import FactorState, factor_item_step, factor_scores, factor_user_step
from topnrank.kernels.history import (
    HistoryState,
    HistorySums,
    history_item_step,
    history_pull,
    history_scores,
    own_products,
)
from topnrank.rng import visit_keys
from topnrank.scorers import Factors, History, Parameters

SMALL_BATCH = 2000
"""Rows below which one thread does the work: waking others costs more, on a busy machine a hundred times more."""


@final
class CpuEngine:
    """Visits batches with compiled kernels."""

    def __init__(self, problem: Problem, state: State, num_threads: int = 0) -> None:
        self.problem, self.state = problem, state
        self._num_threads = num_threads
        self._run_lists = compiled_lists(problem.objective)
        self._visit = _VISITS[type(problem.scorer)]
        n_items = state.parameters["item_bias"].size
        self.counts = np.zeros(n_items, np.int64)
        """Scratch of `invert`, zero between visits."""
        self.own = (np.zeros(n_items, np.float32), np.zeros(n_items, np.float32))
        """Scratch of `own_products`."""

    def visit(self, users: Int64Array, moment: Moment = LAST) -> Visit:
        """One batch: flat layout, user phase, item phase."""
        users = np.ascontiguousarray(users, np.int64)
        plan = Plan(bool(self.problem.scorer.history_blocks), self.problem.negatives, self.counts.size, moment.progress)
        batch = lay_out(users, visit_keys(self.problem.seed, moment.iteration, users), self.problem.rows, plan)
        with threads(1 if batch.items.size < SMALL_BATCH else self._num_threads):
            first, moved = self._visit(self, batch)
        value, active = first.report.sum(axis=0)
        return Visit(float(value), int(active), users.size, moved)

    def lists(self, batch: Batch, scores: Float64Array) -> Lists:
        """The objective's view of the batch."""
        lists = Lists(np.empty((2, scores.size)), np.empty((batch.users.size, 2)))
        self._run_lists(batch, scores, lists.G, lists.report)
        return lists


def _rules(engine: CpuEngine, *names: str) -> Float64Array:
    """The rules of some blocks as the kernels take them, one row each."""
    return np.array([engine.problem.rules[name] for name in names], np.float64)


def _factor_state(blocks: Parameters) -> FactorState:
    return FactorState(blocks["user_factors"], blocks["item_factors"], blocks["item_bias"])


def _visit_factors(engine: CpuEngine, batch: Batch) -> tuple[Lists, float]:
    """User step, scores again, item step; or both steps from the same scores."""
    state, accumulators = _factor_state(engine.state.parameters), _factor_state(engine.state.accumulators)
    scores = np.empty(batch.items.size)
    factor_scores(batch, state, scores)
    first = engine.lists(batch, scores)
    moved_users = np.empty(batch.users.size)
    before = state._replace(U=state.U.copy()) if engine.problem.simultaneous else state
    factor_user_step(batch, first.G[0], state, accumulators, _rules(engine, "user_factors")[0], moved_users)
    second = first
    if not engine.problem.simultaneous:
        factor_scores(batch, state, scores)
        second = engine.lists(batch, scores)
    touched = invert(batch, engine.counts)
    moved = np.empty(touched.items.size)
    rules = _rules(engine, "item_factors", "item_bias")
    factor_item_step(batch, touched, second.G[1], before, accumulators, rules, moved)
    return first, float(moved_users.sum() + moved.sum())


def _history_state(blocks: Parameters) -> HistoryState:
    names = ("item_factors", "history_factors", "rating_factors", "item_bias")
    return HistoryState(*(blocks[name] for name in names))


def _visit_history(engine: CpuEngine, batch: Batch) -> tuple[Lists, float]:
    """One pass: sums and scores, lists, pulls, item step."""
    state, accumulators = _history_state(engine.state.parameters), _history_state(engine.state.accumulators)
    scorer = engine.problem.scorer
    assert isinstance(scorer, History)
    touched = invert(batch, engine.counts)
    own_products(touched, state, *engine.own)
    b, k = batch.users.size, state.Q.shape[1]
    sums = HistorySums(np.empty((b, 2), np.float32), np.empty((b, k), np.float32), np.empty((b, k), np.float32))
    scores = np.empty(batch.items.size)
    history_scores(batch, state, scorer.exponent, engine.own, sums.c, sums.s, scores)
    lists = engine.lists(batch, scores)
    history_pull(batch, lists.G[0], state.Q, sums.c, sums.pull)
    moved = np.empty(touched.items.size)
    rules = _rules(engine, "item_factors", "history_factors", "item_bias")
    history_item_step(batch, touched, lists.G, sums, state, accumulators, rules, moved)
    return lists, float(moved.sum())


_VISITS: dict[type, Callable[[CpuEngine, Batch], tuple[Lists, float]]] = {
    Factors: _visit_factors,
    History: _visit_history,
}
"""The visit of each scorer: a new scorer adds its own."""
