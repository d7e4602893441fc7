"""The scale that ratings are on: its levels, how far they spread, and whether it has a top at all."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array, FloatArray, Int64Array

FIVE_STAR_SPREAD = 1.12
"""Standard deviation of ratings from one to five stars (MovieLens): what learning rates and penalties are meant for."""
FEW_LEVELS = 5
"""No more different values than these are a scale, never amounts."""
USUAL_STEPS = (5, 10, 20, 50, 100)
"""Steps from 0 to the top of usual scales."""
_PLACES = 100_000
"""Values nearer than two such parts of the range are the same level: what float32 cannot tell apart."""


@dataclass(frozen=True, eq=False)
class RatingCounts:
    """How often each value occurs among ratings, or weights."""

    values: Float64Array
    """(n_values,) ascending"""
    counts: Int64Array

    @classmethod
    def of(cls, ratings: FloatArray) -> "RatingCounts":
        """Of the ratings of some rows."""
        values, counts = np.unique(ratings, return_counts=True)
        return cls(values.astype(np.float64), counts.astype(np.int64))

    @classmethod
    def joined(cls, parts: Iterable["RatingCounts"]) -> "RatingCounts":
        """Of all rows, from those of disjoint parts of them."""
        known = list(parts)
        values, places = np.unique(np.concatenate([part.values for part in known]), return_inverse=True)
        counts = np.bincount(places, weights=np.concatenate([part.counts for part in known]), minlength=len(values))
        return cls(values, counts.astype(np.int64))

    @property
    def unit(self) -> float:
        """What a star of five is on this scale: the standard deviation, as a share of the usual one; 1 where all are equal.

        Ratings divided by it are as far apart as five-star ratings, so that settings mean the same on every scale.
        """
        total = int(self.counts.sum())
        mean = float(self.counts @ self.values) / total
        spread = float(np.sqrt(float(self.counts @ (self.values - mean) ** 2) / total))
        return spread / FIVE_STAR_SPREAD if spread > 1e-6 * float(np.abs(self.values).max()) else 1.0

    def four_fifths(self) -> float | None:
        """The lowest value in the upper fifth of the scale: 4 of 1 to 5 and of half stars, 8 of 1 to 10, 80 of 0 to 100.

        None for amounts, which have no top: counts, hours and the like, never negative, many different ones, and some far
        above all others (more than 4 times what 95 % of the positive values reach, or more than 10 times their median).

        Each level is an equal part of the scale, so 1 to 5 covers 0 to 5 and four fifths are 4. Multiplying and shifting
        all ratings moves the result alike. Where the values themselves say that the scale starts at 0 (steps of 1/5,
        1/10, ... of the largest), levels at the lower end may be missing.
        """
        lowest, highest = self.values[[0, -1]].tolist()
        positive = self.values > 0.0
        if lowest >= 0.0 and np.count_nonzero(positive) > FEW_LEVELS:
            values, reached = self.values[positive], np.cumsum(self.counts[positive])
            median, nearly_all = (values[np.searchsorted(reached, share * reached[-1])] for share in (0.5, 0.95))
            if highest > 4.0 * nearly_all or highest > 10.0 * median:
                return None
        span = highest - lowest
        places = np.round((self.values - lowest) / span * _PLACES).astype(np.int64)
        gaps = np.diff(places)
        apart = gaps[gaps > 2]
        step = (
            int(apart.min()) if 2 * len(apart) > len(gaps) else 0
        )  # of neighboring levels; 0 where values are anywhere
        point = 0.8 * (_PLACES + step) - step
        if lowest >= 0.0 and step:
            steps = highest / span * _PLACES / step  # of a scale that starts at 0
            is_usual = any(abs(steps - usual) < 0.0015 * usual for usual in USUAL_STEPS)
            if is_usual and (lowest < 0.5 * highest or round(highest / (step * span / _PLACES)) == FEW_LEVELS):
                point = (0.8 * highest - lowest) / span * _PLACES
        value = float(self.values[np.argmax(places >= point - 2)])
        short = float(f"{value:.6g}")
        return short if np.float32(short) == np.float32(value) else value  # six digits, where 32 bits know no other
