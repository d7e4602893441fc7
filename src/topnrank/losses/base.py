"""What an objective is: a loss on the scores of one user's list, without parameters of the model."""

from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Float64Array


class ListGradient(NamedTuple):
    """Loss and score gradients of one list of m items."""

    value: float
    """The loss L_u, to be minimized."""
    user: Float64Array
    """(m,) G_user: the gradient for the user's parameters."""
    item: Float64Array
    """(m,) G_item: the gradient for the items' own parameters; equals `user` unless the method departs from it."""
    active: int
    """Items that still count, for example those with smooth rank R < N: the "effective N" of the list."""


class ListContext(NamedTuple):
    """The context of one evaluation of a list: its sampled items, its random draws, and the progress of training."""

    sampled: int = 0
    """Number of rows at the end of the list that are unobserved items, sampled for this step; their gains are 0."""
    weight: float | Float64Array = 1.0
    """How many unobserved items each sampled row stands for: one number, or (sampled,) numbers."""
    key: int = 0
    """Key of the random draws: equal keys give equal draws (`rng.uniforms`)."""
    progress: float = 1.0
    """Fraction of training that is done, from 0 at the first step to 1 at the last."""


PLAIN_CONTEXT = ListContext()
"""Nothing sampled, nothing drawn, training at its end."""


class Objective(Protocol):
    """A loss on the scores f and gains a of one list; a pure function."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and score gradients of one list; `scores` and `gains` have shape (m,)."""
        ...


def evaluate_list(
    objective: Objective, scores: Float64Array, gains: Float64Array, context: ListContext
) -> ListGradient:
    """`objective.evaluate` for a list that may be empty; objectives themselves get at least one item."""
    if scores.size == 0:
        return ListGradient(0.0, np.empty(0), np.empty(0), 0)
    return objective.evaluate(scores, gains, context)
