"""The CPU engine: Numba kernels, all cores, the same bits for any number of threads."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array
from topnrank.engines.base import END_OF_TRAINING, ItemSums, Problem, State, StepReport, TrainingTime, remember_arrays
from topnrank.errors import ParameterError
from topnrank.kernels.batch import MAX_ROWS, ActiveItems, Batch, Lists, Places, Plan, arrange, lay_out, sample_items
from topnrank.kernels.item_index import count_visits, invert, invert_in_parts
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
from topnrank.scorers.neighbors import SCALE

SMALL_BATCH = 2000
"""Rows below which one thread does the work: waking others costs more, on a busy machine a hundred times more."""

BALANCE_GROUPS = 16
"""Groups that the users of a batch are dealt to, longest lists first; two, four, ... threads get as many each."""
MANY_ROWS = 8
"""Rows for each item of the catalog from which a batch is inverted by several threads."""
MAX_PARTS = 8
"""Parts of such a batch, at most: each counts all items."""

Rules = dict[str, UpdateRule]


class Phases(NamedTuple):
    """What the phases of a visit leave."""

    lists: Lists
    active_items: ActiveItems
    moved_users: Float64Array
    """(b,) squared distance that each user's vector moved, or (0,)"""
    moved_items: Float64Array
    """(t,) and each touched item"""


