"""The contract of an engine, and what one visit of a batch of users means.

1. For each user of the batch on its own: the list (own rows, and unobserved items where the model samples them), scores,
   objective; a scorer with free user vectors steps the user's vector and computes scores and objective again (the
   paper's order, Alg. 2), unless the problem asks for simultaneous steps.
2. For each item touched: the sum over the batch's users in the batch's order; its parameters step once.

Users write only their own row, items sum in a fixed order, and random draws are keyed by seed, iteration and user, so the
bits do not depend on the number of threads.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Int64Array
from topnrank.objectives import Objective
from topnrank.scorers import Neighbours, Parameters, Rows, Rule, Scorer


@dataclass(frozen=True)
class Problem:
    """All that training needs besides numbers that change."""

    scorer: Scorer
    objective: Objective
    rows: Rows
    rules: dict[str, Rule]
    """How each block of parameters steps."""
    negatives: int = 0
    """Unobserved items sampled into each list at each visit."""
    seed: int = 0
    """Of the random draws inside visits."""
    simultaneous: bool = False
    """Whether users and items step at once, both from the parameters before the visit."""
    adaptive: bool = False
    """Whether the step adapts itself: full batches, no AdaGrad, nothing sampled (`engines.adaptive`)."""
    chances: Int64Array | None = None
    """(n_items,) whole numbers that the chance to be sampled is proportional to; None for equal chances."""
    shared: bool = False
    """Whether the sampled rows of a list count together as many visits as its own rows, for the penalty; else one each."""
    neighbours: Neighbours | None = None
    """A fixed item-to-item term of the scores beside the scorer; its scale is learnt."""


@dataclass(frozen=True)
class State:
    """The numbers that change: parameters, and AdaGrad's accumulators beside them (same names and shapes)."""

    parameters: Parameters
    accumulators: Parameters

    @classmethod
    def start(cls, parameters: Parameters, accumulator: float) -> "State":
        """Fresh parameters with accumulators that begin at `accumulator`."""
        return cls(parameters, {name: np.full_like(block, accumulator) for name, block in parameters.items()})


class Moment(NamedTuple):
    """When a visit happens."""

    iteration: int = 0
    """Batches visited before, over all rounds: names the random draws"""
    progress: float = 1.0
    """Share of the training that is done: 0 at the first visit, 1 at the last"""


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


LAST = Moment()


class Engine(Protocol):
    """Holds a state and visits batches of users."""

    problem: Problem
    """May be replaced between visits, as long as scorer, objective and rows stay the same"""

    @property
    def state(self) -> State:
        """The numbers that change."""
        ...

    def visit(self, users: Int64Array, moment: Moment = LAST) -> Visit:
        """One batch-synchronous iteration over `users`; changes `state` in place."""
        ...
