"""Step functions h: smooth versions of the indicator 1(x > 0), which turns score differences into ranks (eq. 3).

| name    | h(x)                                   | h'(x)                | in the paper              |
|---------|----------------------------------------|----------------------|---------------------------|
| relu    | max(0, x)                              | 1(x > 0)             | yes, section III-B        |
| sigmoid | g(Cx), g the logistic function         | C g(Cx) (1 - g(Cx))  | yes, C = 7                |
| laplace | e^{Cx}/2 for x <= 0, 1 - e^{-Cx}/2     | C/2 e^{-C|x|}        | no: exact in linear time  |
| ramp    | clip(Cx, 0, 1)                         | C 1(0 < Cx < 1)      | no: exact in linear time  |

C is the steepness. At the kinks the derivative is taken as 0, so tied scores exert no force on each other.
Any other object with methods `h(x)` and `dh(x)` on NumPy arrays works too, at quadratic cost per list.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Float64Array
from topnrank.errors import ParameterError


@runtime_checkable
class StepFunction(Protocol):
    """A smooth step: `h` and its derivative `dh`, element by element."""

    def h(self, x: Float64Array) -> Float64Array:
        """The step."""
        ...

    def dh(self, x: Float64Array) -> Float64Array:
        """Its derivative h'."""
        ...


@dataclass(frozen=True)
class ReLU:
    """h(x) = max(0, x): unbounded, so its "rank" grows with the scale of the scores."""

    def h(self, x: Float64Array) -> Float64Array:
        """max(0, x)."""
        return np.maximum(x, 0.0)

    def dh(self, x: Float64Array) -> Float64Array:
        """1(x > 0)."""
        return (x > 0.0).astype(np.float64)


@dataclass(frozen=True)
class Sigmoid:
    """h(x) = g(Cx) with the logistic g; the paper takes C = 7."""

    steepness: float = 7.0

    def h(self, x: Float64Array) -> Float64Array:
        """g(Cx), written with tanh so that nothing overflows."""
        return 0.5 * (1.0 + np.tanh(0.5 * self.steepness * x))

    def dh(self, x: Float64Array) -> Float64Array:
        """C g(Cx) (1 - g(Cx)) = C t / (1 + t)^2 with t = e^{-C|x|}."""
        t = np.exp(-self.steepness * np.abs(x))
        return self.steepness * t / (1.0 + t) ** 2


@dataclass(frozen=True)
class Laplace:
    """h = distribution function of the Laplace law: bounded, strictly increasing, continuous derivative."""

    steepness: float = 3.0

    def h(self, x: Float64Array) -> Float64Array:
        """e^{Cx}/2 below zero, 1 - e^{-Cx}/2 above."""
        half = 0.5 * np.exp(-self.steepness * np.abs(x))
        return np.where(x > 0.0, 1.0 - half, half)

    def dh(self, x: Float64Array) -> Float64Array:
        """C/2 e^{-C|x|}."""
        return 0.5 * self.steepness * np.exp(-self.steepness * np.abs(x))


@dataclass(frozen=True)
class Ramp:
    """h(x) = clip(Cx, 0, 1): counts an item as above once it leads by 1/C."""

    steepness: float = 1.0

    def h(self, x: Float64Array) -> Float64Array:
        """clip(x / width, 0, 1) with width = 1/C."""
        return np.clip(x * self.steepness, 0.0, 1.0)

    def dh(self, x: Float64Array) -> Float64Array:
        """C inside the ramp, 0 outside and on its ends."""
        return np.where((x > 0.0) & (x < 1.0 / self.steepness), self.steepness, 0.0)


STEPS = ("relu", "sigmoid", "laplace", "ramp")
_BOUNDED: dict[str, type[Sigmoid] | type[Laplace] | type[Ramp]] = {"sigmoid": Sigmoid, "laplace": Laplace, "ramp": Ramp}


def make_step(smoothing: "str | StepFunction", steepness: float | None = None) -> StepFunction:
    """The step function named `smoothing`, or `smoothing` itself if it is an object with h and dh."""
    if not isinstance(smoothing, str):
        if isinstance(smoothing, StepFunction):
            return smoothing
        raise ParameterError(
            f"smoothing must be one of {', '.join(map(repr, STEPS))} or an object with methods h(x) and dh(x), "
            f"got {smoothing!r}"
        )
    name = one_of("smoothing", smoothing, STEPS)
    if name == "relu":
        return ReLU()
    bounded = _BOUNDED[name]
    return bounded() if steepness is None else bounded(float(steepness))
