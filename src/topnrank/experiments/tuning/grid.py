"""GridSearch: a model some of whose hyper-parameters are chosen on validation data, anew at each fit."""

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, final

from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.errors import DivergenceError, NotFittedError, ParameterError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.experiments.tuning.search import Candidate, Outcome, Sampler, search
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel

Grid = Mapping[str, tuple[float, ...]]
"""Values to try by the name of the hyper-parameter."""


@final
@dataclass(eq=False, kw_only=True)
class GridSearch(Model):
    """Fits `model` with the points of `grid` on part of the training data, and with the best one on all of them.

    In a comparison each repeat thus makes its own choice, without a look at its test data. Points that diverge are left
    out. `chosen_` is the fitted model.
    """

    model: FactorModel
    """Holds everything that is not in the grid"""
    grid: Grid
    in_turn: bool = False
    """Try the values of one parameter after the other, the rest at their best so far, instead of every combination"""
    validation: float = 0.25
    """Fraction of each user's training items on which the points are measured"""
    metric: str = "ndcg@10"
    protocol: Literal["auto", "rated", "catalog"] = "auto"
    num_threads: int = 0

    name: ClassVar[str] = "grid-search"
    summary: ClassVar[str] = "a model whose hyper-parameters are chosen from a grid on validation data"

    _chosen: FactorModel | None = None
    _point: dict[str, float] | None = None
    _seconds: float = 0.0

    def check(self) -> None:
        """The grid names parameters of the model, and all its values are allowed."""
        if not self.grid or not all(self.grid.values()):
            raise ParameterError("GridSearch: the grid must name a parameter and hold a value for each it names")
        for point in self.points():
            self._with(point)

    def points(self) -> Iterator[dict[str, float]]:
        """Every combination of the grid's values."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def fit(self, data: Interactions) -> Self:
        """Chooses, then fits on all of `data`; if the best point diverges there, the next best one is fitted."""
        part, held_out = split_per_user(data, test=self.validation, seed=0)

        def measure(candidate: Candidate) -> Outcome:
            fitted = self._with(candidate.settings).fit(part)
            measured: dict[str, Any] = {"protocol": self.protocol, "num_threads": self.num_threads}
            result = evaluate(fitted, held_out, metrics=[self.metric], **measured)
            return Outcome("complete", result[self.metric])

        trials = search(measure, self._one_after_the_other() if self.in_turn else self._every_point())
        measured = [
            (found.value, tried.settings)
            for tried, found in trials
            if found.value is not None and found.value > -math.inf
        ]
        for _, point in sorted(measured, key=lambda one: -one[0]):
            chosen = self._with(point)
            started = time.perf_counter()
            try:
                chosen.fit(data)
            except DivergenceError:
                continue
            self._chosen, self._point, self._seconds = chosen, point, time.perf_counter() - started
            self._fitted = chosen.fitted
            return self
        raise DivergenceError(f"{self.model.name}: every point of the grid diverged; try smaller learning rates")

    def _every_point(self) -> Sampler:
        for point in self.points():
            yield Candidate(point)

    def _one_after_the_other(self) -> Sampler:
        """Coordinate search from the model's own values, or the middle of the grid where it does not hold them."""
        own = self.model.get_params()
        best = {name: own[name] if own[name] in tried else tried[len(tried) // 2] for name, tried in self.grid.items()}
        values: dict[tuple[float, ...], float] = {}
        for name, tried in self.grid.items():
            points = [{**best, name: value} for value in tried]
            for point in points:
                if tuple(point.values()) not in values:
                    outcome = yield Candidate(point)
                    values[tuple(point.values())] = -math.inf if outcome.value is None else outcome.value
            best = max(points, key=lambda point: values[tuple(point.values())])

    def score_block(self, users: IntArray) -> Float32Array:
        """Scores of the chosen model."""
        return self.chosen_.score_block(users)

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Scores of the chosen model."""
        return self.chosen_.score_pairs(users, items)

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Scores of the chosen model."""
        return self.chosen_.score_history(items, values)

    @property
    def chosen_(self) -> FactorModel:
        """The fitted model with the best point of the grid."""
        if self._chosen is None:
            raise NotFittedError("this GridSearch is not fitted yet; call fit(data) first")
        return self._chosen

    @property
    def history_(self) -> list[dict[str, float]]:
        """The chosen model's training history; the last record also has the chosen point and the seconds of that fit."""
        *before, last = self.chosen_.history_
        return [*before, {**last, **(self._point or {}), "fit_seconds": self._seconds}]

    def _with(self, point: Mapping[str, Any]) -> FactorModel:
        return type(self.model)(**(self.model.get_params() | dict(point) | {"num_threads": self.num_threads}))