@final
class CpuEngine:
    """Visits batches with compiled kernels."""

    def __init__(
        self, problem: Problem, state: State, num_threads: int = 0, *, item_ids: Int32Array | None = None
    ) -> None:
        self.problem, self.state = problem, state
        self.item_ids = item_ids
        """The items whose rows the state holds, ascending; None for all."""
        self._num_threads, self._workers = num_threads, thread_count(num_threads)
        self._run_lists = compiled_lists(problem.objective)
        self._phases = _PHASES[type(problem.scorer)]
        n_items = state.parameters["item_bias"].size
        n_all = problem.n_items or n_items
        self._orders: dict[int, Int64Array] = {}
        self._counts = np.zeros(n_items, np.int32)
        """Scratch of `invert`, zero between visits."""
        self._part_counts = np.zeros((1 + (problem.negatives > 0), min(self._workers, MAX_PARTS), 0), np.int32)
        """Scratch of `invert_in_parts`, made when needed."""
        channels = getattr(problem.scorer, "channels", 1)
        self.own = SelfProducts(np.zeros(n_items, np.float32), np.zeros((n_items, channels), np.float32))
        """Scratch of `self_products`."""
        masses = np.ones(n_all, np.int64) if problem.sampling_weights is None else problem.sampling_weights
        self.marks = np.zeros((self._workers, n_all if problem.neighbors is not None else 0), np.float32)
        """Scratch of `batch_neighbor_scores`, zero between visits."""
        self.sampling_weights = np.concatenate([[0], np.cumsum(masses)]).astype(np.int64)

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch: flat layout, user phase, item phase."""
        plan = self._plan(when)
        places = self._balanced(users, plan)
        with self._threads(places):
            batch = self._lay_out(places, plan)
            phases = self._phases(self, batch, self.state, self.problem.rules)
            scale = self._step_scale(batch, phases.lists.G[0])
        return self._report(phases, phases.moved_items, scale)

    def sums(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> ItemSums:
        """A part of a batch: its users step, its items do not; what their steps need from these users."""
        plan, parameters = self._plan(when), self.state.parameters
        places = self._balanced(users, plan)
        zeros = {name: np.zeros_like(parameters[name]) for name in parameters if name != self.problem.scorer.user_block}
        with self._threads(places):
            batch = self.renumbered(self._lay_out(places, plan))
            rules = {name: UpdateRule(*SUM) if name in zeros else rule for name, rule in self.problem.rules.items()}
            phases = self._phases(self, batch, State(parameters | zeros, self.state.accumulators | zeros), rules)
            active_items = phases.active_items
            in_lists, in_histories = np.empty(active_items.items.size), np.empty(active_items.items.size)
            count_visits(batch, active_items, in_lists, in_histories)
            scale = (
                0.0
                if self.problem.neighbors is None
                else scale_gradient(batch, phases.lists.G[0], self.neighbor_scores)
            )
        gradients = {name: sums[active_items.items] for name, sums in zeros.items() if name != SCALE}
        report = self._report(phases, _NOBODY, 0.0)
        items = active_items.items if self.item_ids is None else self.item_ids[active_items.items]
        return ItemSums(items, gradients, in_lists, in_histories, np.array([scale]), report)

    def lay_out(self, users: Int64Array, when: TrainingTime) -> Batch:
        """The batch of `users`, with the items sampled for them and what the neighbors say of its rows."""
        plan = self._plan(when)
        return self._lay_out(arrange(users, self.problem.rows, plan), plan)

    def _lay_out(self, places: Places, plan: Plan) -> Batch:
        batch = lay_out(places, self.problem.rows, plan)
        if plan.negatives:
            sample_items(batch, self.problem.rows, self.sampling_weights, batch.items, batch.weights)
        self.neighbor_scores = self._neighbor_scores(batch)
        return batch

    def _plan(self, when: TrainingTime) -> Plan:
        problem, histories = self.problem, bool(self.problem.scorer.history_blocks)
        draws = np.uint64(problem.seed % 2**64), np.uint64(when.iteration), problem.first_user
        return Plan(
            histories, problem.negatives, self.sampling_weights, problem.shared, when.progress, *draws, self._workers
        )

    def _balanced(self, users: Int64Array, plan: Plan) -> Places:
        """The users in another order, whose equal parts, one for each thread, have about equally many rows."""
        if users.size not in self._orders:
            self._orders[users.size] = balanced_order(users.size)
        places = arrange(users, self.problem.rows, plan, self._orders[users.size])
        if places.offsets[-1] > MAX_ROWS:
            raise ParameterError(
                f"batch_size: a batch has {places.offsets[-1]} rows, the most is {MAX_ROWS}; take fewer users"
            )
        return places

    def _report(self, phases: Phases, moved_items: Float64Array, moved: float) -> StepReport:
        """`moved` counts what neither users nor items moved."""
        total = np.empty(3)
        add_up(phases.lists.report, phases.moved_users, moved_items, total)
        return StepReport(float(total[0]), int(total[1]), len(phases.lists.report), float(total[2]) + moved)

    def renumbered(self, batch: Batch) -> Batch:
        """The batch with the items numbered by their place among those held."""
        if self.item_ids is None:
            return batch
        return batch._replace(items=np.searchsorted(self.item_ids, batch.items).astype(np.int32))

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        return remember_arrays(self.state.parameters)

    def _threads(self, places: Places) -> AbstractContextManager[None]:
        return threads(1 if places.offsets[-1] < SMALL_BATCH else self._num_threads)

    def active_items(self, batch: Batch) -> ActiveItems:
        """The batch seen from its items."""
        n_items = self._counts.size
        if batch.items.size < MANY_ROWS * n_items:
            return invert(batch, self._counts)
        if not self._part_counts.size:
            self._part_counts = np.empty((*self._part_counts.shape[:2], n_items), np.int32)
        return invert_in_parts(batch, self._part_counts)

    def room_for_scores(self, batch: Batch) -> Float64Array:
        """An array for the scores of the lists; where links are added to all of it, what no list uses is 0."""
        return np.empty(batch.items.size) if self.problem.neighbors is None else np.zeros(batch.items.size)

    def lists(self, batch: Batch, scores: Float64Array) -> Lists:
        """The objective's view of the batch; `scores` are the scorer's, the neighbors' are added here."""
        if self.problem.neighbors is not None:
            scores = scores + self.state.parameters[SCALE][0] * self.neighbor_scores
        lists = Lists(np.empty((2, scores.size), np.float32), np.empty((batch.users.size, 2)))
        self._run_lists(batch, scores, lists.G, lists.report)
        return lists

    def _neighbor_scores(self, batch: Batch) -> Float32Array:
        """z of every row of the batch's lists, 0 for rows of the history only; empty without neighbors."""
        if self.problem.neighbors is None:
            return NO_NEIGHBOR_SCORES
        neighbor_scores = np.zeros(batch.items.size, np.float32)
        batch_neighbor_scores(batch, self.problem.rows, *self.problem.neighbors, self.marks, neighbor_scores)
        return neighbor_scores

    def _step_scale(self, batch: Batch, G: Float32Array) -> float:
        """One step of the neighbors' scale along the batch's mean of sum_i G_i z_i."""
        if self.problem.neighbors is None:
            return 0.0
        total = scale_gradient(batch, G, self.neighbor_scores) / batch.users.size
        values, accumulators = self.state.parameters[SCALE], self.state.accumulators[SCALE]
        return float(step_number(_rules(self.problem.rules, SCALE)[0], 1.0, total, values, accumulators, 0))


