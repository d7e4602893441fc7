"""One training run, whatever the engine: validation, callbacks, checkpoint, and the training loop in between."""

import copy
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from topnrank._checks import require_integer
from topnrank._progress import progress_bar
from topnrank._typing import IntArray
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine, Problem, State, make_engine
from topnrank.errors import DataError, DivergenceError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.evaluation.labels import relevance
from topnrank.evaluation.metrics import parse_metrics
from topnrank.models.base import FitInfo, Fitted
from topnrank.models.factor.fitted import fitted_arrays
from topnrank.models.factor.prepare import FrozenTerms, Prepared, prepare
from topnrank.models.factor.recipe import Recipe
from topnrank.models.persistence import encode
from topnrank.models.recent_popularity import item_popularity
from topnrank.rng import mix
from topnrank.scorers import Parameters, TrainingLists
from topnrank.training import Callback, Checkpoint, EarlyStopping, Progress, Recorder, Tolerance, train

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel

AnyArray = np.ndarray[Any, Any]

_NOT_PART_OF_A_RUN = ("num_threads", "engine")
"""Parameters that may differ when a run resumes: they do not change what is computed."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is followed: the arguments of `fit` with these names."""

    checkpoint: str | os.PathLike[str] | None = None
    progress: bool = False
    callbacks: Sequence[Callback] = ()


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on; the rows themselves may be in a cluster."""

    lists: TrainingLists
    """Of all users; items may be left out where the engine has the lists"""
    n_users: int
    n_items: int
    frozen: FrozenTerms
    info: FitInfo
    digest: Callable[[], str]
    """Digest of the rows, for checkpoints"""
    make_engine: Callable[[Problem, State], Engine]


@dataclass(frozen=True)
class Validation:
    """A metric on held-out rows, by which training stops early and the best round is kept."""

    measure: Callable[[Engine], float]
    metric: str
    patience: int
    digest: str
    """Of the held-out rows"""


class Outcome(NamedTuple):
    """Result of a run."""

    engine: Engine
    best: Parameters | None
    """The parameters of the best round, where it was validated; else the engine's are to be kept"""
    info: FitInfo


def run(
    model: "FactorModel", recipe: Recipe, data: TrainingData, validation: Validation | None, options: RunOptions
) -> Outcome:
    """Starts or resumes a training, and goes on to its end."""
    recorder, saved, checkpoint = Recorder(), None, options.checkpoint
    stopping = None
    if validation is not None:
        stopping = EarlyStopping(validation.measure, validation.metric, validation.patience)
    schedule, finished = recipe.schedule(data.lists), False
    done = 0 if recipe.start is None else recipe.start.rounds
    state = recipe.start_state(data.n_users, data.n_items, data.frozen)
    if checkpoint is not None:
        identity = {
            "model": model.name,
            "data": f"{data.n_users} users, {data.n_items} items, {data.digest()}",
            "validation": validation and f"{validation.metric}, patience {validation.patience}, {validation.digest}",
            **{name: encode(value) for name, value in recipe.settings.items() if name not in _NOT_PART_OF_A_RUN},
        }
        persistent = {"recorder": recorder} | ({"stopping": stopping} if stopping else {})
        saved = Checkpoint(checkpoint, identity, persistent)
        if (earlier := saved.resume(state)) is not None:
            state, done, finished = earlier
    engine = data.make_engine(recipe.problem(data.lists, data.frozen), state)
    if not finished:
        callbacks: list[Callback] = [*([stopping] if stopping else []), recorder, *options.callbacks]
        if recipe.tolerance > 0.0:
            callbacks.append(Tolerance(recipe.tolerance))
        with ExitStack() as stack:
            if options.progress:
                bar = stack.enter_context(progress_bar(type(model).__name__, schedule.rounds))
                bar.update(done, text="compiling")
                callbacks.append(Progress(bar))
            if saved is not None:
                callbacks.append(saved)
                stack.enter_context(saved.alone())
            try:
                done = train(engine, schedule, callbacks, done=done)
            except DivergenceError as error:
                good = saved is not None and saved.path.exists()
                kept = f"; the last good checkpoint is in {checkpoint}" if good else ""
                raise DivergenceError(
                    f"{type(model).__name__}: {error}, with learning_rate={recipe.learning_rate}{kept}; "
                    "try a smaller learning_rate"
                ) from None
        if saved is not None:
            saved.write(engine, done, finished=True)
    info = replace(data.info, task=recipe.task, history=recorder.records, rounds=done, best_round=done)
    if stopping is None:
        return Outcome(engine, None, info)
    if not stopping.best:  # no round: the parts in closed form are all there is
        assert validation is not None
        info = replace(info, validation={stopping.metric: validation.measure(engine)})
        return Outcome(engine, None, info)
    info = replace(info, best_round=stopping.best_round, validation={stopping.metric: stopping.best_value})
    return Outcome(engine, stopping.best, info)


