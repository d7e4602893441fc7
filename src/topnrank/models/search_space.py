"""Search spaces: which values of a hyper-parameter are worth trying when a model is tuned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from topnrank.rng import stream


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False
    """Evenly spread by logarithm"""
    whole: bool = False
    """Whole numbers only"""

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', by logarithm' if self.log else ''}"

    def draw(self, random: np.random.Generator) -> float | int:
        """A number of the range."""
        if self.log:
            value = float(np.exp(random.uniform(np.log(self.low), np.log(self.high))))
        else:
            value = float(random.uniform(self.low, self.high))
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else value


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))

    def draw(self, random: np.random.Generator) -> Any:
        """One of the values."""
        return self.values[int(random.integers(len(self.values)))]


Space = Mapping[str, Range | Choice]
"""Ranges and choices by the name of the hyper-parameter."""


def draw_settings(space: Space, seed: int, trial: int) -> dict[str, Any]:
    """Trial number `trial` of a random search: the same for the same seed."""
    random = stream(seed, "search", trial)
    return {name: values.draw(random) for name, values in space.items()}
