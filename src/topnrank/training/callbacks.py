"""Callbacks: training history, the paper's stopping rule, early stopping, progress bar (`Checkpoint` has its own file)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np

from topnrank._progress import ProgressBar
from topnrank._typing import FloatArray
from topnrank.engines import Engine
from topnrank.training.loop import Callback, Round


class Persistent(Protocol):
    """A callback whose memory is part of a checkpoint, so that a resumed run ends as an uninterrupted one."""

    def memory(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """JSON-able facts, and arrays."""
        ...

    def recall(self, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
        """Restores what `memory` returned."""
        ...


@final
@dataclass
class Recorder:
    """Keeps one record per round: the training history."""

    records: list[dict[str, float]] = field(default_factory=list)

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Adds the round."""
        facts = {
            "round": round_.number,
            "iteration": round_.iteration,
            "objective": round_.objective,
            "effective_n": round_.effective_n,
            "moved": round_.moved,
        }
        self.records.append(facts | round_.metrics)
        return False

    def memory(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """The records."""
        return {"records": self.records}, {}

    def recall(self, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
        """The records of an interrupted run."""
        self.records = list(facts["records"])


@final
class Tolerance:
    """The paper's rule: stop when the parameters moved less than epsilon, ||theta_t - theta_{t-1}||^2 < epsilon."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Whether this round hardly moved."""
        return round_.moved < self.epsilon


@final
class EarlyStopping:
    """Measures a validation metric after each round, stops when it has not risen for `patience` rounds, keeps the best.

    The patience must outlast the plateau at the start: from small start values the metric rises for a round or two, then
    rests at a saddle before it rises again. On MovieLens 1M, BiasedMF at its defaults rests for some ten rounds.
    """

    def __init__(self, measure: Callable[[Engine], float], metric: str, patience: int = 10) -> None:
        self.measure, self.metric, self.patience = measure, metric, patience
        self.best_value, self.best_round = -np.inf, 0
        self.best: dict[str, FloatArray] = {}

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Adds the metric to the round; True when patience is at its end."""
        value = self.measure(engine)
        round_.metrics[self.metric] = value
        if value > self.best_value:
            self.best_value, self.best_round = value, round_.number
            self.best = {name: block.copy() for name, block in engine.state.parameters.items()}
        return round_.number - self.best_round >= self.patience

    def memory(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """The best so far."""
        return {"best_value": self.best_value, "best_round": self.best_round}, self.best

    def recall(self, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
        """The best of an interrupted run."""
        self.best_value, self.best_round = float(facts["best_value"]), int(facts["best_round"])
        self.best = arrays


@final
@dataclass
class Progress:
    """Shows objective, validation metric and effective N behind a bar."""

    bar: ProgressBar

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Moves the bar."""
        metrics = "".join(f" · {name} {value:.4f}" for name, value in round_.metrics.items())
        facts = f"objective {round_.objective:.4g}{metrics} · effective N {round_.effective_n:.1f}"
        self.bar.update(round_.number, text=facts)
        return False


__all__ = ["Callback", "EarlyStopping", "Persistent", "Progress", "Recorder", "Tolerance"]
