"""The CPU engine: Numba kernels, all cores, the same bits for any number of threads."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array
from topnrank.engines.base import LAST, ItemSums, Moment, Problem, State, Visit, remember_arrays
from topnrank.errors import ParameterError
from topnrank.kernels.batch import MOST_ROWS, Batch, Lists, Places, Plan, Touched, arrange, lay_out, sample_items
from topnrank.kernels.item_index import count_visits, invert, invert_in_parts
from topnrank.kernels.jit import thread_count, threads
from topnrank.kernels.updates import SUM, add_up, step_number
from topnrank.losses.table import compiled_lists
from topnrank.scorers import Factors, History, Parameters, Rule
from topnrank.scorers._factors_kernel import FactorState, factor_item_step, factor_scores, factor_user_step
from topnrank.scorers._history_kernel import (
    HistoryState,
    HistorySums,
    history_item_step,
    history_pull,
    history_scores,
    own_products,
)
from topnrank.scorers._neighbors_kernel import batch_links, scale_gradient
from topnrank.scorers.base import NO_LINKS
from topnrank.scorers.neighbors import SCALE

SMALL_BATCH = 2000
"""Rows below which one thread does the work: waking others costs more, on a busy machine a hundred times more."""

HANDS = 16
"""Groups that the users of a batch are dealt to, longest lists first; two, four, ... threads get as many each."""
MANY_ROWS = 8
"""Rows for each item of the catalogue from which a batch is inverted by several threads."""
MOST_PARTS = 8
"""Parts of such a batch, at most: each counts all items."""

Rules = dict[str, Rule]


class Phases(NamedTuple):
    """What the phases of a visit leave."""

    lists: Lists
    touched: Touched
    moved_users: Float64Array
    """(b,) squared distance that each user's vector moved, or (0,)"""
    moved_items: Float64Array
    """(t,) and each touched item"""


