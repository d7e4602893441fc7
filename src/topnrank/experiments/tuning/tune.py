"""`tune`: hyper-parameters by their value on validation data."""

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import pyarrow as pa

from topnrank._checks import require_fraction, require_integer
from topnrank._html import html_table, text_table
from topnrank.data.feedback.liked import LikedRule, Relevant, rule_for
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DivergenceError, ParameterError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.evaluation.metrics import parse_metrics
from topnrank.experiments.tuning.search import Candidate, Outcome, search
from topnrank.experiments.tuning.study import Trials, load_optuna, only_one, open_trials, quiet
from topnrank.io.atomic import write_text
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel
from topnrank.models.parameters import Choice, Range, Space
from topnrank.models.persistence import encode, write_params

M = TypeVar("M", bound=Model)


MAX_SHOWN = 5
"""So many of the best trials are printed."""
_ON_VALIDATION = (
    "The value is the best of many on validation rows, so a little too good: measure the model on test rows."
)


@dataclass(frozen=True, repr=False)
class Tuned:
    """The result of a search."""

    model: Model
    """A model with the best hyper-parameters, not fitted yet"""
    value: float
    """Its metric on validation data: the best of many, so a little too good; measure on test data"""
    metric: str
    trials: list[dict[str, Any]]
    """One record for each trial: state ("complete", "pruned", "diverged"), value, epochs, seconds, settings"""

    @property
    def params(self) -> dict[str, Any]:
        """The best hyper-parameters, those that were not searched included."""
        return self.model.get_params()

    def __repr__(self) -> str:
        return f"Tuned({self.model!r}, {self.metric} {self.value:.4f} on validation rows, {len(self.trials)} trials)"

    def __str__(self) -> str:
        return "\n".join([repr(self), "", text_table(*self._best()), "", _ON_VALIDATION])

    def _repr_html_(self) -> str:
        return html_table(*self._best(), title=repr(self), notes=[_ON_VALIDATION])

    def _best(self) -> tuple[list[str], list[list[str]]]:
        """The best trials for people."""
        complete = [trial for trial in self.trials if trial["state"] == "complete"]
        rows = []
        for trial in sorted(complete, key=lambda one: -one[self.metric])[:MAX_SHOWN]:
            settings = ", ".join(f"{name} {_short(value)}" for name, value in trial["settings"].items())
            seconds = f"{trial['seconds']:.1f}"
            rows.append([str(trial["trial"]), f"{trial[self.metric]:.4f}", _short(trial["epochs"]), seconds, settings])
        return ["trial", self.metric, "epochs", "seconds", "settings"], rows

    def table(self) -> pa.Table:
        """A row for each trial: number, state, value, epochs, seconds and each setting that was searched."""
        records = [
            {**{name: value for name, value in trial.items() if name != "settings"}, **_plain(trial["settings"])}
            for trial in self.trials
        ]
        names = dict.fromkeys(name for record in records for name in record)
        return pa.Table.from_pylist([{name: record.get(name) for name in names} for record in records])

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """`table()` as CSV; with a `path` also written there."""
        records = self.table().to_pylist()
        text = io.StringIO()
        writer = csv.DictWriter(text, records[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        if path is not None:
            write_text(path, text.getvalue())
        return text.getvalue()

    def save_params(self, path: str | os.PathLike[str]) -> None:
        """Writes them as JSON, for `topnrank train --params` and `topnrank compare --params`."""
        write_params(path, self.model, metric=self.metric, validation_value=self.value, trials=len(self.trials))


@dataclass(frozen=True)
class TunePlan:
    """What is searched, and how a candidate is measured.

    `base` holds the values of what is not searched; `space` is without the number of epochs; `rounds` is the maximum number
    of epochs of a trial, of which the best is kept, None where their number is fixed.
    """

    base: Model
    space: Space
    rounds: int | None
    metric: str
    validation: float
    patience: int
    seed: int
    relevant: Relevant

    def measure(self, part: Interactions, held_out: Interactions, candidate: Candidate) -> Outcome:
        """The metric of a candidate: fitted on `part`, measured on `held_out`."""
        if not isinstance(self.base, FactorModel):
            plain = _changed(self.base, candidate.settings).fit(part)
            result = evaluate(plain, plain.weigh(held_out), metrics=[self.metric], relevant=self.relevant)
            return Outcome("complete", result[self.metric])
        length = {} if self.rounds is None else {"epochs": self.rounds}
        model = _changed(self.base, {**candidate.settings, **length})
        callbacks = [] if candidate.watcher is None else [candidate.watcher]
        patience = self.patience if self.rounds else (model.epochs or model.iterations or 1)
        if candidate.own:  # never stopped before the number of epochs that the model has by default
            patience = max(patience, self.base.epochs or 1)
        stopping: dict[str, Any] = {"metric": self.metric, "patience": patience, "callbacks": callbacks}
        model.fit(part, validation=held_out, relevant=self.relevant, **stopping)
        if self.rounds is None:
            return Outcome("complete", model.history_[-1][self.metric])
        return Outcome("complete", (model.fitted.info.validation or {})[self.metric], model.best_round_)

    def identity(self, data: Interactions) -> dict[str, Any]:
        """What must be equal for a search to go on from a file."""
        kept = {name: encode(value) for name, value in self.base.get_params().items() if name not in self.space}
        for free in ("num_threads", "engine", *(["epochs"] if self.rounds else [])):
            kept.pop(free, None)
        space = {name: repr(values) for name, values in self.space.items()}
        numbers = {name: getattr(self, name) for name in ("metric", "validation", "patience", "seed", "rounds")}
        liked = asdict(self.relevant) if isinstance(self.relevant, LikedRule) else self.relevant
        facts = {"data": data.fingerprint(), "model": self.base.name, "relevant": liked}
        return {**facts, **numbers, "space": space, "kept": kept}


def _short(value: Any) -> str:
    """A setting for people."""
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a table holds them."""
    return {
        name: value if isinstance(value, int | float | str | None) else str(value) for name, value in settings.items()
    }


def tune(
    model: type[Model] | Model,
    data: Interactions,
    *,
    trials: int = 50,
    metric: str = "ndcg@10",
    validation: float = 0.25,
    patience: int = 12,
    seed: int = 0,
    relevant: Relevant = "auto",
    fixed: Mapping[str, Any] | None = None,
    space: Space | None = None,
    study: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Tuned:
    """Searches a model's hyper-parameters by Optuna (TPE), on validation data carved out of `data`.

    The first trial has the model's own values, so the search never ends below them. The number of epochs is no
    dimension of the search: each trial trains to the largest and its best round is kept, unless epochs are fixed.
    Trials that fall behind the median of those before are given up; trials that diverge count as failed.

    Parameters
    ----------
    model : a class, whose whole search space is searched, or a model: what differs from its class's defaults is kept.
    data : training data. Rows for testing must not be among them.
    trials : how many, those of an earlier call with the same `study` included.
    metric : what to maximize, ranking the held-out rows, or all items where that is the model's task.
    validation : fraction of each user's items held out of `data`.
    patience : rounds without a better value before a trial stops.
    seed : of the split and of the search; the model's own seed is a hyper-parameter.
    relevant : the lowest rating that counts as liked, as in `fit` and `evaluate`; "auto": by the scale of all ratings.
    fixed : hyper-parameters by name that keep these values.
    space : `Range` and `Choice` by name, searched instead of the model's own space.
    study : a file that keeps the trials. The same call after a kill goes on from it and ends with the same result.
    progress : show a progress bar on the terminal.
    """
    load_optuna()
    data = as_interactions(data, "tune")
    require_integer("tune: trials", trials, 1)
    require_integer("tune: patience", patience, 1)
    require_fraction("tune: validation", validation)
    parse_metrics(metric)
    base, searched = _base_and_space(model, data, fixed or {}, space)
    rounds = _rounds(base, searched.pop("epochs", None))
    if not searched and rounds is None:
        raise ParameterError(f"tune: nothing is left to search for {base.name}; fix fewer parameters or give a space")
    rule = rule_for(relevant, None, data.rating_counts) if data.ratings is not None else relevant
    plan = TunePlan(base, searched, rounds, metric, validation, patience, seed, rule)
    part, held_out = split_per_user(data, test=plan.validation, seed=plan.seed)
    with only_one(study), quiet():
        found = open_trials(study, plan.space, plan.identity(data))
        own = {name: plan.base.get_params()[name] for name in plan.space}
        search(
            lambda candidate: plan.measure(part, held_out, candidate),
            found.propose(own, trials),
            title=f"Tuning {plan.base.name}",
            total=trials - len(found.finished()),
            progress=progress,
        )
    return _best(plan, found)


def _base_and_space(
    model: type[Model] | Model, data: Interactions, fixed: Mapping[str, Any], space: Space | None
) -> tuple[Model, dict[str, Range | Choice]]:
    """The model with what is not searched, and the space without what is fixed."""
    base = (model() if isinstance(model, type) else _changed(model, {})).set_params(**fixed)
    base = base.with_explicit_defaults(data)
    if both := [name for name in space or {} if name in fixed]:
        raise ParameterError(f"tune: {both[0]} is in fixed and in space; leave it out of one of them")
    searched = dict(space or base.space())
    if not space and not isinstance(model, type):  # what differs from the defaults is kept
        defaults, own = type(base)().get_params(), model.get_params()
        searched = {name: values for name, values in searched.items() if own[name] == defaults[name]}
    _check_space(base, searched)
    return base, {name: values for name, values in searched.items() if name not in fixed}


def _rounds(base: Model, epochs: Range | Choice | None) -> int | None:
    """The maximum number of epochs of a trial; None where their number is fixed."""
    own: int | None = getattr(base, "epochs", None)
    if epochs is None or own is None:
        return None
    return max(int(epochs.high if isinstance(epochs, Range) else max(epochs.values)), own)


def _check_space(base: Model, space: Space) -> None:
    """Ranges and choices of parameters that the model has, all of them allowed."""
    for name, values in space.items():
        if name not in base.get_params():
            known = ", ".join(base.get_params()) or "none"
            raise ParameterError(f"tune: {base.name} has no parameter {name!r} to search; its parameters: {known}")
        if not isinstance(values, Range | Choice):
            raise ParameterError(f"tune: the space of {name} must be a Range or a Choice, got {values!r}")
        for value in (values.low, values.high) if isinstance(values, Range) else values.values:
            _changed(base, {name: int(value) if isinstance(values, Range) and values.whole else value})


def _changed(model: M, settings: Mapping[str, Any]) -> M:
    """A new model with the parameters of `model` but for `settings`."""
    return type(model)(**(model.get_params() | dict(settings)))


def _best(plan: TunePlan, found: Trials) -> Tuned:
    """The best complete trial, the earliest of equals."""
    records = found.records()
    complete = [record for record in records if record["state"] == "complete"]
    if not complete:
        raise DivergenceError(
            f"tune: all {len(records)} trials of {plan.base.name} diverged; give a space with smaller learning rates"
        )
    best = max(complete, key=lambda record: record[plan.metric])
    length = {} if best["epochs"] is None else {"epochs": best["epochs"]}
    return Tuned(_changed(plan.base, {**best["settings"], **length}), best[plan.metric], plan.metric, records)
