"""Ratings as grades: the feedback of the models that need more than an order of a user's items.

Both policies are fitted to the training rows first: the largest rating found there is the top of the scale, also for users
who come later. Where the data has no ratings, its weights are the grades.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from topnrank._checks import require_number
from topnrank._typing import Float64Array
from topnrank.data.feedback.policies import Policy, Unary, WeightColumn, rated_pairs
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError


@dataclass(frozen=True)
class Graded(Policy, ABC):
    """A policy on a scale with a largest grade."""

    maximum: float | None = None
    """The largest grade; None for the largest of the training rows."""

    def __post_init__(self) -> None:
        if self.maximum is not None:
            require_number(f"{type(self).__name__}.maximum", self.maximum, above=0)

    def fitted_to(self, data: Interactions) -> Self:
        """The policy with the largest grade of `data` as its maximum."""
        if self.maximum is not None:
            return self
        grades = _grades(data)[1]
        top = float(grades.max()) if grades.size else 0.0
        if top <= 0.0:
            raise DataError(
                f"the largest rating or weight is {top:g}: grades must reach above 0; shift them, or use another feedback"
            )
        return replace(self, maximum=top)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights by grade."""
        maximum = self.fitted_to(data).maximum
        assert maximum is not None
        data, grades = _grades(data)
        return data.with_weights(self.weight(grades, maximum).astype(np.float32))

    @abstractmethod
    def weight(self, grades: Float64Array, maximum: float) -> Float64Array:
        """Weights of grades on a scale that ends at `maximum`."""


@dataclass(frozen=True)
class Grades(Graded):
    """The rating divided by the largest one (ListRank); of several types the latest, else the largest rating."""

    kind: ClassVar[str] = "grades"

    def weight(self, grades: Float64Array, maximum: float) -> Float64Array:
        """r / r_max."""
        return grades / maximum


@dataclass(frozen=True)
class Relevance(Graded):
    """The probability that a rating of r satisfies, (2^r - 1) / 2^r_max (xCLiMF, after Chapelle et al. 2009).

    Ratings may be any real numbers, half stars for example; those below 0 count as 0, those above the maximum as the
    maximum. On scales that end above 10 the ratings are shrunk to end at 10: beyond, all but the top would count as 0.
    """

    kind: ClassVar[str] = "relevance"

    LONGEST: ClassVar[float] = 10.0

    def weight(self, grades: Float64Array, maximum: float) -> Float64Array:
        """(2^r - 1) / 2^r_max, in [0, 1)."""
        shrink = min(1.0, self.LONGEST / maximum)
        r, top = shrink * np.clip(grades, 0.0, maximum), shrink * maximum
        return np.asarray(np.exp2(r - top) - np.exp2(-top))


def _grades(data: Interactions) -> tuple[Interactions, Float64Array]:
    """One row for each pair, and its rating, or else its weight, or else 1."""
    if data.ratings is not None:
        return rated_pairs(data, "grades")
    data = (Unary() if data.weights is None and data.types is None else WeightColumn())(data)
    assert data.weights is not None
    return data, data.weights.astype(np.float64)
