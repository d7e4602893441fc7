"""The contract of an engine, and what one visit of a batch of users means.

1. For each user of the batch on its own: the list (own rows, and unobserved items where the model samples them), scores,
   objective; a scorer with free user vectors steps the user's vector and computes scores and objective again (the
   paper's order, Alg. 2), unless the problem asks for simultaneous steps.
2. For each item touched: the sum over the batch's users in the batch's order; its parameters step once.

Users write only their own row, items sum in a fixed order, and random draws are keyed by seed, iteration and user, so the
bits do not depend on the number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Float64Array, Int32Array, Int64Array
from topnrank.losses.base import Objective
from topnrank.scorers import Neighbors, Parameters, Scorer, TrainingLists, UpdateRule


@dataclass(frozen=True)
class Problem:
    """All that training needs besides numbers that change."""

    scorer: Scorer
    objective: Objective
    rows: TrainingLists
    rules: dict[str, UpdateRule]
    """How each block of parameters steps."""
    negatives: int = 0
    """Unobserved items sampled into each list at each visit."""
    seed: int = 0
    """Of the random draws inside visits."""
    simultaneous: bool = False
    """Whether users and items step at once, both from the parameters before the visit."""
    adaptive: bool = False
    """Whether the step adapts itself: full batches, no AdaGrad, nothing sampled (`engines.adaptive`)."""
    sampling_weights: Int64Array | None = None
    """(n_items,) whole numbers that the chance to be sampled is proportional to; None for equal chances."""
    shared: bool = False
    """Whether the sampled rows of a list count together as many visits as its own rows, for the penalty; else one each."""
    neighbors: Neighbors | None = None
    """A fixed item-to-item term of the scores beside the scorer; its scale is learned."""
    first_user: int = 0
    """The number of the first user of `rows` among all users, by which its random draws are named."""
    n_items: int = 0
    """Items of the catalog; 0 for as many as the state has rows."""
    item_rows: Float64Array | None = None
    """(n_items,) rows of each item in a pass over all users, where `rows` are those of some (`local_passes`)."""


@dataclass(frozen=True)
class State:
    """The numbers that change: parameters, and AdaGrad's accumulators beside them (same names and shapes)."""

    parameters: Parameters
    accumulators: Parameters

    @classmethod
    def start(cls, parameters: Parameters, accumulator: float) -> "State":
        """Fresh parameters with accumulators that begin at `accumulator`."""
        return cls(parameters, {name: np.full_like(block, accumulator) for name, block in parameters.items()})


class TrainingTime(NamedTuple):
    """When a visit happens."""

    iteration: int = 0
    """Batches visited before, over all rounds: names the random draws"""
    progress: float = 1.0
    """Share of the training that is done: 0 at the first visit, 1 at the last"""


class StepReport(NamedTuple):
    """What one batch reports."""

    value: float
    """Sum of the lists' losses, before the step"""
    active: int
    """Sum of the lists' effective N"""
    lists: int
    """Lists visited"""
    moved: float
    """Squared distance the parameters moved"""


class ItemSums(NamedTuple):
    """What the users of a part of a batch give to the steps of its items."""

    items: Int32Array
    """(t,) the touched items"""
    gradients: Parameters
    """Sums of the gradients by block, one row for each touched item"""
    in_lists: Float64Array
    """(t,) how often the penalty of the blocks of the lists' items counts"""
    in_histories: Float64Array
    """(t,) and that of the blocks of the histories' items"""
    scale: Float64Array
    """What is no item's: (1,) sum of the gradients of the neighbors' scale"""
    report: StepReport
    """Of these users; `moved` counts their own vectors only"""


END_OF_TRAINING = TrainingTime()


class Engine(Protocol):
    """Holds a state and visits batches of users."""

    problem: Problem
    """May be replaced between visits, as long as scorer, objective and rows stay the same"""

    @property
    def state(self) -> State:
        """The numbers that change."""
        ...

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch-synchronous iteration over `users`; changes `state` in place."""
        ...

    def remember(self) -> Callable[[], None]:
        """Keeps the parameters as they are; what is returned puts them back."""
        ...


def remember_arrays(parameters: Parameters) -> Callable[[], None]:
    """`Engine.remember` of parameters that change in place."""
    kept = {name: block.copy() for name, block in parameters.items()}

    def put_back() -> None:
        for name, block in parameters.items():
            block[...] = kept[name]

    return put_back