@final
class CpuEngine:
    """Visits batches with compiled kernels."""

    def __init__(self, problem: Problem, state: State, num_threads: int = 0, *, held: Int32Array | None = None) -> None:
        self.problem, self.state = problem, state
        self.held = held
        """The items whose rows the state holds, ascending; None for all."""
        self._num_threads, self._workers = num_threads, thread_count(num_threads)
        self._run_lists = compiled_lists(problem.objective)
        self._phases = _PHASES[type(problem.scorer)]
        n_items = state.parameters["item_bias"].size
        n_all = problem.n_items or n_items
        self._deals: dict[int, Int64Array] = {}
        self._counts = np.zeros(n_items, np.int32)
        """Scratch of `invert`, zero between visits."""
        self._part_counts = np.zeros((1 + (problem.negatives > 0), min(self._workers, MOST_PARTS), 0), np.int32)
        """Scratch of `invert_in_parts`, made when needed."""
        channels = getattr(problem.scorer, "channels", 1)
        self.own = (np.zeros(n_items, np.float32), np.zeros((n_items, channels), np.float32))
        """Scratch of `own_products`."""
        masses = np.ones(n_all, np.int64) if problem.chances is None else problem.chances
        self.marks = np.zeros((self._workers, n_all if problem.neighbours is not None else 0), np.float32)
        """Scratch of `batch_links`, zero between visits."""
        self.chances = np.concatenate([[0], np.cumsum(masses)]).astype(np.int64)

    def visit(self, users: Int64Array, moment: Moment = LAST) -> Visit:
        """One batch: flat layout, user phase, item phase."""
        plan = self._plan(moment)
        places = self._dealt(users, plan)
        with self._threads(places):
            batch = self._lay_out(places, plan)
            phases = self._phases(self, batch, self.state, self.problem.rules)
            scale = self._step_scale(batch, phases.lists.G[0])
        return self._report(phases, phases.moved_items, scale)

    def sums(self, users: Int64Array, moment: Moment = LAST) -> ItemSums:
        """A part of a batch: its users step, its items do not; what their steps need from these users."""
        plan, parameters = self._plan(moment), self.state.parameters
        places = self._dealt(users, plan)
        zeros = {name: np.zeros_like(parameters[name]) for name in parameters if name != self.problem.scorer.user_block}
        with self._threads(places):
            batch = self.numbered_as_held(self._lay_out(places, plan))
            rules = {name: Rule(*SUM) if name in zeros else rule for name, rule in self.problem.rules.items()}
            phases = self._phases(self, batch, State(parameters | zeros, self.state.accumulators | zeros), rules)
            touched = phases.touched
            in_lists, in_histories = np.empty(touched.items.size), np.empty(touched.items.size)
            count_visits(batch, touched, in_lists, in_histories)
            scale = 0.0 if self.problem.neighbours is None else scale_gradient(batch, phases.lists.G[0], self.links)
        gradients = {name: sums[touched.items] for name, sums in zeros.items() if name != SCALE}
        visit = self._report(phases, _NOBODY, 0.0)
        items = touched.items if self.held is None else self.held[touched.items]
        return ItemSums(items, gradients, in_lists, in_histories, np.array([scale]), visit)

    def lay_out(self, users: Int64Array, moment: Moment) -> Batch:
        """The batch of `users`, with the items sampled for them and what the neighbours say of its rows."""
        plan = self._plan(moment)
        return self._lay_out(arrange(users, self.problem.rows, plan), plan)

    def _lay_out(self, places: Places, plan: Plan) -> Batch:
        batch = lay_out(places, self.problem.rows, plan)
        if plan.negatives:
            sample_items(batch, self.problem.rows, self.chances, batch.items, batch.weights)
        self.links = self._links(batch)
        return batch

    def _plan(self, moment: Moment) -> Plan:
        problem, histories = self.problem, bool(self.problem.scorer.history_blocks)
        draws = np.uint64(problem.seed % 2**64), np.uint64(moment.iteration), problem.first_user
        return Plan(histories, problem.negatives, self.chances, problem.shared, moment.progress, *draws, self._workers)

    def _dealt(self, users: Int64Array, plan: Plan) -> Places:
        """The users in another order, whose equal parts, one for each thread, have about equally many rows."""
        if users.size not in self._deals:
            self._deals[users.size] = dealt(users.size)
        places = arrange(users, self.problem.rows, plan, self._deals[users.size])
        if places.offsets[-1] > MOST_ROWS:
            raise ParameterError(
                f"batch_size: a batch has {places.offsets[-1]} rows, the most is {MOST_ROWS}; take fewer users"
            )
        return places

    def _report(self, phases: Phases, moved_items: Float64Array, moved: float) -> Visit:
        """`moved` counts what neither users nor items moved."""
        total = np.empty(3)
        add_up(phases.lists.report, phases.moved_users, moved_items, total)
        return Visit(float(total[0]), int(total[1]), len(phases.lists.report), float(total[2]) + moved)

    def numbered_as_held(self, batch: Batch) -> Batch:
        """The batch with the items numbered by their place among those held."""
        if self.held is None:
            return batch
        return batch._replace(items=np.searchsorted(self.held, batch.items).astype(np.int32))

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        return remember_arrays(self.state.parameters)

    def _threads(self, places: Places) -> AbstractContextManager[None]:
        return threads(1 if places.offsets[-1] < SMALL_BATCH else self._num_threads)

    def touched(self, batch: Batch) -> Touched:
        """The batch seen from its items."""
        n_items = self._counts.size
        if batch.items.size < MANY_ROWS * n_items:
            return invert(batch, self._counts)
        if not self._part_counts.size:
            self._part_counts = np.empty((*self._part_counts.shape[:2], n_items), np.int32)
        return invert_in_parts(batch, self._part_counts)

    def room_for_scores(self, batch: Batch) -> Float64Array:
        """An array for the scores of the lists; where links are added to all of it, what no list uses is 0."""
        return np.empty(batch.items.size) if self.problem.neighbours is None else np.zeros(batch.items.size)

    def lists(self, batch: Batch, scores: Float64Array) -> Lists:
        """The objective's view of the batch; `scores` are the scorer's, the neighbours' are added here."""
        if self.problem.neighbours is not None:
            scores = scores + self.state.parameters[SCALE][0] * self.links
        lists = Lists(np.empty((2, scores.size), np.float32), np.empty((batch.users.size, 2)))
        self._run_lists(batch, scores, lists.G, lists.report)
        return lists

    def _links(self, batch: Batch) -> Float32Array:
        """z of every row of the batch's lists, 0 for rows of the history only; empty without neighbours."""
        if self.problem.neighbours is None:
            return NO_LINKS
        links = np.zeros(batch.items.size, np.float32)
        batch_links(batch, self.problem.rows, *self.problem.neighbours, self.marks, links)
        return links

    def _step_scale(self, batch: Batch, G: Float32Array) -> float:
        """One step of the neighbours' scale along the batch's mean of sum_i G_i z_i."""
        if self.problem.neighbours is None:
            return 0.0
        total = scale_gradient(batch, G, self.links) / batch.users.size
        values, accumulators = self.state.parameters[SCALE], self.state.accumulators[SCALE]
        return float(step_number(_rules(self.problem.rules, SCALE)[0], 1.0, total, values, accumulators, 0))


