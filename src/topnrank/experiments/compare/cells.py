"""One cell of a comparison: split the data, fit a model, evaluate it, write the cell to the folder."""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from topnrank._typing import Float64Array
from topnrank.data.feedback.liked import LikedRule
from topnrank.data.interactions import Interactions
from topnrank.errors import TopNRankError, TopNRankWarning
from topnrank.evaluation import (
    Evaluation,
    Ranker,
    evaluate,
    split_last,
    split_last_session,
    split_per_user,
    split_time,
)
from topnrank.evaluation.foreign import CompetitorRanker
from topnrank.evaluation.metrics import Metric
from topnrank.evaluation.splits import Split
from topnrank.experiments.compare.folder import Folder
from topnrank.experiments.compare.result import Cell
from topnrank.experiments.compare.rows import Row
from topnrank.experiments.compare.splits import split_by
from topnrank.models.base import Model

SPLITS = ("per-user", "last", "last-session", "time")
DEFAULT_TEST = {"per-user": 0.5, "last": 1, "last-session": 1800.0, "time": 0.2}
"""How much each split holds out by default; of sessions the pause in seconds that ends one."""
WARM_UP_USERS = 50


@dataclass(frozen=True, eq=False)
class Plan:
    """What all cells of a comparison share."""

    data: Interactions
    """All rows; where splits are given, those of the first one"""
    split: str | Callable[..., Split] | tuple[Split, ...]
    """A name, a function of the data, or (train, test) for each repeat in turn"""
    test: float
    """A fraction of the rows; with the split "last" a number of items, with "last-session" the pause that ends a session"""
    seed: int
    relevant: LikedRule | None
    """One rule for all models; None: weights above 0, else every row"""
    protocols: tuple[str, ...]
    measured: tuple[Metric, ...]
    metrics: tuple[str, ...]
    """Their names"""
    split_name: str
    splits_vary: bool
    """Whether each repeat has a split of its own; else the models' seeds differ"""
    ties: str
    """With the split "last": the rule for items of one moment"""
    one_thread: bool
    """Whether every cell runs on one thread, because several cells run at a time"""

    def identity(self) -> dict[str, Any]:
        """What must be equal for two cells to belong to one comparison, as JSON."""
        from topnrank import __version__

        return {
            "data": self.data.fingerprint(),
            "topnrank": __version__,
            "split": self.split_name,
            **{name: getattr(self, name) for name in ("test", "seed", "ties")},
            "relevant": None if self.relevant is None else str(self.relevant),
            "protocols": list(self.protocols),
            "metrics": [one.name if one.function is None else one.identity() for one in self.measured],
        }


@dataclass(frozen=True, eq=False)
class Task:
    """A cell to compute."""

    row: Row
    repeat: int
    key: str
    """Digest of all that decides the numbers of the cell"""

    def failed(self, why: str) -> Cell:
        """A cell without values that says why there are none."""
        return Cell(self.row.name, self.repeat, 0.0, 0.0, {}, [], why, {"key": self.key})


