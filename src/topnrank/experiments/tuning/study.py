"""A search by Optuna, one trial after the other, that a kill does not end and that is the same whether killed or not."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from topnrank.engines import Engine
from topnrank.errors import DivergenceError, ModelFileError, OutputError, ParameterError
from topnrank.io.paths import local_path
from topnrank.models.persistence import decode, encode
from topnrank.models.parameters import Choice, Range, Space
from topnrank.rng import stream
from topnrank.training.loop import Round

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

NAME = "topnrank"
"""Name of the study inside its file."""
STARTUP = 5
"""Trials that run to their end before any is compared with their median."""
WARM_UP = 10
"""Rounds that every trial gets: models rest on a plateau at the start, and one that rests is not yet bad."""


@dataclass(frozen=True)
class Measured:
    """What a trial brought."""

    value: float
    """The metric on validation data"""
    epochs: int | None
    """The best round where the number of epochs was open, else None"""


class Pruned(Exception):  # noqa: N818 (nothing is wrong)
    """A trial that falls behind the others is given up."""


class Watcher:
    """Training callback: tells Optuna the metric of each round, and ends the trial when it falls behind."""

    def __init__(self, trial: "Trial", metric: str) -> None:
        self.trial, self.metric = trial, metric

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Reports; raises Pruned below the median of the trials before, at the same round."""
        self.trial.report(round_.metrics[self.metric], round_.number)
        if self.trial.should_prune():
            raise Pruned
        return False


Measure = Callable[[dict[str, Any], "Watcher | None", bool], Measured]
"""(settings, watcher, whether these are the model's own) -> value; a trial's work."""


@dataclass(frozen=True)
class Trials:
    """The trials of one search, in memory or in a file."""

    study: "Study"
    space: Space
    metric: str
    seed: int

    def run(self, measure: Measure, defaults: Mapping[str, Any]) -> None:
        """One more trial: the first with the model's own values, the others where Optuna expects good ones."""
        from optuna.samplers import TPESampler
        from optuna.trial import TrialState

        index = len(self.finished())
        with quiet():
            # A seed of its own for each trial, so that a search that was killed goes on as if it had not been.
            self.study.sampler = TPESampler(seed=int(stream(self.seed, "tune", index).integers(2**31)))
            if index == 0:
                self.study.enqueue_trial(_inside(self.space, defaults))
            trial = self.study.ask()
            settings = self._settings(trial, defaults if index == 0 else None)
            trial.set_user_attr("settings", {name: encode(value) for name, value in settings.items()})
            started = time.perf_counter()
            try:
                found = measure(settings, Watcher(trial, self.metric), index == 0)
            except Pruned:
                self._note(trial, seconds=time.perf_counter() - started)
                self.study.tell(trial, state=TrialState.PRUNED)
            except DivergenceError as error:
                self._note(trial, seconds=time.perf_counter() - started, error=str(error))
                self.study.tell(trial, state=TrialState.FAIL)
            else:
                self._note(trial, seconds=time.perf_counter() - started, epochs=found.epochs)
                self.study.tell(trial, found.value)

    def finished(self) -> "list[FrozenTrial]":
        """Trials that came to an end, in order; one that was killed under way does not count."""
        from optuna.trial import TrialState

        over = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        return [trial for trial in self.study.get_trials(deepcopy=False, states=over) if "seconds" in trial.user_attrs]

    def records(self) -> list[dict[str, Any]]:
        """One record for each finished trial: number, state, value, epochs, seconds, settings."""
        return [_record(number, trial, self.metric) for number, trial in enumerate(self.finished())]

    def _settings(self, trial: "Trial", defaults: Mapping[str, Any] | None) -> dict[str, Any]:
        """The values to try; of the model's own values, those outside the space are kept but not told to Optuna."""
        if defaults is None:
            return {name: _suggested(trial, name, values) for name, values in self.space.items()}
        inside = _inside(self.space, defaults)
        return {
            name: _suggested(trial, name, values) if name in inside else defaults[name]
            for name, values in self.space.items()
        }

    def _note(self, trial: "Trial", **facts: Any) -> None:
        for name, value in facts.items():
            trial.set_user_attr(name, value)


