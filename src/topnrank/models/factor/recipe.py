"""The recipe of a training: everything a model decides before the first step, with no "auto" left."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from topnrank._memory import require_memory
from topnrank.data.feedback.liked import LikedRule
from topnrank.data.feedback.policies import Feedback
from topnrank.engines import Problem, State
from topnrank.losses.base import Objective
from topnrank.models.factor.prepare import NO_FROZEN_TERMS, FrozenTerms, Selection
from topnrank.scorers import Factors, History, Scorer, TrainingLists, UpdateRule
from topnrank.scorers.neighbors import SCALE
from topnrank.training import AdaGrad, Optimizer, Schedule
from topnrank.training.schedule import batch_count

Task = Literal["rated", "catalog"]
"""What a model is trained for: to rank the items that a user has rated, or all items."""

GROUPS = {
    "user_factors": "user",
    "item_factors": "item",
    "history_factors": "history",
    "rating_factors": "history",
    "item_bias": "bias",
}
"""Which group of `regularization` each block of parameters belongs to."""
SCALE_ACCUMULATOR, SCALE_RATE = 1e-3, 0.05
"""Where the AdaGrad accumulator of the neighbors' scale begins, and its rate as a fraction of the scale's start."""


class Start(NamedTuple):
    """Where a training begins that goes on from a trial."""

    state: State
    rounds: int
    """Rounds of the trial"""


@dataclass(frozen=True)
class Recipe:
    """What `model.resolve(data)` returns: the only object that training needs from a model."""

    task: Task
    scorer: Scorer
    objective: Objective
    feedback: Feedback | str | None
    """How rows become weights; None for the natural policy of the data"""
    selection: Selection
    """Which rows enter the lists"""
    optimizer: Optimizer
    learning_rate: float
    penalties: Mapping[str, float]
    """lambda by group of parameters: user, item, history, bias"""
    bias: bool
    batch_size: int | float | str
    epochs: int | None
    iterations: int | None
    tolerance: float
    seed: int
    engine: str
    num_threads: int
    settings: Mapping[str, Any]
    """All hyper-parameters by name, with the values that "auto" stands for"""
    shared_penalty: bool = False
    """Whether the sampled rows of a list count together as many visits as its own rows, for the penalty"""
    factor_weight: float = 1.0
    """What item vectors and biases are multiplied by after training, so that they weigh less beside the neighbors"""
    popularity: float = 0.0
    """What the popularity of items weighs in their biases"""
    half_life: float | None = None
    """Days after which a row counts half in it, where rows have times; inf for never, None for what the rows say"""
    neighbor_scale: float | None = None
    """Where the neighbors' scale begins; None: by what they give to likes whose user is left out"""
    start: Start | None = None
    """Where the training begins; None: at random values"""
    open_settings: frozenset[str] = frozenset()
    """Settings that `model.choose` takes from rows held out of the training data"""
    chosen: Mapping[str, float] | None = None
    """Settings that were chosen so, by name"""
    liked: LikedRule | None = None
    """Which ratings are liked, where the user said so; else the training rows say it"""

    def with_liked(self, rule: LikedRule, *, learn: bool) -> Self:
        """With a rule given by the user for measuring, and where the recipe would `learn` likes by a rule, for that too."""
        return replace(self, liked=rule, feedback=rule.policy if learn else self.feedback)

    def with_factors(self, factors: int) -> "Recipe":
        """With vectors of that length."""
        assert isinstance(self.scorer, Factors | History)
        return replace(self, scorer=replace(self.scorer, factors=factors))

    def require_memory(self, n_users: int, n_items: int) -> None:
        """An OutOfMemoryError where the vectors do not fit: their values, squares and sums, four bytes each."""
        rows = n_items + n_users * isinstance(self.scorer, Factors)
        factors = getattr(self.scorer, "factors", 0)
        require_memory(12 * rows * factors, f"training {rows:,} vectors of {factors:,} factors", "give fewer factors")

    def problem(self, lists: TrainingLists, frozen: FrozenTerms = NO_FROZEN_TERMS) -> Problem:
        """Scorer, objective, lists and update rules as the engines take them."""
        adagrad = isinstance(self.optimizer, AdaGrad)
        rules = {
            block: UpdateRule(
                adagrad, self.learning_rate if self.bias or group != "bias" else 0.0, 2.0 * self.penalties[group]
            )
            for block, group in GROUPS.items()
        }
        rules[SCALE] = UpdateRule(True, SCALE_RATE * frozen.scale, 0.0)
        return Problem(
            self.scorer,
            self.objective,
            lists,
            rules,
            negatives=self.selection.negatives,
            seed=self.seed,
            sampling_weights=frozen.sampling_weights,
            shared=self.shared_penalty,
            neighbors=frozen.neighbors,
        )

    def start_state(self, n_users: int, n_items: int, frozen: FrozenTerms = NO_FROZEN_TERMS) -> State:
        """Start values and fresh accumulators, or those of the trial that the training goes on from."""
        if self.start is not None:
            return copy.deepcopy(self.start.state)
        parameters = self.scorer.initialize(n_users, n_items, self.seed, frozen.channels)
        if frozen.neighbors is not None:
            scale = frozen.scale if self.neighbor_scale is None else self.neighbor_scale
            parameters[SCALE] = np.array([scale], np.float32)
        state = State.start(parameters, self.optimizer.initial)
        if frozen.neighbors is not None:
            state.accumulators[SCALE][:] = SCALE_ACCUMULATOR
        return state

    def schedule(self, lists: TrainingLists) -> Schedule:
        """Which users are visited when.

        A list of one item cannot be ranked, so its user is left out, unless the model learns from likes alone.
        """
        sizes = np.diff(lists.indptr)
        if lists.listed.size:
            sizes = np.bincount(np.repeat(np.arange(sizes.size), sizes)[lists.listed], minlength=sizes.size)
        users = np.flatnonzero(sizes >= (1 if self.selection.relevant_only else 2))
        batch, rounds = (
            batch_count(self.batch_size, users.size),
            self.iterations if self.epochs is None else self.epochs,
        )
        return Schedule(users, batch, self.seed, rounds or 0, whole=self.epochs is not None)

    def steps_per_user(self, n_users: int, rounds: int) -> int:
        """About how many steps a user took part in, in a training that kept what it had after so many rounds."""
        if self.epochs is not None:
            return min(self.epochs, rounds)
        return max(1, round(min(self.iterations or 0, rounds) * batch_count(self.batch_size, n_users) / n_users))
