"""What a scorer is: the only thing that knows parameters."""

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.rng import stream

Parameters = dict[str, FloatArray]
"""Blocks of parameters by name; row k of a block belongs to user or item k."""
ALL_LISTED: BoolArray = np.empty(0, np.bool_)
"""Stands for "all rows are listed"."""
NO_NEIGHBOR_SCORES: Float32Array = np.empty(0, np.float32)
"""Stands for "there are no neighbors"."""
NO_RESIDUALS: Float32Array = np.empty((0, 1), np.float32)
"""For scorers without histories."""
EQUAL_RECENCY: Float32Array = np.empty(0, np.float32)
"""Stands for "all rows of a history count alike"."""


class TrainingLists(NamedTuple):
    """Training lists of all users, CSR."""

    indptr: Int64Array
    """(n_users + 1,)"""
    items: Int32Array
    """(n_rows,)"""
    gains: Float32Array
    """(n_rows,) a, the weight of each row"""
    residuals: Float32Array
    """(n_rows, channels) e, what the history scorer knows of a row beside its item; empty for others"""
    listed: BoolArray = ALL_LISTED
    """(n_rows,) whether the row enters the user's list or only the history; empty when all do"""
    neighbor_scores: Float32Array = NO_NEIGHBOR_SCORES
    """(n_rows,) z, what the neighbors say of the row when its user is left out; empty without neighbors"""
    recency_weights: Float32Array = EQUAL_RECENCY
    """(n_rows,) rho, how much a row counts in the user's history; empty when all count 1"""

    def of(self, user: int) -> slice:
        """The rows of one user."""
        return slice(int(self.indptr[user]), int(self.indptr[user + 1]))


NO_ROWS = TrainingLists(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), NO_RESIDUALS)
"""Lists of nobody, where the real ones are elsewhere."""


class UserRows(NamedTuple):
    """One user's rows as they are visited: those of the history only | own rows of the list | items sampled for it."""

    user: int
    items: Int32Array
    """(n,)"""
    gains: Float64Array
    """(n,) 0 for sampled rows"""
    residuals: Float64Array
    """(n, channels) 0 for sampled rows; or empty"""
    first: int
    """Where the list begins"""
    own: int
    """Where the user's own rows end; those before are the history"""
    weights: Float64Array
    """(n - own,) how many unobserved items each sampled row stands for"""
    recency_weights: Float64Array
    """(own,) rho of the history's rows"""


class UpdateRule(NamedTuple):
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
    history_blocks: ClassVar[frozenset[str]]
    """Blocks whose rows belong to the items of the user's history; all others belong to the items of the list."""

    def initialize(self, n_users: int, n_items: int, seed: int) -> Parameters:
        """Float32 start values of all blocks, drawn from streams keyed by `seed`."""
        ...

    def scores(self, parameters: Parameters, visited: UserRows) -> Float64Array:
        """(m,) scores f of the user's list."""
        ...

    def user_gradient(self, parameters: Parameters, visited: UserRows, G: Float64Array) -> Float64Array:
        """(k,) gradient of the user's row of `user_block`."""
        ...

    def item_gradients(
        self, parameters: Parameters, visited: UserRows, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """Gradients by block, one row per item of the list, or of the history for `history_blocks`."""
        ...


def normal(seed: int, block: str, shape: tuple[int, ...], deviation: float) -> Float32Array:
    """Start values N(0, deviation^2) of a block."""
    return (deviation * stream(seed, block).standard_normal(shape, np.float32)).astype(np.float32)
