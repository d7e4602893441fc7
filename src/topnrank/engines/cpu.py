"""The CPU engine: Numba kernels, all cores, the same bits for any number of threads."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array
from topnrank.engines.base import END_OF_TRAINING, ItemSums, Problem, State, StepReport, TrainingTime
from topnrank.errors import ParameterError
from topnrank.kernels.batch import MAX_ROWS, ActiveItems, Batch, Lists, Plan, arrange, lay_out, sample_items
from topnrank.kernels.item_index import count_visits, invert
from topnrank.kernels.jit import thread_count, threads
from topnrank.kernels.updates import SUM, add_up, step_number
from topnrank.losses.table import compiled_lists
from topnrank.scorers import Factors, History, Parameters, UpdateRule
from topnrank.scorers._factors_kernel import FactorState, factor_item_step, factor_scores, factor_user_step
from topnrank.scorers._history_kernel import (
    HistoryState,
    HistorySums,
    SelfProducts,
    history_gradient,
    history_item_step,
    history_scores,
    self_products,
)
from topnrank.scorers._neighbors_kernel import batch_neighbor_scores, scale_gradient
from topnrank.scorers.base import NO_NEIGHBOR_SCORES
from topnrank.scorers.history import blocks_in_order
from topnrank.scorers.neighbors import SCALE

SMALL_BATCH = 2000
"""Rows below which one thread does the work: waking others costs more, on a busy machine a hundred times more."""
BALANCE_GROUPS = 16
"""Groups of about equally many rows that the users of a batch are put into; two, four, ... threads get as many each."""
MANY_ROWS = 8
"""Rows for each item of the catalog from which a batch is inverted by several threads."""
MAX_PARTS = 8
"""Most parts of such a batch: each counts all items."""

Rules = dict[str, UpdateRule]
_NO_DISTANCES = np.empty(0)


class Inputs(NamedTuple):
    """What the phases of a step work on."""

    batch: Batch
    active_items: ActiveItems
    neighbor_scores: Float32Array
    """(flat,) of the rows of the batch; empty without neighbors"""
    target: State
    """Whose items are updated"""
    rules: Rules


class Phases(NamedTuple):
    """Results of the user phase and the item phase of a step."""

    batch: Batch
    lists: Lists
    """Of the first scores"""
    active_items: ActiveItems
    moved_users: Float64Array
    """(b,) squared distance that each user's vector moved, or (0,)"""
    moved_items: Float64Array
    """(t,) squared distance that each item of the batch moved"""


