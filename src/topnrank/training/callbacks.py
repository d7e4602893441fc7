"""Callbacks: training history, the paper's stopping rule, early stopping, progress bar (`Checkpoint` has its own file)."""

from collections.abc import Callable
from typing import Any, Protocol, final

import numpy as np

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
class Recorder:
    """Keeps one record per round: the training history."""

    def __init__(self) -> None:
        self.records: list[dict[str, float]] = []

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Adds the round."""
        self.records.append(round_.record())
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
class Progress:
    """A bar with objective, validation metric, effective N and time left; quiet when the output is not a terminal."""

    def __init__(self, rounds: int, *, done: int = 0, title: str = "Training") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(),
        ]
        self._bar = Bar(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(title, total=rounds, completed=done, facts="compiling")

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Moves the bar."""
        metrics = "".join(f" · {name} {value:.4f}" for name, value in round_.metrics.items())
        facts = f"objective {round_.objective:.4g}{metrics} · effective N {round_.effective_n:.1f}"
        self._bar.update(self._task, completed=round_.number, facts=facts)
        return False


__all__ = ["Callback", "EarlyStopping", "Persistent", "Progress", "Recorder", "Tolerance"]