def balanced_order(n: int) -> Int64Array:
    """(n,) the numbers 0 to n - 1 as they lie when dealt to HANDS hands in turn, there and back, hand after hand.

    Hands take their turn in the order of their bits in reverse: neighbors go to far halves, quarters, ... of the hands.
    """
    turn, place = np.divmod(np.arange(n), BALANCE_GROUPS)
    place = np.where(turn % 2, BALANCE_GROUPS - 1 - place, place)
    group = np.zeros_like(place)
    for bit in range(BALANCE_GROUPS.bit_length() - 1):
        group |= ((place >> bit) & 1) * (BALANCE_GROUPS >> (bit + 1))
    return np.lexsort((turn, group)).astype(np.int64)


_NOBODY = np.empty(0)


def _rules(rules: Rules, *names: str) -> Float64Array:
    """The rules of some blocks as the kernels take them, one row each; to be read only."""
    return _rule_array(tuple([rules[name] for name in names]))


@lru_cache(maxsize=64)
def _rule_array(rules: tuple[UpdateRule, ...]) -> Float64Array:
    return np.array(rules, np.float64)


def _factor_state(blocks: Parameters) -> FactorState:
    return FactorState(blocks["user_factors"], blocks["item_factors"], blocks["item_bias"])


def _factor_phases(engine: CpuEngine, batch: Batch, target: State, rules: Rules) -> Phases:
    """User step, scores again, item step; or both steps from the same scores."""
    state, accumulators = _factor_state(engine.state.parameters), _factor_state(target.accumulators)
    scores = engine.room_for_scores(batch)
    factor_scores(batch, state, scores)
    first = engine.lists(batch, scores)
    moved_users = np.empty(batch.users.size)
    U = state.U.copy() if engine.problem.simultaneous else state.U
    factor_user_step(batch, first.G[0], state, accumulators, _rules(rules, "user_factors")[0], moved_users)
    second = first
    if not engine.problem.simultaneous:
        factor_scores(batch, state, scores)
        second = engine.lists(batch, scores)
    active_items = engine.active_items(batch)
    moved = np.empty(active_items.items.size)
    stepped = _factor_state(target.parameters)._replace(U=U)
    factor_item_step(
        batch, active_items, second.G[1], stepped, accumulators, _rules(rules, "item_factors", "item_bias"), moved
    )
    return Phases(first, active_items, moved_users, moved)


def _history_state(blocks: Parameters) -> HistoryState:
    return HistoryState(
        blocks["item_factors"], blocks["history_factors"], blocks["rating_factors"], blocks["item_bias"]
    )


def _history_phases(engine: CpuEngine, batch: Batch, target: State, rules: Rules) -> Phases:
    """One pass: sums and scores, lists, pulls, item step."""
    state, scorer = _history_state(engine.state.parameters), engine.problem.scorer
    assert isinstance(scorer, History)
    active_items = engine.active_items(batch)
    self_products(active_items, state, *engine.own)
    b, k = batch.users.size, state.Q.shape[1]
    sums = HistorySums(np.empty((b, 2), np.float32), np.empty((b, k), np.float32), np.empty((b, k), np.float32))
    scores = engine.room_for_scores(batch)
    history_scores(batch, state, scorer.exponent, engine.own, sums.c, sums.s, scores)
    lists = engine.lists(batch, scores)
    history_gradient(batch, lists.G[0], state.Q, sums.c, sums.gradient)
    moved = np.empty(active_items.items.size)
    stepped = _history_state(target.parameters), _history_state(target.accumulators)
    item_rules = _rules(rules, "item_factors", "history_factors", "item_bias")
    history_item_step(batch, active_items, lists.G, sums, state, *stepped, item_rules, moved)
    return Phases(lists, active_items, _NOBODY, moved)


_PHASES: dict[type, Callable[[CpuEngine, Batch, State, Rules], Phases]] = {
    Factors: _factor_phases,
    History: _history_phases,
}
"""The phases of each scorer: a new scorer adds its own. Item steps go to the state that is given."""
