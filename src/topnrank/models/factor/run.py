"""One call of `fit`: validation, callbacks, checkpoint, and the training loop in between."""

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from topnrank._typing import FloatArray
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine, make_engine
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.evaluation.labels import LIKED_FROM, relevance
from topnrank.evaluation.metrics import parse_metrics
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import fitted_arrays
from topnrank.models.factor.prepare import Prepared
from topnrank.models.persistence import encode
from topnrank.scorers import Parameters
from topnrank.training import Callback, Checkpoint, EarlyStopping, Progress, Recorder, Tolerance, train

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel

_NOT_PART_OF_A_RUN = ("num_threads", "engine")
"""Parameters that may differ when a run resumes: they do not change what is computed."""


@dataclass(frozen=True)
class ValidationOptions:
    """What to train on, what to validate on, and when to stop."""

    train: Interactions
    held_out: Interactions | None
    metric: str
    patience: int

    @classmethod
    def of(
        cls, data: Interactions, validation: Interactions | float | None, metric: str, patience: int
    ) -> "ValidationOptions":
        """Checks, and splits when `validation` is a share."""
        parse_metrics(metric)
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise ParameterError(f"fit: patience must be a whole number of at least 1, got {patience!r}")
        if validation is None or isinstance(validation, Interactions):
            return cls(data, validation, metric, patience)
        train_part, held_out = split_per_user(data, test=validation, seed=0)
        return cls(train_part, held_out, metric, patience)


@dataclass(frozen=True)
class Outcome:
    """What a run leaves."""

    parameters: Parameters
    facts: dict[str, Any]


class Run:
    """Ties a model, its data and its callbacks to the training loop."""

    def __init__(
        self,
        model: "FactorModel",
        prepared: Prepared,
        options: ValidationOptions,
        *,
        checkpoint: str | os.PathLike[str] | None,
        extra: Sequence[Callback],
    ) -> None:
        self.model, self.prepared, self.options, self.extra = model, prepared, options, extra
        self.recorder = Recorder()
        self.stopping: EarlyStopping | None = None
        if options.held_out is not None:
            self.held_out = self._judged(options.held_out)
            self.stopping = EarlyStopping(self._measure, options.metric, options.patience)
        persistent = {"recorder": self.recorder} | ({"stopping": self.stopping} if self.stopping else {})
        self.checkpoint = Checkpoint(checkpoint, self._identity(), persistent) if checkpoint is not None else None

    def go(self, bar: ExitStack | None) -> Outcome:
        """Starts or resumes, trains to the end, and returns the parameters to keep."""
        schedule = self.model.schedule(self.prepared.rows)
        data, frozen = self.prepared.data, self.prepared.frozen
        state = self.model.start_state(data.n_users, data.n_items, frozen)
        done, finished = 0, False
        if self.checkpoint is not None and (earlier := self.checkpoint.resume()) is not None:
            state, done, finished = earlier
        problem = self.model.problem(self.prepared.rows, self.prepared.frozen)
        engine = make_engine(self.model.engine, problem, state, self.model.num_threads)
        if not finished:
            done = train(engine, schedule, self._callbacks(schedule.rounds, done, bar), done=done)
            if self.checkpoint is not None:
                self.checkpoint.write(engine, done, finished=True)
        return self._outcome(engine, done)

    def has_checkpoint(self) -> bool:
        """Whether there is a state to go on from: training may end before the first one is written."""
        return self.checkpoint is not None and self.checkpoint.path.exists()

    def _callbacks(self, rounds: int, done: int, bar: ExitStack | None) -> list[Callback]:
        """In this order: who measures, who records, who shows, who saves."""
        callbacks: list[Callback] = [self.stopping] if self.stopping is not None else []
        callbacks += [self.recorder, *self.extra]
        if self.model.tolerance > 0.0:
            callbacks.append(Tolerance(self.model.tolerance))
        if bar is not None:
            callbacks.append(bar.enter_context(Progress(rounds, done=done, title=type(self.model).__name__)))
        if self.checkpoint is not None:
            callbacks.append(self.checkpoint)
        return callbacks

    def _measure(self, engine: Engine) -> float:
        """The validation metric of the parameters as they are now."""
        learned = fitted_arrays(self.model, engine.state.parameters, self.prepared)
        snapshot = self._snapshot(learned)
        result = evaluate(
            snapshot,
            self.held_out,
            metrics=[self.options.metric],
            protocol=self.model._task(),
            num_threads=self.model.num_threads,
        )
        value = result[self.options.metric]
        if math.isnan(value):
            raise DataError(
                f"validation: {self.options.metric} is not defined for any user of the held-out rows; choose another metric"
            )
        return value

    def _snapshot(self, learned: dict[str, FloatArray]) -> "FactorModel":
        """The model with these arrays, as if it were fitted."""
        snapshot = type(self.model)(**self.model.get_params())
        snapshot._fitted = Fitted.of(self.prepared.data, learned, task=self.model._task(), **self.prepared.facts)
        return snapshot

    def _judged(self, held_out: Interactions) -> Interactions:
        """The held-out rows with weights where they have types; refused when no order of them could be wrong."""
        weighted = self._snapshot({}).weigh(held_out)
        flags, rule = relevance(weighted, LIKED_FROM)
        if flags.all() and self.model._task() == "rated":
            raise DataError(
                f"validation: all {len(weighted)} held-out rows are relevant (by {rule}), every order of them is right and "
                "nothing can be measured; train without validation, or give disliked rows a weight below 0"
            )
        return weighted

    def _outcome(self, engine: Engine, done: int) -> Outcome:
        facts: dict[str, Any] = {"history": self.recorder.records, "rounds": done, "best_round": done}
        if self.stopping is None:
            return Outcome(engine.state.parameters, facts)
        facts |= {"best_round": self.stopping.best_round, "validation": {self.options.metric: self.stopping.best_value}}
        return Outcome(self.stopping.best, facts)

    def _identity(self) -> dict[str, Any]:
        """What must be equal for a run to resume another: data and parameters."""
        parameters = {
            name: encode(value) for name, value in self.model.get_params().items() if name not in _NOT_PART_OF_A_RUN
        }
        held_out = self.options.held_out
        return {
            "model": self.model.name,
            "data": self.prepared.facts["fingerprint"],
            "validation": None if held_out is None else held_out.fingerprint(),
            "metric": self.options.metric,
            "patience": self.options.patience,
            **parameters,
        }
