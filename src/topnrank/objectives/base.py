"""What an objective is: a loss on the scores of one user's list, and nothing about parameters."""

from typing import NamedTuple, Protocol

from topnrank._typing import Float64Array


class ListGradient(NamedTuple):
    """What an objective says about one list of m items."""

    value: float
    """The loss L_u, to be minimised."""
    user: Float64Array
    """(m,) G_user: gradient that flows into the user's side."""
    item: Float64Array
    """(m,) G_item: gradient that flows into the items' own parameters; equals `user` unless the method departs from it."""
    active: int
    """Items that still count, for example those with smooth rank R < N: the "effective N" of the list."""


class Objective(Protocol):
    """A loss on the scores f and gains a of one list; pure, without parameters of the model."""

    def evaluate(self, scores: Float64Array, gains: Float64Array) -> ListGradient:
        """Loss and score gradients of one list; `scores` and `gains` have shape (m,)."""
        ...
