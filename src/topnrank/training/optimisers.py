"""How parameters step; the arithmetic itself is in the engines."""

import math
from dataclasses import dataclass

from topnrank.errors import ParameterError, one_of

OPTIMIZERS = ("adagrad", "sgd")


@dataclass(frozen=True)
class SGD:
    """Plain descent on the batch's sum, as in the paper: theta -= rate * g."""


@dataclass(frozen=True)
class AdaGrad:
    """Per coordinate on the batch's sum: accumulator += g^2, theta -= rate * g / sqrt(accumulator)."""

    initial: float = 30.0
    """Where the accumulator starts. Not zero: it acts like visits already made and keeps rare items near their start."""


Optimizer = SGD | AdaGrad


def make_optimizer(optimizer: "str | Optimizer") -> Optimizer:
    """The optimiser of that name with its usual settings, or `optimizer` itself."""
    if isinstance(optimizer, SGD):
        return optimizer
    if isinstance(optimizer, AdaGrad):
        if not (isinstance(optimizer.initial, int | float) and 0.0 < optimizer.initial < math.inf):
            raise ParameterError(f"AdaGrad.initial must be a finite number above 0, got {optimizer.initial!r}")
        return optimizer
    return AdaGrad() if one_of("optimizer", optimizer, OPTIMIZERS) == "adagrad" else SGD()
