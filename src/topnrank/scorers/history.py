"""Users as histories: no free user vector, but a weighted sum of vectors of the items in the user's list.

    s_u  = c_u sum_{j in I_u} (y_j + e_uj x_j)                 y_j "rated at all", x_j scaled by the residual rating e_uj
    f_i  = b_i + < s_u - c_u (y_i + e_ui x_i), q_i >           training rows: leave-one-out, c_u = (m - 1)^-h
    f_i  = b_i + < s_u, q_i >                                  any other item,               c_u = m^-h

Leave-one-out is essential: otherwise an item's score would hold its own rating. Backward, with g = sum_i G_i q_i:

    dL/dq_i = G_i (s_u - c_u (y_i + e_ui x_i)),  dL/db_i = G_i,  dL/dy_j = c_u (g - G_j q_j),  dL/dx_j = e_uj dL/dy_j

In the family of SVD++ and FISM (Koren 2008; Kabbur et al. 2013), which the paper's factors do not have. A user never
seen in training needs nothing but a history.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, IntArray
from topnrank.errors import ParameterError
from topnrank.scorers.base import Parameters, Rows, normal


@dataclass(frozen=True)
class History:
    """Item vectors q, history vectors y and x, item bias b; all state is on the item side."""

    factors: int
    init: float | str = 0.03
    """Standard deviation of q's start values; y and x start at a fifth of it."""
    exponent: float = 0.6
    """h: how a sum over a long history is scaled down."""

    user_block: ClassVar[str | None] = None

    def initialise(self, n_users: int, n_items: int, seed: int) -> Parameters:
        """Small random vectors, zero bias."""
        if isinstance(self.init, str):
            raise ParameterError(f"init={self.init!r} goes with users='factors'; with users='history' give a number")
        shape = (n_items, self.factors)
        return {
            "item_factors": normal(seed, "item_factors", shape, self.init),
            "history_factors": normal(seed, "history_factors", shape, self.init / 5),
            "rating_factors": normal(seed, "rating_factors", shape, self.init / 5),
            "item_bias": np.zeros(n_items, np.float32),
        }

    def scale(self, size: int) -> float:
        """c for a history of `size` items; an empty one counts nothing."""
        return float(size) ** -self.exponent if size > 0 else 0.0

    def scores(self, parameters: Parameters, rows: Rows, user: int) -> Float64Array:
        """Leave-one-out scores of the user's training list."""
        items = rows.items[rows.of(user)]
        others = self._others(parameters, rows, user)
        dots = np.einsum("ik,ik->i", others, parameters["item_factors"][items])
        return np.asarray(dots + parameters["item_bias"][items])

    def user_gradient(self, parameters: Parameters, rows: Rows, user: int, G: Float64Array) -> Float64Array:
        """Nothing: there is no user vector."""
        return np.empty(0)

    def item_gradients(
        self, parameters: Parameters, rows: Rows, user: int, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """q and b follow G_item; the history vectors y and x, being the user's side, follow G_user."""
        q = parameters["item_factors"][rows.items[rows.of(user)]]
        pull = self.scale(G_user.size - 1) * (G_user @ q - G_user[:, None] * q)
        return {
            "item_factors": G_item[:, None] * self._others(parameters, rows, user),
            "history_factors": pull,
            "rating_factors": rows.residuals[rows.of(user), None] * pull,
            "item_bias": G_item,
        }

    def vector(self, parameters: Parameters, items: IntArray, residuals: FloatArray) -> Float64Array:
        """s_u of a history, for items outside it."""
        parts = parameters["history_factors"][items] + residuals[:, None] * parameters["rating_factors"][items]
        return np.asarray(self.scale(items.size) * parts.sum(axis=0, dtype=np.float64))

    def _others(self, parameters: Parameters, rows: Rows, user: int) -> Float64Array:
        """(m, k) s_u without each item's own part."""
        items = rows.items[rows.of(user)]
        own = parameters["history_factors"][items].astype(np.float64)
        own += rows.residuals[rows.of(user), None] * parameters["rating_factors"][items]
        return np.asarray(self.scale(items.size - 1) * (own.sum(axis=0) - own))


@dataclass(frozen=True)
class RatingResiduals:
    """What a rating says beyond the habits of its user and the standing of its item.

        d_ui = r_ui - (damped mean of u),   o_i = sum_u d_ui / (n_i + 5),   e_ui = (r_ui - o_i) - (its damped mean over u)

    Means of a user are damped by 3 pseudo-ratings at the overall mean, so that short lists lean on it.
    """

    offsets: Float32Array
    """(n_items,) o_i"""
    mean: float
    """Overall mean of r - o"""

    USER_DAMPING: ClassVar[float] = 3.0
    ITEM_DAMPING: ClassVar[float] = 5.0

    @classmethod
    def fit(cls, indptr: IntArray, items: IntArray, ratings: FloatArray, n_items: int) -> "RatingResiduals":
        """Item offsets from the training rows."""
        values = ratings.astype(np.float64)
        deviations = values - cls._user_means(indptr, values, float(values.mean()))
        counts = np.bincount(items, minlength=n_items)
        offsets = np.bincount(items, weights=deviations, minlength=n_items) / (counts + cls.ITEM_DAMPING)
        return cls(offsets.astype(np.float32), float((values - offsets[items]).mean()))

    def of(self, indptr: IntArray, items: IntArray, ratings: FloatArray) -> Float32Array:
        """Residuals e of lists given as CSR; also of users never seen."""
        values = ratings.astype(np.float64) - self.offsets[items]
        return (values - self._user_means(indptr, values, self.mean)).astype(np.float32)

    @classmethod
    def _user_means(cls, indptr: IntArray, values: Float64Array, overall: float) -> Float64Array:
        sizes = np.diff(indptr)
        sums = np.bincount(np.repeat(np.arange(sizes.size), sizes), weights=values, minlength=sizes.size)
        return np.repeat((sums + cls.USER_DAMPING * overall) / (sizes + cls.USER_DAMPING), sizes)