@dataclass(eq=False)
class Runner:
    """Computes cells one after the other; keeps the split of the last repeat."""

    plan: Plan
    folder: Folder | None
    _repeat: int = field(default=-1, init=False)
    _parts: tuple[Interactions, Interactions] = field(init=False)
    _warm: set[str] = field(default_factory=set, init=False)

    def parts(self, repeat: int) -> tuple[Interactions, Interactions]:
        """Train and test rows of a repeat."""
        plan = self.plan
        if repeat != self._repeat:
            if isinstance(plan.split, tuple):
                self._parts = plan.split[repeat % len(plan.split)]
            elif callable(plan.split):
                self._parts = split_by(plan.split, plan.data, plan.seed + repeat)
            elif plan.split == "last":
                self._parts = split_last(plan.data, test=cast(int, plan.test), ties=plan.ties, seed=plan.seed)
            elif plan.split == "last-session":
                self._parts = split_last_session(plan.data, gap=plan.test)
            elif plan.split == "time":
                self._parts = split_time(plan.data, test=plan.test)
            else:
                self._parts = split_per_user(plan.data, test=plan.test, seed=plan.seed + repeat)
            self._repeat = repeat
        return self._parts

    def run(self, task: Task) -> Cell:
        """Computes a cell and writes it to the folder; a model that fails gives a cell that says why."""
        try:
            cell = self._measure(task)
        except Exception as error:  # models of other libraries may raise anything
            if isinstance(error, TopNRankError):
                cell = task.failed(str(error))
            elif isinstance(error, MemoryError):
                cell = task.failed("there is not enough memory; use less data or a smaller model")
            else:
                cell = task.failed(" ".join(f"{type(error).__name__}: {error}".split()))
        if self.folder is not None:
            self.folder.write_cell(cell)
        return cell

    def _measure(self, task: Task) -> Cell:
        plan = self.plan
        train, test = self.parts(task.repeat)
        self._warm_up(task, train)
        seed_offset = 0 if plan.splits_vary else task.repeat  # a split without chance leaves it to the models
        model = task.row.fresh_model(seed_offset=seed_offset, one_thread=plan.one_thread)
        started = time.perf_counter()
        ranker = model.fit(train) if isinstance(model, Model) else CompetitorRanker.fit(model, train)
        fitted = time.perf_counter()
        results = {protocol: self._evaluate(ranker, test, protocol) for protocol in plan.protocols}
        finished = time.perf_counter()
        values: dict[tuple[str, str], Float64Array] = {}
        for protocol, result in results.items():
            users = plan.data.users.index(result.user_ids)
            for metric in plan.metrics:
                values[protocol, metric] = np.full(plan.data.n_users, np.nan)
                values[protocol, metric][users] = result.per_user[metric]
        curve = list(getattr(ranker, "history_", []))
        facts = {"key": task.key, **split_facts(plan, train, test, results, values)}
        return Cell(task.row.name, task.repeat, fitted - started, finished - fitted, values, curve, None, facts)

    def _evaluate(self, ranker: Ranker, test: Interactions, protocol: str) -> Evaluation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TopNRankWarning)  # the comparison has said it once
            return evaluate(
                ranker,
                test,
                protocol=cast(Literal["rated", "catalog"], protocol),
                metrics=self.plan.measured,
                relevant=self.plan.relevant,
                num_threads=int(self.plan.one_thread),
            )

    def _warm_up(self, task: Task, train: Interactions) -> None:
        """Compiles or loads the kernels of a model on a few rows, so that its seconds are seconds of training."""
        if task.row.name in self._warm or not isinstance(task.row.model, Model):
            return
        self._warm.add(task.row.name)
        few = train.take(np.arange(train.indptr[min(WARM_UP_USERS, train.n_users)])).compact()
        model = cast(Model, task.row.fresh_model(one_thread=self.plan.one_thread, one_round=True))
        with suppress(Exception):  # a model that fails here fails again in its cell, which says why
            model.fit(few)
        for protocol in self.plan.protocols:
            with suppress(Exception):
                self._evaluate(model, few, protocol)


def split_facts(
    plan: Plan,
    train: Interactions,
    test: Interactions,
    results: dict[str, Evaluation],
    values: dict[tuple[str, str], Float64Array],
) -> dict[str, Any]:
    """Sizes of a split, users left out, and how long the lists are at the cut-offs."""
    n_train, n_test = np.zeros((2, plan.data.n_users), np.int64)
    for counts, part in ((n_train, train), (n_test, test)):  # a split of the caller may have other users
        found = np.bincount(part.user_index[part.pair_starts], minlength=part.n_users)
        numbers = plan.data.users.index(part.users.ids)
        counts[numbers[numbers >= 0]] = found[numbers >= 0]
    ranked = {"rated": n_test, "catalog": train.n_items - n_train}
    tested = n_test[n_test > 0]
    facts: dict[str, Any] = {
        "train_rows": len(train),
        "test_rows": len(test),
        "test_lengths": {"min": int(tested.min()), "median": float(np.median(tested)), "max": int(tested.max())},
    }
    for protocol, result in results.items():
        effective_n = {}
        for metric in plan.measured:
            lengths = np.minimum(ranked[protocol][~np.isnan(values[protocol, metric.name])], metric.cut)
            effective_n[metric.name] = float(lengths.mean()) if len(lengths) else None
        facts[protocol] = {
            "users": result.n_users,
            "without_relevant": result.n_excluded,
            "without_test_rows": test.n_users - result.n_users - result.n_excluded - result.n_unknown_users,
            "effective_n": effective_n,
            "convention": result.convention,
        }
    return facts
