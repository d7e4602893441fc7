"""One cell of a comparison: split, fit, evaluate, keep."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.data.interactions import Interactions
from topnrank.errors import TopNRankError
from topnrank.evaluation import Evaluation, Ranker, evaluate, split_last, split_per_user, split_time
from topnrank.evaluation.labels import relevance
from topnrank.evaluation.metrics import parse_metrics
from topnrank.experiments.compare.competitors import CompetitorRanker
from topnrank.experiments.compare.folder import Folder, digest
from topnrank.experiments.compare.result import Cell
from topnrank.experiments.compare.rows import Row, deciding, fresh
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel

SPLITS = ("per-user", "last", "time")
TEST = {"per-user": 0.5, "last": 1, "time": 0.2}
"""How much each split holds out unless told."""
_WARM_UP_USERS = 50


@dataclass(frozen=True, eq=False)
class Plan:
    """What all cells of a comparison share."""

    data: Interactions
    fingerprint: str
    """Of the data"""
    split: str
    test: float
    """A share of rows, or with the split "last" a number of items"""
    seed: int
    relevant: float | None
    protocols: tuple[str, ...]
    metrics: tuple[str, ...]
    one_thread: bool
    """Whether every cell runs on one thread, because cells run beside each other"""

    def identity(self) -> dict[str, Any]:
        """What must be equal for two cells to stand in one comparison."""
        from topnrank import __version__

        names = ("split", "test", "seed", "relevant")
        shared = {name: getattr(self, name) for name in names}
        lists = {"protocols": list(self.protocols), "metrics": list(self.metrics)}
        return {"data": self.fingerprint, "topnrank": __version__, **shared, **lists}

    def key(self, row: Row, repeat: int) -> str:
        """A word that stands for all that decides the numbers of a cell."""
        kind = f"{type(row.model).__module__}.{type(row.model).__qualname__}"
        return digest([self.identity(), repeat, kind, row.model.name, deciding(row.parameters)])

    def parts(self, repeat: int) -> tuple[Interactions, Interactions]:
        """Train and test rows of a repeat."""
        if self.split == "last":
            return split_last(self.data, test=cast(int, self.test))
        if self.split == "time":
            return split_time(self.data, test=self.test)
        return split_per_user(self.data, test=self.test, seed=self.seed + repeat)

    def seed_offset(self, repeat: int) -> int:
        """What is added to the seeds of models: splits without chance leave it to the models to differ."""
        return 0 if self.split == "per-user" else repeat


@dataclass(frozen=True, eq=False)
class Task:
    """A cell that is to be computed."""

    row: Row
    repeat: int
    key: str

    def failed(self, why: str) -> Cell:
        """The cell that only tells why there is none."""
        return Cell(self.row.name, self.repeat, 0.0, 0.0, {}, [], why, {"key": self.key})


class Runner:
    """Computes cells one after the other; keeps the split of the last repeat."""

    def __init__(self, plan: Plan, folder: Folder | None) -> None:
        self.plan, self.folder = plan, folder
        self._repeat = -1
        self._parts: tuple[Interactions, Interactions]
        self._warm: set[str] = set()

    def run(self, task: Task) -> Cell:
        """The cell, kept in the folder; a model that fails leaves a cell that says why."""
        try:
            cell = self._measure(task)
        except Exception as error:  # models of others may raise anything
            cell = task.failed(_sentence(error))
        if self.folder is not None:
            self.folder.write_cell(cell)
        return cell

    def parts(self, repeat: int) -> tuple[Interactions, Interactions]:
        """Train and test rows of a repeat."""
        if repeat != self._repeat:
            self._parts = self.plan.parts(repeat)
            self._repeat = repeat
        return self._parts

    def _measure(self, task: Task) -> Cell:
        plan = self.plan
        train, test = self.parts(task.repeat)
        self._warm_up(task, train)
        model = fresh(task.row.model, seed_offset=plan.seed_offset(task.repeat), one_thread=plan.one_thread)
        started = time.perf_counter()
        ranker = model.fit(train) if isinstance(model, Model) else CompetitorRanker.fit(model, train)
        fitted = time.perf_counter()
        results = {protocol: self._evaluate(ranker, test, protocol) for protocol in plan.protocols}
        finished = time.perf_counter()
        values = {
            (protocol, metric): _aligned(plan.data, result, metric)
            for protocol, result in results.items()
            for metric in plan.metrics
        }
        curve = list(getattr(ranker, "history_", []))
        facts = {"key": task.key, **split_facts((train, test), results, values)}
        return Cell(task.row.name, task.repeat, fitted - started, finished - fitted, values, curve, None, facts)

    def _evaluate(self, ranker: Ranker, test: Interactions, protocol: str) -> Evaluation:
        return evaluate(
            ranker,
            test,
            protocol=cast(Literal["rated", "catalog"], protocol),
            metrics=self.plan.metrics,
            relevant=self.plan.relevant,
            num_threads=int(self.plan.one_thread),
        )

    def _warm_up(self, task: Task, train: Interactions) -> None:
        """Compiles or loads the kernels a model needs on a few rows, so that its seconds are seconds of training."""
        if task.row.name in self._warm or not isinstance(task.row.model, Model):
            return
        self._warm.add(task.row.name)
        few = train.take(np.arange(train.indptr[min(_WARM_UP_USERS, train.n_users)])).compact()
        model = cast(Model, fresh(task.row.model, one_thread=self.plan.one_thread))
        if isinstance(model, FactorModel):
            model.set_params(**({"iterations": 1} if model.epochs is None else {"epochs": 1}))
        with suppress(Exception):  # if it is the model's fault, the cell itself will say so
            model.fit(few)
        for protocol in self.plan.protocols:
            with suppress(Exception):
                self._evaluate(model, few, protocol)


def _aligned(data: Interactions, result: Evaluation, metric: str) -> Float64Array:
    """(n_users,) values over all users of the data."""
    values = np.full(data.n_users, np.nan)
    values[data.users.index(result.user_ids)] = result.per_user[metric]
    return values


def split_facts(
    parts: tuple[Interactions, Interactions],
    results: dict[str, Evaluation],
    values: dict[tuple[str, str], Float64Array],
) -> dict[str, Any]:
    """Sizes of a split, users left out, and how long the lists are at the cut-offs."""
    train, test = parts
    items_of = [np.bincount(part.user_index[part.pair_starts], minlength=part.n_users) for part in parts]
    lengths = {"rated": items_of[1], "catalog": train.n_items - items_of[0]}
    protocols = {}
    for protocol, result in results.items():
        cuts = {metric.name: metric.cut for metric in parse_metrics(list(result.per_user))}
        defined = {name: ~np.isnan(values[protocol, name]) for name in cuts}
        protocols[protocol] = {
            "users": result.n_users,
            "without_relevant": result.n_excluded,
            "without_test_rows": test.n_users - result.n_users - result.n_excluded - result.n_unknown_users,
            "effective_n": {n: _mean(np.minimum(lengths[protocol][defined[n]], cut)) for n, cut in cuts.items()},
            "convention": result.convention,
        }
    return {"train_rows": len(train), "test_rows": len(test), "test_lengths": _lengths(items_of[1]), **protocols}


def _lengths(lengths: Int64Array) -> dict[str, float]:
    lists = lengths[lengths > 0]
    return {"min": int(lists.min()), "median": float(np.median(lists)), "max": int(lists.max())}


def _mean(lengths: Int64Array) -> float | None:
    return float(lengths.mean()) if len(lengths) else None


def check_relevance(test: Interactions, relevant: float | None) -> str:
    """The rule of relevance in words; an error where no test row is relevant."""
    return relevance(test, relevant)[1]


def _sentence(error: Exception) -> str:
    """Why a cell failed, in one line."""
    if isinstance(error, TopNRankError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory; use less data or a smaller model"
    return " ".join(f"{type(error).__name__}: {error}".split())