def fit_model(
    model: "FactorModel",
    recipe: Recipe,
    data: Interactions,
    validation: Interactions | float | None,
    metric: str,
    patience: int,
    options: RunOptions,
) -> Fitted:
    """The fitted state of `model` after a training on rows in memory; see `FactorModel.fit`."""
    parse_metrics(metric)  # refused even where nothing is validated
    require_integer("fit.patience", patience, 1)
    rows = data
    if validation is not None and not isinstance(validation, Interactions):
        rows, validation = split_per_user(data, test=validation, seed=0)
    if recipe.open_settings:
        recipe = model.choose(recipe, rows)
    done = 0 if recipe.start is None else recipe.start.rounds
    prepared = prepare(rows, recipe.feedback, recipe.selection, left_out=recipe.epochs != done)
    if recipe.popularity:
        popular = item_popularity(rows, recipe.half_life)
        info = replace(prepared.info, half_life_days=popular.half_life)
        prepared = replace(prepared, info=info, frozen=prepared.frozen._replace(popularity=popular.scores))
    info = replace(prepared.info, chosen=None if recipe.chosen is None else dict(recipe.chosen))
    if recipe.liked is not None:
        info = replace(info, liked=recipe.liked)
    prepared = replace(prepared, info=info)
    training = TrainingData(
        prepared.rows,
        rows.n_users,
        rows.n_items,
        prepared.frozen,
        prepared.info,
        lambda: f"{data_digest(rows):016x}",
        lambda problem, state: make_engine(recipe.engine, problem, state, recipe.num_threads),
    )
    early = None if validation is None else _validation(model, recipe, prepared, validation, metric, patience)
    engine, best, info = run(model, recipe, training, early, options)
    if rows is not data:  # rows held out by us are the user's all the same: seen, and part of the history
        prepared = prepare(data, recipe.feedback, recipe.selection, strict=False, earlier=prepared)
        info = replace(info, fingerprint=prepared.info.fingerprint)
    arrays = fitted_arrays(recipe, engine.state.parameters if best is None else best, prepared)
    fitted = Fitted.of(prepared.data, arrays, info, replace(recipe, start=None))
    if rows is not data or data.timestamps is None or recipe.task != "catalog":
        return fitted
    return model.completed(fitted, prepared.data)


def _validation(
    model: "FactorModel", recipe: Recipe, prepared: Prepared, held_out: Interactions, metric: str, patience: int
) -> Validation:
    """Early stopping by a metric on held-out rows in memory; refused when no order of them could be wrong."""

    def snapshot(arrays: dict[str, Any]) -> "FactorModel":
        """The model with these arrays, as if it were fitted."""
        made = copy.copy(model)
        made._fitted = Fitted.of(prepared.data, arrays, replace(prepared.info, task=recipe.task), recipe)
        return made

    weighted = snapshot({}).weigh(held_out)
    found = relevance(weighted, "auto", prepared.info.liked)
    if found.says_nothing and recipe.task == "rated":
        raise all_relevant(len(weighted), found.rule)

    def measure(engine: Engine) -> float:
        fitted = snapshot(fitted_arrays(recipe, engine.state.parameters, prepared))
        threads = recipe.num_threads
        result = evaluate(fitted, weighted, metrics=[metric], protocol=recipe.task, num_threads=threads)
        return check_defined(metric, result[metric])

    return Validation(measure, metric, patience, held_out.fingerprint())


def check_defined(metric: str, value: float) -> float:
    """The value of a validation metric; a DataError where it is not a number."""
    if math.isnan(value):
        raise DataError(f"validation: {metric} is not defined for any user of the held-out rows; choose another metric")
    return value


def all_relevant(n_rows: int, rule: str) -> DataError:
    """Held-out rows by which nothing can be measured."""
    return DataError(
        f"validation: all {n_rows} held-out rows are relevant (by {rule}), every order of them is right and "
        "nothing can be measured; train without validation, or give disliked rows a weight below 0"
    )


def rows_digest(users: IntArray, items: IntArray, *columns: AnyArray | None) -> int:
    """A sum of 64-bit hashes of rows: indices of their users and items, and further columns.

    Digests of the rows of different users add up (modulo 2^64): rows in blocks have the same as rows in one place.
    """
    hashes = mix(users.astype(np.uint64) << np.uint64(32) | items.astype(np.uint64))
    for place, values in enumerate(columns, 1):
        if values is not None:
            bits = values.view(np.uint32 if values.dtype.itemsize == 4 else np.uint64)
            hashes = mix(hashes + np.uint64(place) + bits.astype(np.uint64))
    return int(hashes.sum(dtype=np.uint64))


def data_digest(data: Interactions, first_user: int = 0) -> int:
    """`rows_digest` of interactions whose first user has the index `first_user`."""
    users = data.user_index + first_user
    return rows_digest(users, data.indices, data.ratings, data.types, data.weights, data.timestamps)
