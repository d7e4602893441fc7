"""The optimizers by name; their arithmetic is in the engines."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topnrank._checks import one_of
from topnrank.errors import ParameterError


@dataclass(frozen=True)
class SGD:
    """Plain descent on the sum over the batch, as in the paper: theta -= rate * g."""

    initial: ClassVar[float] = 0.0
    """It has no accumulator"""


@dataclass(frozen=True)
class AdaGrad:
    """Per coordinate on the sum over the batch: accumulator += g^2, theta -= rate * g / sqrt(accumulator)."""

    initial: float = 30.0
    """Where the accumulator starts. Not zero: it acts like steps already made and keeps rare items near their start."""


Optimizer = SGD | AdaGrad


def make_optimizer(optimizer: "str | Optimizer") -> Optimizer:
    """The optimizer of that name with its usual settings, or `optimizer` itself."""
    if isinstance(optimizer, AdaGrad):
        if not (isinstance(optimizer.initial, int | float) and 0.0 < optimizer.initial < math.inf):
            raise ParameterError(f"AdaGrad.initial must be a finite number above 0, got {optimizer.initial!r}")
        return optimizer
    if isinstance(optimizer, SGD):
        return optimizer
    kinds: dict[str, Optimizer] = {"adagrad": AdaGrad(), "sgd": SGD()}
    return kinds[one_of("optimizer", optimizer, tuple(kinds))]
