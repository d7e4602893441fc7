"""Picked: a model some of whose hyper-parameters are chosen on validation data, anew at each fit."""

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.errors import DivergenceError, NotFittedError, ParameterError
from topnrank.evaluation import evaluate, split_per_user
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel

Grid = Mapping[str, tuple[float, ...]]
"""Values to try by the name of the hyper-parameter."""


@final
@dataclass(eq=False, kw_only=True)
class GridSearch(Model):
    """Fits `model` with the points of `grid` on part of the training data, and with the best one on all of them.

    In a comparison each repeat so has its own choice, made without a look at its test data. A point that diverges is
    out. `chosen_` is the fitted model.
    """

    model: FactorModel
    """Holds everything that is not in the grid"""
    grid: Grid
    in_turn: bool = False
    """Try the values of one parameter after the other, the rest at their best so far, instead of every combination"""
    validation: float = 0.25
    """Share of each user's training items on which the points are judged"""
    metric: str = "ndcg@10"
    num_threads: int = 0

    name: ClassVar[str] = "picked"
    summary: ClassVar[str] = "a model whose hyper-parameters are picked from a grid on validation data"

    _chosen: FactorModel | None = None
    _point: dict[str, float] | None = None
    _seconds: float = 0.0

    def check(self) -> None:
        """The grid names parameters of the model, and all its values are allowed."""
        if not self.grid or not all(self.grid.values()):
            raise ParameterError("Picked: the grid must name a parameter and hold a value for each it names")
        for point in self.points():
            self._with(point)

    def points(self) -> Iterator[dict[str, float]]:
        """Every combination of the grid's values."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def fit(self, data: Interactions) -> Self:
        """Chooses, then fits on all of `data`; if the best point diverges there, the next one has its turn."""
        for point in self._ranked(data):
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

    def score_block(self, users: IntArray) -> Float32Array:
        """The chosen model's."""
        return self.chosen_.score_block(users)

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The chosen model's."""
        return self.chosen_.score_pairs(users, items)

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """The chosen model's."""
        return self.chosen_.score_history(items, values)

    @property
    def chosen_(self) -> FactorModel:
        """The fitted model with the best point of the grid."""
        if self._chosen is None:
            raise NotFittedError("this Picked is not fitted yet; call fit(data) first")
        return self._chosen

    @property
    def history_(self) -> list[dict[str, float]]:
        """The chosen model's training history; its last record also tells the choice and the seconds of that fit alone."""
        *before, last = self.chosen_.history_
        return [*before, {**last, **(self._point or {}), "fit_seconds": self._seconds}]

    def _ranked(self, data: Interactions) -> list[dict[str, float]]:
        """The points that were tried and did not diverge, best first; the earlier of equals."""
        parts = split_per_user(data, test=self.validation, seed=0)
        values: dict[tuple[float, ...], float] = {}

        def judge(point: Mapping[str, float]) -> float:
            key = tuple(point.values())
            if key not in values:
                values[key] = self._value(point, parts)
            return values[key]

        if self.in_turn:
            best = {name: self._start(name, tried) for name, tried in self.grid.items()}
            for name, tried in self.grid.items():
                best = max(({**best, name: value} for value in tried), key=judge)
        else:
            for point in self.points():
                judge(point)
        ranked = sorted((key for key in values if values[key] > -math.inf), key=lambda key: -values[key])
        return [dict(zip(self.grid, key, strict=True)) for key in ranked]

    def _start(self, name: str, tried: tuple[float, ...]) -> float:
        """The model's own value where it is in the grid, else the middle one."""
        own = self.model.get_params()[name]
        return own if own in tried else tried[len(tried) // 2]

    def _value(self, point: Mapping[str, float], parts: tuple[Interactions, Interactions]) -> float:
        """The metric on the second part; minus infinity where training on the first diverges."""
        part, held_out = parts
        try:
            fitted = self._with(point).fit(part)
        except DivergenceError:
            return -math.inf
        return evaluate(fitted, held_out, metrics=[self.metric], num_threads=self.num_threads)[self.metric]

    def _with(self, point: Mapping[str, Any]) -> FactorModel:
        return type(self.model)(**(self.model.get_params() | dict(point) | {"num_threads": self.num_threads}))
