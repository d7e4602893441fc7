"""The CPU engine: Numba kernels, all cores, the same bits for any number of threads."""

from collections.abc import Callable
from typing import final

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.engines.base import Problem, State, Visit
from topnrank.kernels._jit import threads
from topnrank.kernels.batches import invert, lay_out
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
from topnrank.kernels.objectives import DCGSettings, squared_lists, weighted_dcg_lists
from topnrank.kernels.ranks import LAPLACE, RAMP, RELU, SIGMOID, Step, sigmoid_terms
from topnrank.objectives import Laplace, Objective, Ramp, ReLU, Sigmoid, Squared, StepFunction, WeightedDCG
from topnrank.scorers import Factors, History, Parameters

RunLists = Callable[[Batch, Float64Array, Float64Array, Float64Array], None]
"""Fills the arrays G and report of `Lists` from a batch and its scores."""
SMALL_BATCH = 2000
"""Rows below which one thread does the work: waking others costs more, on a busy machine a hundred times more."""


def _compiled_step(step: StepFunction) -> Step | None:
    """The step as numbers for the rank engine; None for a user-defined one."""
    kinds: dict[type, int] = {ReLU: RELU, Sigmoid: SIGMOID, Laplace: LAPLACE, Ramp: RAMP}
    kind = kinds.get(type(step))
    return None if kind is None else Step(kind, float(getattr(step, "steepness", 1.0)), sigmoid_terms())


def _compiled_lists(objective: Objective) -> RunLists:
    """The kernel of an objective, or its NumPy body list by list where there is none."""
    if isinstance(objective, Squared):
        return squared_lists
    if isinstance(objective, WeightedDCG) and (step := _compiled_step(objective.step)) is not None:
        o = objective
        settings = DCGSettings(float(o.n), o.truncate, o.exact, float(o.discount), float(o.budget), float(o.anchor))
        return lambda batch, scores, G, report: weighted_dcg_lists(step, settings, batch, scores, G, report)
    return lambda batch, scores, G, report: _reference_lists(objective, batch, scores, Lists(G, report))


def _reference_lists(objective: Objective, batch: Batch, scores: Float64Array, lists: Lists) -> None:
    for n, (lo, hi) in enumerate(zip(batch.offsets[:-1], batch.offsets[1:], strict=True)):
        g = objective.evaluate(scores[lo:hi], batch.gains[lo:hi])
        lists.G[:, lo:hi] = g.user, g.item
        lists.report[n] = g.value, g.active


@final
class CpuEngine:
    """Visits batches with compiled kernels."""

    def __init__(self, problem: Problem, state: State, num_threads: int = 0) -> None:
        self.problem, self.state = problem, state
        self._num_threads = num_threads
        self._run_lists = _compiled_lists(problem.objective)
        self._visit = _VISITS[type(problem.scorer)]
        n_items = state.parameters["item_bias"].size
        self.counts = np.zeros(n_items, np.int64)
        """Scratch of `invert`, zero between visits."""
        self.own = (np.zeros(n_items, np.float32), np.zeros(n_items, np.float32))
        """Scratch of `own_products`."""

    def visit(self, users: Int64Array) -> Visit:
        """One batch: flat layout, user phase, item phase."""
        batch = lay_out(np.ascontiguousarray(users, np.int64), self.problem.rows)
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
    """User step, scores again, item step."""
    state, accumulators = _factor_state(engine.state.parameters), _factor_state(engine.state.accumulators)
    scores = np.empty(batch.items.size)
    factor_scores(batch, state, scores)
    first = engine.lists(batch, scores)
    moved_users = np.empty(batch.users.size)
    factor_user_step(batch, first.G[0], state, accumulators, _rules(engine, "user_factors")[0], moved_users)
    factor_scores(batch, state, scores)
    second = engine.lists(batch, scores)
    touched = invert(batch, engine.counts)
    moved = np.empty(touched.items.size)
    rules = _rules(engine, "item_factors", "item_bias")
    factor_item_step(batch, touched, second.G[1], state, accumulators, rules, moved)
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
    sums = HistorySums(np.empty(b, np.float32), np.empty((b, k), np.float32), np.empty((b, k), np.float32))
    scores = np.empty(batch.items.size)
    history_scores(batch, state, scorer.exponent, engine.own, sums.c, sums.s, scores)
    lists = engine.lists(batch, scores)
    history_pull(batch, lists.G[0], state.Q, sums.pull)
    moved = np.empty(touched.items.size)
    rules = _rules(engine, "item_factors", "history_factors", "item_bias")
    history_item_step(batch, touched, lists.G, sums, state, accumulators, rules, moved)
    return lists, float(moved.sum())


_VISITS: dict[type, Callable[[CpuEngine, Batch], tuple[Lists, float]]] = {
    Factors: _visit_factors,
    History: _visit_history,
}
"""The visit of each scorer: a new scorer adds its own."""