def open_trials(path: str | os.PathLike[str] | None, space: Space, identity: dict[str, Any]) -> Trials:
    """The trials of the search `identity`, new or as the file at `path` holds them."""
    optuna = load_optuna()
    with quiet():
        storage = None if path is None else _storage(path)
        study = optuna.create_study(
            storage=storage,
            study_name=NAME,
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(STARTUP, WARM_UP),
            load_if_exists=True,
        )
        _check_identity(study, identity, path)
        _clear(study)
    return Trials(study, space, identity["metric"], identity["seed"])


def load_optuna() -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        import optuna
    except ImportError:
        raise ParameterError("tune needs Optuna; install it with: pip install 'topnrank[tune]'") from None
    return optuna


@contextmanager
def quiet() -> Iterator[None]:
    """Without Optuna's log and warnings; its level is put back afterwards."""
    optuna = load_optuna()
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="optuna")
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _storage(path: str | os.PathLike[str]) -> "BaseStorage":
    """The SQLite file at `path`, made if need be."""
    from optuna.exceptions import OptunaError
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    file = local_path(path, "a study file").absolute()
    if file.is_dir():
        raise OutputError(f"{path}: is a folder; give the name of a study file, such as study.db")
    if not file.parent.is_dir():
        raise OutputError(f"{path}: its folder does not exist; create it first")
    try:
        return RDBStorage(f"sqlite:///{file}")
    except (SQLAlchemyError, OptunaError, RuntimeError) as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise ModelFileError(
            f"{path}: is no study file of tune, is damaged, or cannot be written ({reason}); give another file"
        ) from None


def _check_identity(study: "Study", identity: dict[str, Any], path: str | os.PathLike[str] | None) -> None:
    """A file goes on with the search it was made for, and with no other."""
    known = study.user_attrs.get("identity")
    if known is None:
        study.set_user_attr("identity", identity)
        return
    for name, value in identity.items():
        if known.get(name) != value:
            raise ParameterError(
                f"{path}: is the study of another search: {name} was {known.get(name)!r} there and is {value!r} now; "
                "give another study file"
            )


def _clear(study: "Study") -> None:
    """Ends the trials that a killed run left waiting or under way, so that their turn comes again."""
    from optuna.trial import TrialState

    while study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        study.ask()
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)


def _suggested(trial: "Trial", name: str, values: Range | Choice) -> Any:
    if isinstance(values, Choice):  # by position: values may be objects that a study file cannot hold
        return values.values[trial.suggest_categorical(name, tuple(range(len(values.values))))]
    if values.whole:
        return trial.suggest_int(name, int(values.low), int(values.high), log=values.log)
    return trial.suggest_float(name, values.low, values.high, log=values.log)


def _inside(space: Space, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `settings` that the space holds, as Optuna knows them."""
    found: dict[str, Any] = {}
    for name, values in space.items():
        value = settings[name]
        if isinstance(values, Choice):
            if value in values.values:
                found[name] = values.values.index(value)
        elif isinstance(value, int | float) and values.low <= value <= values.high:
            found[name] = value
    return found


def _record(number: int, trial: "FrozenTrial", metric: str) -> dict[str, Any]:
    from optuna.trial import TrialState

    names = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "diverged"}
    facts = trial.user_attrs
    record: dict[str, Any] = {
        "trial": number,
        "state": names[trial.state],
        metric: trial.value if trial.state != TrialState.FAIL else None,
        "epochs": facts.get("epochs"),
        "seconds": facts["seconds"],
        "settings": {name: decode(value) for name, value in facts["settings"].items()},
    }
    return record | ({"error": facts["error"]} if "error" in facts else {})
