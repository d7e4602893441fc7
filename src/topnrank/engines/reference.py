"""The reference engine: plain NumPy in float64, one user after another. Slow; what every other engine is held against."""

from collections.abc import Callable
from typing import Any, final

import numpy as np

from topnrank._typing import Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.engines.base import LAST, Moment, Problem, State, Visit, remember_arrays
from topnrank.losses.base import ListGradient, Occasion, evaluate_list
from topnrank.rng import SAMPLING, draws_below, visit_keys
from topnrank.scorers import Parameters, Rows, Rule, Visited
from topnrank.scorers.neighbors import SCALE


def step(rule: Rule, gradient: FloatArray, block: FloatArray, accumulator: FloatArray, rows: Any) -> float:
    """Steps `block[rows]` along `gradient` (penalty included); returns the squared distance moved."""
    if rule.adagrad:
        accumulator[rows] += gradient**2
        gradient = gradient / np.sqrt(accumulator[rows])
    block[rows] -= rule.rate * gradient
    return float(np.sum((rule.rate * gradient) ** 2))


def visited(rows: Rows, user: int, problem: Problem, n_items: int, key: int) -> Visited:
    """The user's rows as `kernels.batches.lay_out` lays them out, sampled items included."""
    own = rows.of(user)
    order = np.arange(own.start, own.stop)
    listed = rows.listed[own] if rows.listed.size else np.ones(order.size, np.bool_)
    aside = order[~listed] if problem.scorer.history_blocks else order[:0]
    order = np.concatenate([aside, order[listed]])
    sampled, weights = np.empty(0, np.int32), np.empty(0)
    unobserved = np.setdiff1d(np.arange(n_items), rows.items[own])
    if listed.any() and unobserved.size and problem.negatives:
        sampled, weights = _sample(unobserved, problem, key)
    nothing = np.zeros(sampled.size)
    unknown = np.zeros((sampled.size, rows.residuals.shape[1]))
    residuals = np.concatenate([rows.residuals[order], unknown]) if rows.residuals.size else np.empty((0, 1))
    items, gains = np.concatenate([rows.items[order], sampled]), np.concatenate([rows.gains[order], nothing])
    strengths = rows.strengths[order].astype(np.float64) if rows.strengths.size else np.ones(order.size)
    return Visited(user, items, gains, residuals, aside.size, order.size, weights, strengths)


def _sample(unobserved: Int64Array, problem: Problem, key: int) -> tuple[Int32Array, Float64Array]:
    """Items drawn by their chances, and self-normalised importance weights: their sum is the number of unobserved items."""
    chances = np.ones(unobserved.size, np.int64) if problem.chances is None else problem.chances[unobserved]
    ends = np.cumsum(chances)
    drawn = np.searchsorted(ends, draws_below(key, SAMPLING, int(ends[-1]), problem.negatives), side="right")
    inverse = 1.0 / chances[drawn]
    return unobserved[drawn].astype(np.int32), unobserved.size * inverse / inverse.sum()


