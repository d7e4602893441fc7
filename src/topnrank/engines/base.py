"""The contract of an engine, and what one visit of a batch of users means.

1. For each user of the batch on its own: scores, objective; a scorer with free user vectors steps the user's vector and
   computes scores and objective again (the paper's order, Alg. 2).
2. For each item touched: the sum over the batch's users in the batch's order; its parameters step once.

Users write only their own row and items sum in a fixed order, so the bits do not depend on the number of threads.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Int64Array
from topnrank.objectives import Objective
from topnrank.scorers import Parameters, Rows, Rule, Scorer


@dataclass(frozen=True)
class Problem:
    """All that training needs besides numbers that change."""

    scorer: Scorer
    objective: Objective
    rows: Rows
    rules: dict[str, Rule]
    """How each block of parameters steps."""


@dataclass(frozen=True)
class State:
    """The numbers that change: parameters, and AdaGrad's accumulators beside them (same names and shapes)."""

    parameters: Parameters
    accumulators: Parameters

    @classmethod
    def start(cls, parameters: Parameters, accumulator: float) -> "State":
        """Fresh parameters with accumulators that begin at `accumulator`."""
        return cls(parameters, {name: np.full_like(block, accumulator) for name, block in parameters.items()})


class Visit(NamedTuple):
    """What one batch reports."""

    value: float
    """Sum of the lists' losses, before the step"""
    active: int
    """Sum of the lists' effective N"""
    lists: int
    """Lists visited"""
    moved: float
    """Squared distance the parameters moved"""


class Engine(Protocol):
    """Holds a state and visits batches of users."""

    state: State

    def visit(self, users: Int64Array) -> Visit:
        """One batch-synchronous iteration over `users`; changes `state` in place."""
        ...
