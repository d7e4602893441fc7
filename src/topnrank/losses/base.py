"""What an objective is: a loss on the scores of one user's list, and nothing about parameters."""

from typing import NamedTuple, Protocol

import numpy as np

from topnrank._typing import Float64Array


class ListGradient(NamedTuple):
    """What an objective says about one list of m items."""

    value: float
    """The loss L_u, to be minimized."""
    user: Float64Array
    """(m,) G_user: gradient that flows into the user's side."""
    item: Float64Array
    """(m,) G_item: gradient that flows into the items' own parameters; equals `user` unless the method departs from it."""
    active: int
    """Items that still count, for example those with smooth rank R < N: the "effective N" of the list."""


class ListContext(NamedTuple):
    """What one visit of a list adds to its scores and gains: sampled items, random draws, and how far training is."""

    sampled: int = 0
    """So many rows at the end of the list are items the user never observed, drawn for this visit; their gains are 0."""
    weight: float | Float64Array = 1.0
    """How many unobserved items each sampled row stands for: one number, or (sampled,) numbers."""
    key: int = 0
    """Names the random draws of this visit: equal keys give equal draws (`rng.uniforms`)."""
    progress: float = 1.0
    """Share of the training that is done, from 0 at the first visit to 1 at the last."""


PLAIN_CONTEXT = ListContext()
"""Nothing sampled, nothing drawn, training at its end."""


class Objective(Protocol):
    """A loss on the scores f and gains a of one list; pure, without parameters of the model."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and score gradients of one list; `scores` and `gains` have shape (m,)."""
        ...


def evaluate_list(
    objective: Objective, scores: Float64Array, gains: Float64Array, context: ListContext
) -> ListGradient:
    """What `objective` says about a list that may be empty: objectives themselves see at least one item."""
    if scores.size == 0:
        return ListGradient(0.0, np.empty(0), np.empty(0), 0)
    return objective.evaluate(scores, gains, context)
