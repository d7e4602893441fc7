"""train: the only training loop of the library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from topnrank.engines import Engine, TrainingTime
from topnrank.errors import DivergenceError
from topnrank.training.schedule import Schedule


@dataclass
class Round:
    """Loss and progress of one round of batches; callbacks may add metrics."""

    number: int
    """1, 2, ..."""
    iteration: int
    """Steps so far, over all rounds"""
    objective: float
    """Mean loss of the lists"""
    effective_n: float
    """Mean number of items per list that still count (smooth rank below N)"""
    moved: float
    """Squared distance the parameters moved in this round"""
    metrics: dict[str, float] = field(default_factory=dict)
    stop: bool = False
    """Whether a callback has asked to stop: those after it see that this round is the last"""


class Callback(Protocol):
    """Called after each round of training; may stop it."""

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """What to do after a round; True stops the training."""
        ...


def train(engine: Engine, schedule: Schedule, callbacks: Sequence[Callback] = (), *, done: int = 0) -> int:
    """Runs the rounds of `schedule` from number `done` on until they end or a callback stops; returns the rounds done."""
    per_round = -(-schedule.users.size // schedule.batch) if schedule.whole else 1
    last = max(schedule.rounds * per_round - 1, 1)
    for number in range(done, schedule.rounds):
        value, active, lists, moved = 0.0, 0, 0, 0.0
        iteration = number * per_round
        for users in schedule.batches(number):
            report = engine.step(users, TrainingTime(iteration, min(iteration / last, 1.0)))
            iteration += 1
            if not (math.isfinite(report.value) and math.isfinite(report.moved)):
                raise DivergenceError(
                    f"training diverged in iteration {iteration}: the objective or a step is not finite"
                )
            value, active = value + report.value, active + report.active
            lists, moved = lists + report.lists, moved + report.moved
        round_ = Round(number + 1, iteration, value / lists, active / lists, moved)
        for callback in callbacks:
            round_.stop = bool(callback.after_round(engine, round_)) or round_.stop
        if round_.stop:
            return number + 1
    return schedule.rounds
