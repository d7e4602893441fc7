"""What a scorer is: the only thing that knows parameters."""

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.rng import stream

Parameters = dict[str, FloatArray]
"""Blocks of parameters by name; row k of a block belongs to user or item k."""


class Rows(NamedTuple):
    """Training lists of all users, CSR."""

    indptr: Int64Array
    """(n_users + 1,)"""
    items: Int32Array
    """(n_rows,)"""
    gains: Float32Array
    """(n_rows,) a, the weight of each row"""
    residuals: Float32Array
    """(n_rows,) e, rating residuals for the history scorer; empty for others"""

    def of(self, user: int) -> slice:
        """The rows of one user."""
        return slice(int(self.indptr[user]), int(self.indptr[user + 1]))


class Rule(NamedTuple):
    """How one block of parameters steps: plain descent, or AdaGrad on the batch's sum."""

    adagrad: bool
    rate: float
    """0 keeps the block as it is"""
    decay: float
    """2 lambda: times the parameter, added to its gradient at each visit"""


class Scorer(Protocol):
    """A model's representation: scores of a list, and where a score gradient goes."""

    user_block: ClassVar[str | None]
    """Name of the block with one row per user, which steps before the items do; None without free user vectors."""

    def initialise(self, n_users: int, n_items: int, seed: int) -> Parameters:
        """Float32 start values of all blocks, drawn from streams keyed by `seed`."""
        ...

    def scores(self, parameters: Parameters, rows: Rows, user: int) -> Float64Array:
        """(m,) scores f of the user's training list."""
        ...

    def user_gradient(self, parameters: Parameters, rows: Rows, user: int, G: Float64Array) -> Float64Array:
        """(k,) gradient of the user's row of `user_block`."""
        ...

    def item_gradients(
        self, parameters: Parameters, rows: Rows, user: int, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """Gradients by block, each with one row per item of the user's list."""
        ...


def normal(seed: int, block: str, shape: tuple[int, ...], deviation: float) -> Float32Array:
    """Start values N(0, deviation^2) of a block."""
    return (deviation * stream(seed, block).standard_normal(shape, np.float32)).astype(np.float32)
