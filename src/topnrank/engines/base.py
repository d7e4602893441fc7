"""What an engine is, and what it does in one step on a batch of users.

1. For each user: the list (own rows, and sampled unobserved items where the model wants them), its scores, loss and
   gradients. A scorer with free user vectors updates the user's vector and computes scores and gradients again (the order
   of the paper's Algorithm 2).
2. For each item in the batch: the gradients summed over the users in the order of the batch, and one update.

Users write only their own rows, items sum in a fixed order, and random draws are keyed by seed, iteration and user, so the
result has the same bits for any number of threads.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Float64Array, Int32Array, Int64Array
from topnrank.losses.base import Objective
from topnrank.scorers import Neighbors, Parameters, Scorer, TrainingLists, UpdateRule


@dataclass(frozen=True)
class Problem:
    """What training needs and does not change."""

    scorer: Scorer
    objective: Objective
    rows: TrainingLists
    rules: dict[str, UpdateRule]
    """The update rule of each block of parameters."""
    negatives: int = 0
    """Unobserved items sampled into each list in each step."""
    seed: int = 0
    """Seed of the random draws inside steps."""
    sampling_weights: Int64Array | None = None
    """(n_items,) integers that the sampling probabilities are proportional to; None for equal probabilities."""
    shared: bool = False
    """Whether the sampled rows of a list count in the penalty as much as its own rows together; else once each."""
    neighbors: Neighbors | None = None
    """A fixed item-to-item term added to the scores of the scorer; its scale is learned."""
    first_user: int = 0
    """Index of the first user of `rows` among all users: it keys the random draws."""
    n_items: int = 0
    """Items of the catalog; 0 for as many as the state has rows."""


@dataclass(frozen=True)
class State:
    """What training changes: parameters, and AdaGrad's accumulators (same names and shapes)."""

    parameters: Parameters
    accumulators: Parameters

    @classmethod
    def start(cls, parameters: Parameters, accumulator: float) -> "State":
        """Fresh parameters with accumulators that begin at `accumulator`."""
        return cls(parameters, {name: np.full_like(block, accumulator) for name, block in parameters.items()})


class TrainingTime(NamedTuple):
    """The time of a step in the training."""

    iteration: int = 0
    """Number of steps before it, over all rounds: it keys the random draws"""
    progress: float = 1.0
    """Fraction of the training that is done: 0 at the first step, 1 at the last"""


class StepReport(NamedTuple):
    """Loss and progress of one step."""

    value: float
    """Sum of the losses of the lists, before the step"""
    active: int
    """Sum of the effective N of the lists"""
    lists: int
    """Number of lists"""
    moved: float
    """Squared distance that the parameters moved"""


class ItemSums(NamedTuple):
    """Gradients of the items, summed over some users of a batch."""

    items: Int32Array
    """(t,) the items that occur"""
    gradients: Parameters
    """(t, ...) sums of the gradients by block"""
    in_lists: Float64Array
    """(t,) how often the penalty of the blocks of the lists' items counts"""
    in_histories: Float64Array
    """(t,) how often the penalty of the blocks of the histories' items counts"""
    scale: Float64Array
    """(1,) sum of the gradients of the neighbors' scale"""
    report: StepReport
    """Of these users; `moved` counts their own vectors only"""


END_OF_TRAINING = TrainingTime()


class Engine(Protocol):
    """Runs training steps on a state. Engines depend on scorers and objectives, never on models."""

    @property
    def problem(self) -> Problem:
        """What it trains."""
        ...

    @property
    def state(self) -> State:
        """Parameters and accumulators after the latest step."""
        ...

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One batch-synchronous iteration over `users`; changes `state` in place."""
        ...
