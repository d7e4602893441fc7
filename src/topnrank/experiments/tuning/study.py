"""A sampler by Optuna (TPE) whose trials may be kept in a file: a search that was killed goes on and ends the same."""

import os
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

from topnrank.engines import Engine
from topnrank.errors import DiskError, ModelFileError, OutputError, ParameterError
from topnrank.experiments.tuning.search import Candidate, Pruned, Sampler
from topnrank.io.alone import alone
from topnrank.io.paths import local_path
from topnrank.models.parameters import Choice, Range, Space
from topnrank.models.persistence import decode, encode
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
"""Rounds that every trial gets: models stay on a plateau at the start, and one that does is not yet bad."""
_STATES = {"complete": "COMPLETE", "pruned": "PRUNED", "diverged": "FAIL"}
"""Optuna's name of each state of a trial that ended."""


@final
class PruningWatcher:
    """Training callback: reports the metric of each round to Optuna, and ends the trial when it falls behind."""

    def __init__(self, trial: "Trial", metric: str) -> None:
        self.trial, self.metric = trial, metric

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Reports; raises Pruned below the median of the trials before, at the same round."""
        self.trial.report(round_.metrics[self.metric], round_.number)
        if self.trial.should_prune():
            raise Pruned
        return False


@dataclass(frozen=True)
class Trials:
    """The trials of one search, in memory or in a file."""

    study: "Study"
    space: Space
    metric: str
    seed: int

    def propose(self, defaults: Mapping[str, Any], trials: int) -> Sampler:
        """Candidates until there are `trials`: the first with the model's own values, the others by TPE."""
        from optuna.samplers import TPESampler
        from optuna.trial import TrialState

        while (index := len(self.finished())) < trials:
            # A seed of its own for each trial, so that a search that was killed goes on as if it had not been.
            self.study.sampler = TPESampler(seed=int(stream(self.seed, "tune", index).integers(2**31)))
            fixed: dict[str, Any] = {}
            if index == 0:  # the model's own values: Optuna is not told of those outside the space
                inside = _inside(self.space, defaults)
                fixed = {name: defaults[name] for name in self.space if name not in inside}
                self.study.enqueue_trial(inside)
            trial = self.study.ask()
            settings = {
                name: fixed[name] if name in fixed else _suggest(trial, name, values)
                for name, values in self.space.items()
            }
            trial.set_user_attr("settings", {name: encode(value) for name, value in settings.items()})
            outcome = yield Candidate(settings, PruningWatcher(trial, self.metric), own=index == 0)
            facts = {"epochs": outcome.epochs, "error": outcome.error or None, "seconds": outcome.seconds}
            for name, value in facts.items():
                if value is not None:
                    trial.set_user_attr(name, value)
            self.study.tell(trial, outcome.value, state=TrialState[_STATES[outcome.state]])

    def finished(self) -> "list[FrozenTrial]":
        """Trials that ended, in order; one that was killed under way, or could not be written, does not count.

        Such a one is a failed trial without an error (`_clear`), even where its facts were written before its state.
        """
        from optuna.trial import TrialState

        over = tuple(TrialState[name] for name in _STATES.values())
        ended = self.study.get_trials(deepcopy=False, states=over)
        return [
            trial
            for trial in ended
            if "seconds" in trial.user_attrs and (trial.state is not TrialState.FAIL or "error" in trial.user_attrs)
        ]

    def records(self) -> list[dict[str, Any]]:
        """One record for each finished trial: number, state, value, epochs, seconds, settings."""
        states, records = {name: state for state, name in _STATES.items()}, []
        for number, trial in enumerate(self.finished()):
            facts, state = trial.user_attrs, states[trial.state.name]
            record: dict[str, Any] = {
                "trial": number,
                "state": state,
                self.metric: None if state == "diverged" else trial.value,
                "epochs": facts.get("epochs"),
                "seconds": facts["seconds"],
                "settings": {name: decode(value) for name, value in facts["settings"].items()},
            }
            records.append(record | ({"error": facts["error"]} if "error" in facts else {}))
        return records


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


@contextmanager
def only_one(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """A context of one process at a time for each study file; errors of the file, as on a full disk, are one sentence."""
    if path is None:
        yield
        return
    optuna = load_optuna()
    file = study_file(path)
    with alone(file.with_name(f".{file.name}.lock"), f"{path}: another process searches with this study file"):
        try:
            yield
        except optuna.exceptions.StorageInternalError as error:
            reason = str(_cause(error)).partition("\n")[0]
            raise DiskError(
                f"{path}: a trial cannot be written ({reason}); free some space, then the same command goes on"
            ) from error


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


def study_file(path: str | os.PathLike[str]) -> Path:
    """The path of a study file, absolute; its folder is there."""
    file = local_path(path, "a study file").absolute()
    if file.is_dir():
        raise OutputError(f"{path}: is a folder; give the name of a study file, such as study.db")
    if not file.parent.is_dir():
        raise OutputError(f"{path}: its folder does not exist; create it first")
    return file


def _storage(path: str | os.PathLike[str]) -> "BaseStorage":
    """The SQLite file at `path`, made if need be."""
    from optuna.exceptions import OptunaError
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    file = study_file(path)
    try:
        return RDBStorage(f"sqlite:///{quote(str(file))}")
    except (SQLAlchemyError, OptunaError, RuntimeError) as error:
        cause = _cause(error)
        reason = str(cause).partition("\n")[0]
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF in _DISK_ERRORS:
            raise DiskError(f"{path}: cannot be written ({reason}); free some space or choose another place") from None
        raise ModelFileError(
            f"{path}: is not a study file of tune, is damaged, or cannot be written ({reason}); give another file"
        ) from None


def _cause(error: BaseException) -> BaseException:
    """What SQLite said, below what SQLAlchemy and Optuna make of it."""
    while (below := getattr(error, "orig", None) or error.__cause__) is not None:
        error = below
    return error


_DISK_ERRORS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


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
    """Ends the trials that a killed run left waiting or under way, so that they are tried again."""
    from optuna.trial import TrialState

    while study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        study.ask()
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)


def _suggest(trial: "Trial", name: str, values: Range | Choice) -> Any:
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