@final
class CpuEngine:
    """Runs steps with compiled kernels."""

    def __init__(
        self, problem: Problem, state: State, num_threads: int = 0, *, item_ids: Int32Array | None = None
    ) -> None:
        """`item_ids` are the items whose rows the state holds, ascending; None for all (others are for `sums` only)."""
        self.problem, self.state, self.item_ids = problem, state, item_ids
        self._num_threads, workers = num_threads, thread_count(num_threads)
        self._run_lists = compiled_lists(problem.objective)
        self._phases = _PHASES[type(problem.scorer)]
        n_items = state.parameters["item_bias"].size
        n_catalog = problem.n_items or n_items
        weights = np.ones(n_catalog, np.int64) if problem.sampling_weights is None else problem.sampling_weights
        self.sampling_weights = np.concatenate([[0], np.cumsum(weights)]).astype(np.int64)
        self._plan = Plan(  # progress and iteration are those of each step
            histories=bool(problem.scorer.history_blocks),
            negatives=problem.negatives,
            sampling_weights=self.sampling_weights,
            shared=problem.shared,
            progress=END_OF_TRAINING.progress,
            seed=np.uint64(problem.seed % 2**64),
            iteration=np.uint64(END_OF_TRAINING.iteration),
            first_user=problem.first_user,
            workers=workers,
        )
        # scratch of kernels: counts and marks are zero between steps
        self._counts = np.zeros(n_items, np.int32)
        self._part_counts = np.zeros((1 + (problem.negatives > 0), min(workers, MAX_PARTS), 0), np.int32)
        self._marks = np.zeros((workers, n_catalog if problem.neighbors is not None else 0), np.float32)
        channels = problem.rows.residuals.shape[1]
        self.self_products = SelfProducts(np.zeros(n_items, np.float32), np.zeros((n_items, channels), np.float32))

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch: layout, user phase, item phase, scale of the neighbors."""
        _, scale_sum, report = self._run(users, when, self.state, self.problem.rules)
        if self.problem.neighbors is not None:  # along the mean over the batch
            rule = np.array(self.problem.rules[SCALE], np.float64)
            block, accumulators = self.state.parameters[SCALE], self.state.accumulators[SCALE]
            moved = float(step_number(rule, 1.0, scale_sum / users.size, block, accumulators, 0))
            report = report._replace(moved=report.moved + moved)
        return report

    def sums(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> ItemSums:
        """A part of a batch: updates its users, and returns what the update of its items needs from them."""
        parameters, user_block = self.state.parameters, self.problem.scorer.user_block
        sums = {name: np.zeros_like(block) for name, block in parameters.items() if name != user_block}
        target = State(parameters | sums, self.state.accumulators | sums)
        rules = {name: UpdateRule(*SUM) if name in sums else rule for name, rule in self.problem.rules.items()}
        phases, scale_sum, report = self._run(users, when, target, rules)
        items = phases.active_items.items
        in_lists, in_histories = np.empty(items.size), np.empty(items.size)
        count_visits(phases.batch, phases.active_items, in_lists, in_histories)
        gradients = {name: block[items] for name, block in sums.items() if name != SCALE}
        items = items if self.item_ids is None else self.item_ids[items]
        return ItemSums(items, gradients, in_lists, in_histories, np.array([scale_sum]), report)

    def batch_items(self, users: Int64Array, when: TrainingTime) -> Int32Array:
        """The items of all rows of a batch, sampled ones too; parameters are not looked at."""
        plan = self._plan._replace(progress=when.progress, iteration=np.uint64(when.iteration))
        batch = lay_out(arrange(users, self.problem.rows, plan), self.problem.rows, plan)
        if plan.negatives:
            sample_items(batch, self.problem.rows, self.sampling_weights, batch.items, batch.weights)
        return batch.items

    def _run(
        self, users: Int64Array, when: TrainingTime, target: State, rules: Rules
    ) -> tuple[Phases, float, StepReport]:
        """Both phases of a batch, items updated in `target`; the summed gradient of the neighbors' scale; loss and distance.

        The distance is that of users, and of items where they are not sums.
        """
        problem, rows = self.problem, self.problem.rows
        plan = self._plan._replace(progress=when.progress, iteration=np.uint64(when.iteration))
        places = arrange(users, rows, plan, balanced_order(users.size))
        n_rows = places.offsets[-1]
        if n_rows > MAX_ROWS:
            raise ParameterError(f"batch_size: a batch has {n_rows} rows, the most is {MAX_ROWS}; take fewer users")
        with threads(1 if n_rows < SMALL_BATCH else self._num_threads):
            batch, neighbor_scores = lay_out(places, rows, plan), NO_NEIGHBOR_SCORES
            if plan.negatives:
                sample_items(batch, rows, self.sampling_weights, batch.items, batch.weights)
            if problem.neighbors is not None:
                neighbor_scores = np.zeros(batch.items.size, np.float32)  # 0 for rows of the history only
                batch_neighbor_scores(batch, rows, *problem.neighbors, self._marks, neighbor_scores)
            if self.item_ids is not None:
                batch = batch._replace(items=np.searchsorted(self.item_ids, batch.items).astype(np.int32))
            in_parts = batch.items.size >= MANY_ROWS * self._counts.size
            if in_parts and not self._part_counts.size:
                self._part_counts = np.empty((*self._part_counts.shape[:2], self._counts.size), np.int32)
            active_items = invert(batch, self._part_counts if in_parts else self._counts)
            phases = self._phases(self, Inputs(batch, active_items, neighbor_scores, target, rules))
            scale_sum = scale_gradient(batch, phases.lists.G[0], neighbor_scores) if neighbor_scores.size else 0.0
            total = np.empty(3)
            moved_items = phases.moved_items if target is self.state else _NO_DISTANCES
            add_up(phases.lists.report, phases.moved_users, moved_items, total)
        return phases, scale_sum, StepReport(float(total[0]), int(total[1]), len(phases.lists.report), float(total[2]))

    def lists(self, batch: Batch, scores: Float64Array, neighbor_scores: Float32Array) -> Lists:
        """Losses and gradients of the lists of a batch at the sum of the scorer's and the neighbors' scores."""
        if self.problem.neighbors is not None:
            scores = scores + self.state.parameters[SCALE][0] * neighbor_scores
        lists = Lists(np.empty((2, scores.size), np.float32), np.empty((batch.users.size, 2)))
        self._run_lists(batch, scores, lists.G, lists.report)
        return lists


@lru_cache(maxsize=16)
def balanced_order(n: int) -> Int64Array:
    """(n,) a permutation of users sorted by descending list length whose equal slices have about equally many rows.

    Users are put into BALANCE_GROUPS groups one by one, first to last and back, and the order is group after group. Groups
    take turns in the order of their bits in reverse: neighbors go to different halves, quarters, ... of the groups.
    """
    turn, place = np.divmod(np.arange(n), BALANCE_GROUPS)
    place = np.where(turn % 2, BALANCE_GROUPS - 1 - place, place)
    group = np.zeros_like(place)
    for bit in range(BALANCE_GROUPS.bit_length() - 1):
        group |= ((place >> bit) & 1) * (BALANCE_GROUPS >> (bit + 1))
    return np.lexsort((turn, group)).astype(np.int64)


def _factor_state(blocks: Parameters) -> FactorState:
    return FactorState(blocks["user_factors"], blocks["item_factors"], blocks["item_bias"])


def _factor_phases(engine: CpuEngine, inputs: Inputs) -> Phases:
    """User step, scores again, item step."""
    batch, active_items, neighbor_scores, target, rules = inputs
    state, accumulators = _factor_state(engine.state.parameters), _factor_state(target.accumulators)
    scores = np.zeros(batch.items.size)
    factor_scores(batch, state, scores)
    first = engine.lists(batch, scores, neighbor_scores)
    moved_users = np.empty(batch.users.size)
    user_rule = np.array(rules["user_factors"], np.float64)
    factor_user_step(batch, first.G[0], state, accumulators, user_rule, moved_users)
    factor_scores(batch, state, scores)
    second = engine.lists(batch, scores, neighbor_scores)
    moved = np.empty(active_items.items.size)
    stepped = _factor_state(target.parameters)
    item_rules = np.array([rules["item_factors"], rules["item_bias"]], np.float64)
    factor_item_step(batch, active_items, second.G[1], stepped, accumulators, item_rules, moved)
    return Phases(batch, first, active_items, moved_users, moved)


def _history_phases(engine: CpuEngine, inputs: Inputs) -> Phases:
    """History sums and scores, lists, gradients of the sums, item step."""
    batch, active_items, neighbor_scores, target, rules = inputs
    state, scorer = HistoryState(*blocks_in_order(engine.state.parameters)), engine.problem.scorer
    assert isinstance(scorer, History)
    self_products(active_items, state, *engine.self_products)
    b, k = batch.users.size, state.Q.shape[1]
    sums = HistorySums(np.empty((b, 2), np.float32), np.empty((b, k), np.float32), np.empty((b, k), np.float32))
    scores = np.zeros(batch.items.size)
    history_scores(batch, state, scorer.exponent, engine.self_products, sums.c, sums.s, scores)
    lists = engine.lists(batch, scores, neighbor_scores)
    history_gradient(batch, lists.G[0], state.Q, sums.c, sums.gradient)
    moved = np.empty(active_items.items.size)
    stepped = HistoryState(*blocks_in_order(target.parameters))
    accumulators = HistoryState(*blocks_in_order(target.accumulators))
    item_rules = np.array([rules[name] for name in ("item_factors", "history_factors", "item_bias")], np.float64)
    history_item_step(batch, active_items, lists.G, sums, state, stepped, accumulators, item_rules, moved)
    return Phases(batch, lists, active_items, _NO_DISTANCES, moved)


_PHASES: dict[type, Callable[[CpuEngine, Inputs], Phases]] = {
    Factors: _factor_phases,
    History: _history_phases,
}
"""The phases of each scorer: a new scorer adds its own. They update the users in place and the items of `target`."""
