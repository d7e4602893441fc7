"""One training run: validation, callbacks, checkpoint, and the training loop in between."""

import copy
import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from topnrank.data.interactions import Interactions
from topnrank.engines import Engine, make_engine
from topnrank.errors import DataError, DivergenceError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.evaluation.labels import LIKED_FROM, relevance
from topnrank.evaluation.metrics import parse_metrics
from topnrank.models.base import FitInfo, Fitted
from topnrank.models.factor.fitted import fitted_arrays
from topnrank.models.factor.prepare import Prepared, prepare
from topnrank.models.factor.recipe import Recipe
from topnrank.models.parameters import require_integer
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
        """Checks, and splits when `validation` is a fraction."""
        parse_metrics(metric)
        require_integer("fit: patience", patience, 1)
        if validation is None or isinstance(validation, Interactions):
            return cls(data, validation, metric, patience)
        train_part, held_out = split_per_user(data, test=validation, seed=0)
        return cls(train_part, held_out, metric, patience)


def fit_model(
    model: "FactorModel",
    recipe: Recipe,
    data: Interactions,
    options: ValidationOptions,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
    callbacks: Sequence[Callback],
) -> Fitted:
    """The fitted state of `model` after a training by `recipe`."""
    prepared = prepare(options.train, recipe.feedback, recipe.selection)
    run = Run(model, recipe, prepared, options, checkpoint=checkpoint, extra=callbacks)
    with ExitStack() as stack:
        try:
            parameters, info = run.go(stack if progress else None)
        except DivergenceError as error:
            kept = f"; the last good checkpoint is in {checkpoint}" if run.has_checkpoint() else ""
            raise DivergenceError(
                f"{type(model).__name__}: {error}, with learning_rate={recipe.learning_rate}{kept}; "
                "try a smaller learning_rate"
            ) from None
    if options.train is not data:  # rows held out by us are the user's all the same: seen, and part of the history
        prepared = prepare(data, recipe.feedback, recipe.selection, strict=False, earlier=prepared)
        info = replace(info, fingerprint=prepared.info.fingerprint)
    fitted = Fitted.of(prepared.data, fitted_arrays(recipe, parameters, prepared), info)
    fitted.cached(Recipe, lambda: recipe)
    return fitted


class Run:
    """Ties a recipe, its data and its callbacks to the training loop."""

    def __init__(
        self,
        model: "FactorModel",
        recipe: Recipe,
        prepared: Prepared,
        options: ValidationOptions,
        *,
        checkpoint: str | os.PathLike[str] | None,
        extra: Sequence[Callback],
    ) -> None:
        self.model, self.recipe, self.prepared, self.options, self.extra = model, recipe, prepared, options, extra
        self.info = replace(prepared.info, task=recipe.task)
        self.recorder = Recorder()
        self.stopping: EarlyStopping | None = None
        if options.held_out is not None:
            self.held_out = self._weighted(options.held_out)
            self.stopping = EarlyStopping(self._measure, options.metric, options.patience)
        persistent = {"recorder": self.recorder} | ({"stopping": self.stopping} if self.stopping else {})
        self.checkpoint = Checkpoint(checkpoint, self._identity(), persistent) if checkpoint is not None else None

    def go(self, bar: ExitStack | None) -> tuple[Parameters, FitInfo]:
        """Starts or resumes, trains to the end, and returns the parameters to keep and what is known of the training."""
        schedule = self.recipe.schedule(self.prepared.rows)
        data, frozen = self.prepared.data, self.prepared.frozen
        state = self.recipe.start_state(data.n_users, data.n_items, frozen)
        done, finished = 0, False
        if self.checkpoint is not None and (earlier := self.checkpoint.resume()) is not None:
            state, done, finished = earlier
        problem = self.recipe.problem(self.prepared.rows, frozen)
        engine = make_engine(self.recipe.engine, problem, state, self.recipe.num_threads)
        if not finished:
            done = train(engine, schedule, self._callbacks(schedule.rounds, done, bar), done=done)
            if self.checkpoint is not None:
                self.checkpoint.write(engine, done, finished=True)
        info = replace(self.info, history=self.recorder.records, rounds=done, best_round=done)
        if self.stopping is None:
            return engine.state.parameters, info
        validation = {self.options.metric: self.stopping.best_value}
        return self.stopping.best, replace(info, best_round=self.stopping.best_round, validation=validation)

    def has_checkpoint(self) -> bool:
        """Whether there is a state to go on from: training may end before the first one is written."""
        return self.checkpoint is not None and self.checkpoint.path.exists()

    def _callbacks(self, rounds: int, done: int, bar: ExitStack | None) -> list[Callback]:
        """The callbacks in the order in which they run: validation, recorder, the caller's, progress bar, checkpoint."""
        callbacks: list[Callback] = [self.stopping] if self.stopping is not None else []
        callbacks += [self.recorder, *self.extra]
        if self.recipe.tolerance > 0.0:
            callbacks.append(Tolerance(self.recipe.tolerance))
        if bar is not None:
            callbacks.append(bar.enter_context(Progress(rounds, done=done, title=type(self.model).__name__)))
        if self.checkpoint is not None:
            callbacks.append(self.checkpoint)
        return callbacks

    def _measure(self, engine: Engine) -> float:
        """The validation metric of the parameters as they are now."""
        snapshot = self._snapshot(fitted_arrays(self.recipe, engine.state.parameters, self.prepared))
        result = evaluate(
            snapshot,
            self.held_out,
            metrics=[self.options.metric],
            protocol=self.recipe.task,
            num_threads=self.recipe.num_threads,
        )
        value = result[self.options.metric]
        if math.isnan(value):
            raise DataError(
                f"validation: {self.options.metric} is not defined for any user of the held-out rows; choose another metric"
            )
        return value

    def _snapshot(self, arrays: dict[str, Any]) -> "FactorModel":
        """The model with these arrays, as if it were fitted."""
        snapshot = copy.copy(self.model)
        snapshot._fitted = Fitted.of(self.prepared.data, arrays, self.info)
        snapshot._fitted.cached(Recipe, lambda: self.recipe)
        return snapshot

    def _weighted(self, held_out: Interactions) -> Interactions:
        """The held-out rows with weights where they have types; refused when no order of them could be wrong."""
        weighted = self._snapshot({}).weigh(held_out)
        flags, rule = relevance(weighted, LIKED_FROM)
        if flags.all() and self.recipe.task == "rated":
            raise DataError(
                f"validation: all {len(weighted)} held-out rows are relevant (by {rule}), every order of them is right and "
                "nothing can be measured; train without validation, or give disliked rows a weight below 0"
            )
        return weighted

    def _identity(self) -> dict[str, Any]:
        """What must be equal for a run to resume another: data and parameters."""
        settings = self.recipe.settings.items()
        held_out = self.options.held_out
        return {
            "model": self.model.name,
            "data": self.prepared.info.fingerprint,
            "validation": None if held_out is None else held_out.fingerprint(),
            "metric": self.options.metric,
            "patience": self.options.patience,
            **{name: encode(value) for name, value in settings if name not in _NOT_PART_OF_A_RUN},
        }