@final
class ReferenceEngine:
    """Runs the NumPy code of scorer and objective."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem = problem
        self.state = State(_in_float64(state.parameters), _in_float64(state.accumulators))

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        return remember_arrays(self.state.parameters)

    def visit(self, users: Int64Array, moment: Moment = LAST) -> Visit:
        """Users first, then the items they touch."""
        n_items = self.state.parameters["item_bias"].size
        numbers = np.asarray(users, np.int64) + self.problem.first_user
        keys = visit_keys(self.problem.seed, moment.iteration, numbers)
        batch = [
            (visited(self.problem.rows, int(user), self.problem, n_items, int(key)), int(key))
            for user, key in zip(users, keys, strict=True)
        ]
        lists = first = [self._evaluate(one, key, moment) for one, key in batch]
        value, active = sum(g.value for g in lists), sum(g.active for g in lists)
        before = {name: block.copy() for name, block in self.state.parameters.items()}
        moved = 0.0
        if self.problem.scorer.user_block is not None:
            moved = sum(self._step_user(one, g) for (one, _), g in zip(batch, lists, strict=True))
            if not self.problem.simultaneous:
                before = self.state.parameters
                lists = [self._evaluate(one, key, moment) for one, key in batch]
        moved += self._step_items([one for one, _ in batch], lists, before)
        moved += self._step_scale([one for one, _ in batch], first)
        return Visit(value, active, len(users), moved)

    def _evaluate(self, one: Visited, key: int, moment: Moment) -> ListGradient:
        scores = self.problem.scorer.scores(self.state.parameters, one)
        if self.problem.neighbours is not None:
            scores = scores + self.state.parameters[SCALE][0] * self._links(one)
        occasion = Occasion(one.items.size - one.own, one.weights, key, moment.progress)
        return evaluate_list(self.problem.objective, scores, one.gains[one.first :], occasion)

    def _links(self, one: Visited) -> Float64Array:
        """z of the user's list: own rows as prepared, sampled ones from the user's likes."""
        rows, neighbours = self.problem.rows, self.problem.neighbours
        assert neighbours is not None
        mine = rows.of(one.user)
        prepared = dict(zip(rows.items[mine].tolist(), rows.links[mine].tolist(), strict=True))
        own = [prepared[item] for item in one.items[one.first : one.own].tolist()]
        liked = rows.gains[mine] > 0.0
        strengths = rows.strengths[mine][liked] if rows.strengths.size else None
        sampled = neighbours.links(rows.items[mine][liked], one.items[one.own :], strengths)
        return np.concatenate([np.array(own), sampled])

    def _step_scale(self, batch: list[Visited], lists: list[ListGradient]) -> float:
        if self.problem.neighbours is None:
            return 0.0
        total = sum(float(g.user @ self._links(one)) for one, g in zip(batch, lists, strict=True)) / len(batch)
        block, rule = self.state.parameters[SCALE], self.problem.rules[SCALE]
        gradient = np.array([total + rule.decay * block[0]])
        return step(rule, gradient, block, self.state.accumulators[SCALE], np.zeros(1, np.int64))

    def _step_user(self, one: Visited, gradient: ListGradient) -> float:
        name = str(self.problem.scorer.user_block)
        block, rule = self.state.parameters[name], self.problem.rules[name]
        g = self.problem.scorer.user_gradient(self.state.parameters, one, gradient.user)
        return step(rule, g + rule.decay * block[one.user], block, self.state.accumulators[name], one.user)

    def _step_items(self, batch: list[Visited], lists: list[ListGradient], before: Parameters) -> float:
        """Every touched item once, along the sum over its visits; the penalty counts once a visit."""
        sums: Parameters = {}
        visits = {name: np.zeros(block.shape[0]) for name, block in before.items() if name != SCALE}
        for one, g in zip(batch, lists, strict=True):
            parts = self.problem.scorer.item_gradients(before, one, g.user, g.item)
            for name, part in parts.items():
                in_history = name in self.problem.scorer.history_blocks
                items = one.items[: one.own] if in_history else one.items[one.first :]
                np.add.at(visits[name], items, 1.0 if in_history else self._counts(one))
                np.add.at(sums.setdefault(name, np.zeros_like(before[name])), items, part)
        return sum(self._step_block(name, total, visits[name]) for name, total in sums.items())

    def _counts(self, one: Visited) -> Float64Array:
        """How many visits each row of the list counts as."""
        own, sampled = one.own - one.first, one.items.size - one.own
        count = own / sampled if self.problem.shared and sampled else 1.0
        return np.repeat([1.0, count], [own, sampled])

    def _step_block(self, name: str, total: FloatArray, visits: FloatArray) -> float:
        block, rule, touched = self.state.parameters[name], self.problem.rules[name], np.flatnonzero(visits)
        count = visits[touched].reshape(-1, *[1] * (block.ndim - 1))
        gradient = total[touched] + rule.decay * count * block[touched]
        return step(rule, gradient, block, self.state.accumulators[name], touched)


def _in_float64(blocks: Parameters) -> Parameters:
    return {name: block.astype(np.float64) for name, block in blocks.items()}
