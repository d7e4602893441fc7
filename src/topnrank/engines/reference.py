"""The reference engine: plain NumPy in float64, one user after another. Slow; the other engines are tested against it."""

from typing import Any, final

import numpy as np

from topnrank._typing import Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.engines.base import END_OF_TRAINING, Problem, State, StepReport, TrainingTime
from topnrank.losses.base import ListContext, ListGradient, evaluate_list
from topnrank.rng import SAMPLING, draws_below, visit_keys
from topnrank.scorers import TrainingLists, UpdateRule, UserRows
from topnrank.scorers.neighbors import SCALE


def update(rule: UpdateRule, gradient: FloatArray, block: FloatArray, accumulator: FloatArray, rows: Any) -> float:
    """Updates `block[rows]` along `gradient` (penalty included); returns the squared distance moved."""
    if rule.adagrad:
        accumulator[rows] += gradient**2
        gradient = gradient / np.sqrt(accumulator[rows])
    block[rows] -= rule.rate * gradient
    return float(np.sum((rule.rate * gradient) ** 2))


def user_rows(rows: TrainingLists, user: int, problem: Problem, n_items: int, key: int) -> UserRows:
    """The user's rows as `kernels.batch.lay_out` lays them out, sampled items included."""
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
    recency_weights = (
        rows.recency_weights[order].astype(np.float64) if rows.recency_weights.size else np.ones(order.size)
    )
    return UserRows(user, items, gains, residuals, aside.size, order.size, weights, recency_weights)


def _sample(unobserved: Int64Array, problem: Problem, key: int) -> tuple[Int32Array, Float64Array]:
    """Items drawn by their weights, and self-normalized importance weights, whose sum is the number of unobserved items."""
    sampling_weights = (
        np.ones(unobserved.size, np.int64) if problem.sampling_weights is None else problem.sampling_weights[unobserved]
    )
    ends = np.cumsum(sampling_weights)
    drawn = np.searchsorted(ends, draws_below(key, SAMPLING, int(ends[-1]), problem.negatives), side="right")
    inverse = 1.0 / sampling_weights[drawn]
    return unobserved[drawn].astype(np.int32), unobserved.size * inverse / inverse.sum()


@final
class ReferenceEngine:
    """Runs the NumPy code of scorer and objective."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem = problem
        parameters, accumulators = (
            {name: np.asarray(block, np.float64).copy() for name, block in part.items()}
            for part in (state.parameters, state.accumulators)
        )
        self.state = State(parameters, accumulators)  # type: ignore[arg-type]

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """Users first, then the items they touch."""
        n_items = self.state.parameters["item_bias"].size
        numbers = np.asarray(users, np.int64) + self.problem.first_user
        keys = visit_keys(self.problem.seed, when.iteration, numbers)
        batch = [
            (user_rows(self.problem.rows, int(user), self.problem, n_items, int(key)), int(key))
            for user, key in zip(users, keys, strict=True)
        ]
        lists = first = [self._evaluate(one, key, when) for one, key in batch]
        value, active = sum(g.value for g in lists), sum(g.active for g in lists)
        moved = 0.0
        if self.problem.scorer.user_block is not None:
            moved = sum(self._step_user(one, g) for (one, _), g in zip(batch, lists, strict=True))
            lists = [self._evaluate(one, key, when) for one, key in batch]
        moved += self._step_items([one for one, _ in batch], lists)
        moved += self._step_scale([one for one, _ in batch], first)
        return StepReport(value, active, len(users), moved)

    def _evaluate(self, one: UserRows, key: int, when: TrainingTime) -> ListGradient:
        scores = self.problem.scorer.scores(self.state.parameters, one)
        if self.problem.neighbors is not None:
            scores = scores + self.state.parameters[SCALE][0] * self._neighbor_scores(one)
        context = ListContext(one.items.size - one.own, one.weights, key, when.progress)
        return evaluate_list(self.problem.objective, scores, one.gains[one.first :], context)

    def _neighbor_scores(self, one: UserRows) -> Float64Array:
        """z of the user's list: own rows as prepared, sampled ones from the user's positive items."""
        rows, neighbors = self.problem.rows, self.problem.neighbors
        assert neighbors is not None
        mine = rows.of(one.user)
        prepared = dict(zip(rows.items[mine].tolist(), rows.neighbor_scores[mine].tolist(), strict=True))
        own = [prepared[item] for item in one.items[one.first : one.own].tolist()]
        liked = rows.gains[mine] > 0.0
        recency_weights = rows.recency_weights[mine][liked] if rows.recency_weights.size else None
        sampled = neighbors.neighbor_scores(rows.items[mine][liked], one.items[one.own :], recency_weights)
        return np.concatenate([np.array(own), sampled])

    def _step_scale(self, batch: list[UserRows], lists: list[ListGradient]) -> float:
        if self.problem.neighbors is None:
            return 0.0
        total = sum(float(g.user @ self._neighbor_scores(one)) for one, g in zip(batch, lists, strict=True)) / len(
            batch
        )
        block, rule = self.state.parameters[SCALE], self.problem.rules[SCALE]
        gradient = np.array([total + rule.decay * block[0]])
        return update(rule, gradient, block, self.state.accumulators[SCALE], np.zeros(1, np.int64))

    def _step_user(self, one: UserRows, gradient: ListGradient) -> float:
        name = str(self.problem.scorer.user_block)
        block, rule = self.state.parameters[name], self.problem.rules[name]
        g = self.problem.scorer.user_gradient(self.state.parameters, one, gradient.user)
        return update(rule, g + rule.decay * block[one.user], block, self.state.accumulators[name], one.user)

    def _step_items(self, batch: list[UserRows], lists: list[ListGradient]) -> float:
        """Every item of the batch once, along the sum over its rows; the penalty counts once for each row."""
        parameters, sums = self.state.parameters, dict[str, FloatArray]()
        visits = {name: np.zeros(block.shape[0]) for name, block in parameters.items() if name != SCALE}
        for one, g in zip(batch, lists, strict=True):
            parts = self.problem.scorer.item_gradients(parameters, one, g.user, g.item)
            for name, part in parts.items():
                in_history = name in self.problem.scorer.history_blocks
                items = one.items[: one.own] if in_history else one.items[one.first :]
                np.add.at(visits[name], items, 1.0 if in_history else self._counts(one))
                np.add.at(sums.setdefault(name, np.zeros_like(parameters[name])), items, part)
        return sum(self._step_block(name, total, visits[name]) for name, total in sums.items())

    def _counts(self, one: UserRows) -> Float64Array:
        """How often each row of the list counts in the penalty."""
        own, sampled = one.own - one.first, one.items.size - one.own
        count = own / sampled if self.problem.shared and sampled else 1.0
        return np.repeat([1.0, count], [own, sampled])

    def _step_block(self, name: str, total: FloatArray, visits: FloatArray) -> float:
        block, rule, active_items = self.state.parameters[name], self.problem.rules[name], np.flatnonzero(visits)
        count = visits[active_items].reshape(-1, *[1] * (block.ndim - 1))
        gradient = total[active_items] + rule.decay * count * block[active_items]
        return update(rule, gradient, block, self.state.accumulators[name], active_items)
