"""The reference engine: plain NumPy in float64, one user after another. Slow; what every other engine is held against."""

from typing import Any, final

import numpy as np

from topnrank._typing import FloatArray, Int64Array
from topnrank.engines.base import Problem, State, Visit
from topnrank.objectives import ListGradient
from topnrank.scorers import Parameters, Rule


def step(rule: Rule, gradient: FloatArray, block: FloatArray, accumulator: FloatArray, rows: Any) -> float:
    """Steps `block[rows]` along `gradient` (penalty included); returns the squared distance moved."""
    if rule.adagrad:
        accumulator[rows] += gradient**2
        gradient = gradient / np.sqrt(accumulator[rows])
    block[rows] -= rule.rate * gradient
    return float(np.sum((rule.rate * gradient) ** 2))


@final
class ReferenceEngine:
    """Runs the NumPy code of scorer and objective."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem = problem
        self.state = State(_in_float64(state.parameters), _in_float64(state.accumulators))

    def visit(self, users: Int64Array) -> Visit:
        """Users first, then the items they touch."""
        lists = [self._evaluate(int(user)) for user in users]
        value, active = sum(g.value for g in lists), sum(g.active for g in lists)
        moved = 0.0
        if self.problem.scorer.user_block is not None:
            moved = sum(self._step_user(int(user), g) for user, g in zip(users, lists, strict=True))
            lists = [self._evaluate(int(user)) for user in users]
        moved += self._step_items(users, lists)
        return Visit(value, active, len(users), moved)

    def _evaluate(self, user: int) -> ListGradient:
        rows = self.problem.rows
        scores = self.problem.scorer.scores(self.state.parameters, rows, user)
        return self.problem.objective.evaluate(scores, rows.gains[rows.of(user)].astype(np.float64))

    def _step_user(self, user: int, gradient: ListGradient) -> float:
        name = str(self.problem.scorer.user_block)
        block, rule = self.state.parameters[name], self.problem.rules[name]
        g = self.problem.scorer.user_gradient(self.state.parameters, self.problem.rows, user, gradient.user)
        return step(rule, g + rule.decay * block[user], block, self.state.accumulators[name], user)

    def _step_items(self, users: Int64Array, lists: list[ListGradient]) -> float:
        """Every touched item once, along the sum over its visits; the penalty counts once a visit."""
        sums: Parameters = {}
        visits = np.zeros(self.state.parameters["item_bias"].shape[0])
        for user, g in zip(users, lists, strict=True):
            items = self.problem.rows.items[self.problem.rows.of(int(user))]
            visits[items] += 1
            parts = self.problem.scorer.item_gradients(
                self.state.parameters, self.problem.rows, int(user), g.user, g.item
            )
            for name, part in parts.items():
                np.add.at(sums.setdefault(name, np.zeros_like(self.state.parameters[name])), items, part)
        touched = np.flatnonzero(visits)
        return sum(self._step_block(name, total, touched, visits) for name, total in sums.items())

    def _step_block(self, name: str, total: FloatArray, touched: Int64Array, visits: FloatArray) -> float:
        block, rule = self.state.parameters[name], self.problem.rules[name]
        count = visits[touched].reshape(-1, *[1] * (block.ndim - 1))
        gradient = total[touched] + rule.decay * count * block[touched]
        return step(rule, gradient, block, self.state.accumulators[name], touched)


def _in_float64(blocks: Parameters) -> Parameters:
    return {name: block.astype(np.float64) for name, block in blocks.items()}
