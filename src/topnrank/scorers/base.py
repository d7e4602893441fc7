"""What a scorer is: it maps parameters to scores, and score gradients to parameter gradients."""

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.rng import stream

Parameters = dict[str, FloatArray]
"""Blocks of parameters by name; row k of a block belongs to user or item k."""

ALL_LISTED: BoolArray = np.empty(0, np.bool_)
"""Empty: all rows are listed."""
NO_NEIGHBOR_SCORES: Float32Array = np.empty(0, np.float32)
"""Empty: there are no neighbors."""
NO_RESIDUALS: Float32Array = np.empty((0, 1), np.float32)
"""Empty: the scorer has no histories."""
EQUAL_RECENCY: Float32Array = np.empty(0, np.float32)
"""Empty: all rows of a history have weight 1."""


class TrainingLists(NamedTuple):
    """Training lists of all users, CSR.

    An optional array is empty where it does not apply, since kernels take no None.
    """

    indptr: Int64Array
    """(n_users + 1,)"""
    items: Int32Array
    """(n_rows,)"""
    gains: Float32Array
    """(n_rows,) a, the weight of each row"""
    residuals: Float32Array
    """(n_rows, channels) e, the values that scale the vectors x of the history scorer; empty for other scorers"""
    listed: BoolArray = ALL_LISTED
    """(n_rows,) whether the row enters the user's list or only the history; empty if all do"""
    neighbor_scores: Float32Array = NO_NEIGHBOR_SCORES
    """(n_rows,) z, the neighbor score of the row with its user left out; empty without neighbors"""
    recency_weights: Float32Array = EQUAL_RECENCY
    """(n_rows,) rho, the weight of a row in the user's history; empty if all are 1"""

    def of(self, user: int) -> slice:
        """The rows of one user."""
        return slice(int(self.indptr[user]), int(self.indptr[user + 1]))


NO_ROWS = TrainingLists(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), NO_RESIDUALS)
"""Lists of no user, where the engine does not hold the real ones."""


class UserRows(NamedTuple):
    """One user's rows in a step: those of the history only | own rows of the list | items sampled for the list."""

    user: int
    items: Int32Array
    """(n,)"""
    gains: Float64Array
    """(n,) 0 for sampled rows"""
    residuals: Float64Array
    """(n, channels) 0 for sampled rows; or empty"""
    first: int
    """Position where the list begins"""
    own: int
    """Position where the user's own rows end and the sampled ones begin; the rows before it are the history"""
    weights: Float64Array
    """(n - own,) how many unobserved items each sampled row stands for"""
    recency_weights: Float64Array
    """(own,) rho of the history's rows"""


class UpdateRule(NamedTuple):
    """How one block of parameters is updated: plain gradient descent, or AdaGrad on the batch's sum."""

    adagrad: bool
    rate: float
    """Learning rate; 0 keeps the block as it is"""
    decay: float
    """2 lambda: times the parameter, added to its gradient in each step"""


class Scorer(Protocol):
    """A model's representation: scores of a list, and the way from a score gradient to the parameters."""

    user_block: ClassVar[str | None]
    """Name of the block with one row per user, which is updated before the items; None without free user vectors."""
    history_blocks: ClassVar[frozenset[str]]
    """Blocks whose rows belong to the items of the user's history; all others belong to the items of the list."""

    def initialize(self, n_users: int, n_items: int, seed: int, channels: int = 1) -> Parameters:
        """Float32 start values of all blocks, drawn from streams keyed by `seed`; `channels` are those of the residuals."""
        ...

    def scores(self, parameters: Parameters, rows: UserRows) -> Float64Array:
        """(m,) scores f of the user's list."""
        ...

    def user_gradient(self, parameters: Parameters, rows: UserRows, G: Float64Array) -> Float64Array:
        """(k,) gradient of the user's row of `user_block`."""
        ...

    def item_gradients(
        self, parameters: Parameters, rows: UserRows, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """Gradients by block, one row per item of the list, or of the history for `history_blocks`."""
        ...


def normal(seed: int, block: str, shape: tuple[int, ...], deviation: float) -> Float32Array:
    """Start values N(0, deviation^2) of a block."""
    return (deviation * stream(seed, block).standard_normal(shape, np.float32)).astype(np.float32)