def dealt(n: int) -> Int64Array:
    """(n,) the numbers 0 to n - 1 as they lie when dealt to HANDS hands in turn, there and back, hand after hand.

    Hands take their turn in the order of their bits in reverse: neighbours go to far halves, quarters, ... of the hands.
    """
    turn, place = np.divmod(np.arange(n), HANDS)
    place = np.where(turn % 2, HANDS - 1 - place, place)
    hand = np.zeros_like(place)
    for bit in range(HANDS.bit_length() - 1):
        hand |= ((place >> bit) & 1) * (HANDS >> (bit + 1))
    return np.lexsort((turn, hand)).astype(np.int64)


_NOBODY = np.empty(0)


def _rules(rules: Rules, *names: str) -> Float64Array:
    """The rules of some blocks as the kernels take them, one row each; to be read only."""
    return _rule_array(tuple([rules[name] for name in names]))


@lru_cache(maxsize=64)
def _rule_array(rules: tuple[Rule, ...]) -> Float64Array:
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
    touched = engine.touched(batch)
    moved = np.empty(touched.items.size)
    stepped = _factor_state(target.parameters)._replace(U=U)
    factor_item_step(
        batch, touched, second.G[1], stepped, accumulators, _rules(rules, "item_factors", "item_bias"), moved
    )
    return Phases(first, touched, moved_users, moved)


def _history_state(blocks: Parameters) -> HistoryState:
    return HistoryState(
        blocks["item_factors"], blocks["history_factors"], blocks["rating_factors"], blocks["item_bias"]
    )


def _history_phases(engine: CpuEngine, batch: Batch, target: State, rules: Rules) -> Phases:
    """One pass: sums and scores, lists, pulls, item step."""
    state, scorer = _history_state(engine.state.parameters), engine.problem.scorer
    assert isinstance(scorer, History)
    touched = engine.touched(batch)
    own_products(touched, state, *engine.own)
    b, k = batch.users.size, state.Q.shape[1]
    sums = HistorySums(np.empty((b, 2), np.float32), np.empty((b, k), np.float32), np.empty((b, k), np.float32))
    scores = engine.room_for_scores(batch)
    history_scores(batch, state, scorer.exponent, engine.own, sums.c, sums.s, scores)
    lists = engine.lists(batch, scores)
    history_pull(batch, lists.G[0], state.Q, sums.c, sums.pull)
    moved = np.empty(touched.items.size)
    stepped = _history_state(target.parameters), _history_state(target.accumulators)
    item_rules = _rules(rules, "item_factors", "history_factors", "item_bias")
    history_item_step(batch, touched, lists.G, sums, state, *stepped, item_rules, moved)
    return Phases(lists, touched, _NOBODY, moved)


_PHASES: dict[type, Callable[[CpuEngine, Batch, State, Rules], Phases]] = {
    Factors: _factor_phases,
    History: _history_phases,
}
"""The phases of each scorer: a new scorer adds its own. Item steps go to the state that is given."""
