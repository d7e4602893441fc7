"""How parameters step; the arithmetic itself is in the engines."""

import math
from dataclasses import dataclass

import numpy as np

from topnrank._checks import one_of
from topnrank.engines import State
from topnrank.engines.adaptive import STEP
from topnrank.errors import ParameterError
from topnrank.scorers import Parameters

OPTIMIZERS = ("adagrad", "sgd", "adaptive")


@dataclass(frozen=True)
class SGD:
    """Plain descent on the batch's sum, as in the paper: theta -= rate * g."""


@dataclass(frozen=True)
class AdaGrad:
    """Per coordinate on the batch's sum: accumulator += g^2, theta -= rate * g / sqrt(accumulator)."""

    initial: float = 30.0
    """Where the accumulator starts. Not zero: it acts like visits already made and keeps rare items near their start."""


@dataclass(frozen=True)
class AdaptiveDescent:
    """Full-batch descent whose step doubles after each iteration and is halved until the loss drops.

    As in the program of ListRank's authors. Needs batch_size=1.0: the loss of all users decides. `learning_rate` is the
    first step.
    """


Optimizer = SGD | AdaGrad | AdaptiveDescent


def make_optimizer(optimizer: "str | Optimizer") -> Optimizer:
    """The optimizer of that name with its usual settings, or `optimizer` itself."""
    if isinstance(optimizer, SGD | AdaptiveDescent):
        return optimizer
    if isinstance(optimizer, AdaGrad):
        if not (isinstance(optimizer.initial, int | float) and 0.0 < optimizer.initial < math.inf):
            raise ParameterError(f"AdaGrad.initial must be a finite number above 0, got {optimizer.initial!r}")
        return optimizer
    kinds: dict[str, Optimizer] = {"adagrad": AdaGrad(), "sgd": SGD(), "adaptive": AdaptiveDescent()}
    return kinds[one_of("optimizer", optimizer, OPTIMIZERS)]


def start_state(parameters: Parameters, optimizer: Optimizer) -> State:
    """Parameters at their start, with what the optimizer keeps beside them."""
    state = State.start(parameters, optimizer.initial if isinstance(optimizer, AdaGrad) else 0.0)
    if isinstance(optimizer, AdaptiveDescent):
        state.accumulators[STEP] = np.ones(1)
    return state
