"""Full-batch descent with an adaptive step, as in the ListRank authors' program: doubled after each success, halved until
the loss drops."""

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from topnrank._typing import Int64Array
from topnrank.engines.base import END_OF_TRAINING, Engine, Problem, State, StepReport, TrainingTime

STEP = "step_size"
"""Name under which the step is kept among the accumulators, so that a resumed run goes on with it."""
MAX_HALVINGS = 60


@final
class AdaptiveEngine:
    """Drives another engine: each visit is one descent step along the whole gradient that lowers loss plus penalty."""

    def __init__(self, engine: Engine) -> None:
        self.driven = engine
        self.problem: Problem = engine.problem

    @property
    def state(self) -> State:
        """The state of the engine that is driven."""
        return self.driven.state

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One step that lowers the loss; none, with nothing moved, where even the smallest does not."""
        step = self.state.accumulators[STEP]
        first = step.copy()
        start = self._loss(users, when)
        put_back = self.driven.remember()
        for _ in range(MAX_HALVINGS):
            self.driven.problem = _with_rate(self.problem, float(step[0]))
            report = self.driven.step(users, when)
            if self._loss(users, when) < start:
                step *= 2.0
                return report
            put_back()
            step /= 2.0
        step[...] = first
        return report._replace(moved=0.0)

    def remember(self) -> Callable[[], None]:
        """As the engine that is driven."""
        return self.driven.remember()

    def _loss(self, users: Int64Array, when: TrainingTime) -> float:
        """Loss of the lists plus lambda ||theta||^2, counted once a visit like its gradient."""
        self.driven.problem = _with_rate(self.problem, 0.0)
        return self.driven.step(users, when).value + self._penalty(users)

    def _penalty(self, users: Int64Array) -> float:
        rows, scorer, total = self.problem.rows, self.problem.scorer, 0.0
        of_user = np.bincount(users, minlength=rows.indptr.size - 1)
        of_row = np.repeat(of_user, np.diff(rows.indptr)).astype(np.float64)
        for name, block in self.state.parameters.items():
            in_list = rows.listed if rows.listed.size and name not in scorer.history_blocks else 1.0
            visits = of_user
            if name != scorer.user_block:
                visits = np.bincount(rows.items, weights=of_row * in_list, minlength=block.shape[0])
            squares = (block.astype(np.float64) ** 2).reshape(block.shape[0], -1).sum(axis=1)
            total += 0.5 * self.problem.rules[name].decay * float(visits @ squares)
        return total


def _with_rate(problem: Problem, rate: float) -> Problem:
    """The problem with every rate times `rate`."""
    return replace(problem, rules={name: rule._replace(rate=rule.rate * rate) for name, rule in problem.rules.items()})
