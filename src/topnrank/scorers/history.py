"""Users as histories: no free user vector, but a weighted sum of vectors of the items in the user's list.

    s_u  = c_u sum_{j in I_u} (y_j + e_uj x_j)                 y_j "rated at all", x_j scaled by the residual rating e_uj
    f_i  = b_i + < s_u - c_u (y_i + e_ui x_i), q_i >           training rows: leave-one-out, c_u = (m - 1)^-h
    f_i  = b_i + < s_u, q_i >                                  any other item,               c_u = m^-h

Rows may count less than others: with a recency weight rho_uj, (y_j + e_uj x_j) is rho_uj (y_j + e_uj x_j) throughout.
Leave-one-out is essential: otherwise an item's score would hold its own rating. Backward, with g = sum_i c_u G_i q_i:

    dL/dq_i = G_i (s_u - c_u (y_i + e_ui x_i)),  dL/db_i = G_i,  dL/dy_j = g - c_u G_j q_j,  dL/dx_j = e_uj dL/dy_j

An item sampled into the list has no self term; a row of the history that is not in the list has G = 0.

In the family of SVD++ and FISM (Koren 2008; Kabbur et al. 2013), not part of the paper. A user not seen in training
needs only a history.
"""

from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int64Array, IntArray
from topnrank.errors import ParameterError
from topnrank.scorers.base import Parameters, UserRows, normal

blocks_in_order = itemgetter("item_factors", "history_factors", "rating_factors", "item_bias")
"""The blocks of parameters as the kernels take them: `HistoryState(*blocks_in_order(parameters))`."""


@dataclass(frozen=True)
class History:
    """Item vectors q, history vectors y and x, item bias b; all state is on the item side."""

    factors: int
    init: float | str = 0.03
    """Standard deviation of q's start values; y and x start at a fifth of it."""
    exponent: float = 0.6
    """h: how a sum over a long history is scaled down."""

    user_block: ClassVar[str | None] = None
    history_blocks: ClassVar[frozenset[str]] = frozenset({"history_factors", "rating_factors"})

    def initialize(self, n_users: int, n_items: int, seed: int, channels: int = 1) -> Parameters:
        """Small random vectors, zero bias; an item has one vector x, scaled by e, or one for each type of feedback."""
        if isinstance(self.init, str):
            raise ParameterError(
                f"init={self.init!r} needs user_representation='factors'; with user_representation='history' give a number"
            )
        shape = (n_items, self.factors)
        return {
            "item_factors": normal(seed, "item_factors", shape, self.init),
            "history_factors": normal(seed, "history_factors", shape, self.init / 5),
            "rating_factors": normal(seed, "rating_factors", (n_items, channels * self.factors), self.init / 5),
            "item_bias": np.zeros(n_items, np.float32),
        }

    def scale(self, size: int) -> float:
        """c for a history of `size` items; 0 for an empty one."""
        return float(size) ** -self.exponent if size > 0 else 0.0

    def scores(self, parameters: Parameters, rows: UserRows) -> Float64Array:
        """Scores of the user's list, own rows leave-one-out."""
        items = rows.items[rows.first :]
        dots = np.einsum("ik,ik->i", self._others(parameters, rows), parameters["item_factors"][items])
        return np.asarray(dots + parameters["item_bias"][items])

    def user_gradient(self, parameters: Parameters, rows: UserRows, G: Float64Array) -> Float64Array:
        """Empty: there is no user vector."""
        return np.empty(0)

    def item_gradients(
        self, parameters: Parameters, rows: UserRows, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """q and b follow G_item; the history vectors y and x, being the user's side, follow G_user."""
        q = parameters["item_factors"][rows.items]
        G = np.concatenate([np.zeros(rows.first), G_user])  # rows of the history only have no score
        pushed = (self._scales(rows) * G)[:, None] * q
        gradient = rows.recency_weights[:, None] * (pushed.sum(axis=0) - pushed[: rows.own])
        return {
            "item_factors": G_item[:, None] * self._others(parameters, rows),
            "history_factors": gradient,
            "rating_factors": _outer(rows.residuals[: rows.own], gradient),
            "item_bias": G_item,
        }

    def vector(
        self, parameters: Parameters, items: IntArray, residuals: FloatArray, recency_weights: FloatArray
    ) -> Float64Array:
        """s_u of a history, for items outside it."""
        parts = recency_weights[:, None] * self.parts(parameters, items, residuals)
        return np.asarray(self.scale(items.size) * parts.sum(axis=0, dtype=np.float64))

    def parts(self, parameters: Parameters, items: IntArray, residuals: FloatArray) -> Float64Array:
        """(n, k) y_j + sum_b e_jb x_jb of items with residuals (n, channels)."""
        x = parameters["rating_factors"][items].astype(np.float64).reshape(*residuals.shape, self.factors)
        return np.asarray(parameters["history_factors"][items] + np.einsum("nb,nbk->nk", residuals, x))

    def _scales(self, rows: UserRows) -> Float64Array:
        """(n,) c of each row: of the history without it for own rows, of the whole history for sampled ones."""
        own, sampled = rows.own, rows.items.size - rows.own
        return np.repeat([self.scale(own - 1), self.scale(own)], [own, sampled])

    def _others(self, parameters: Parameters, rows: UserRows) -> Float64Array:
        """(m, k) c_u times the history's sum without each list item's self term."""
        history = rows.items[: rows.own]
        parts = np.zeros((rows.items.size, self.factors))
        parts[: rows.own] = self.parts(parameters, history, rows.residuals[: rows.own])
        parts[: rows.own] *= rows.recency_weights[:, None]
        others = self._scales(rows)[:, None] * (parts.sum(axis=0) - parts)
        return np.asarray(others[rows.first :])


def _outer(residuals: FloatArray, gradient: Float64Array) -> Float64Array:
    """(n, channels * k) the gradients of the vectors x of each row, one after another."""
    return (residuals[:, :, None] * gradient[:, None, :]).reshape(len(gradient), -1)


class DeviationSums(NamedTuple):
    """Per item, the number of rows and the sum of their d_ui (`RatingResiduals`), (n_items,) each."""

    counts: Int64Array
    deviations: Float64Array


@dataclass(frozen=True)
class RatingResiduals:
    """Residuals of ratings, after the mean of the user and the offset of the item.

        d_ui = r_ui - (damped mean of u),   o_i = sum_u d_ui / (n_i + 5),   e_ui = (r_ui - o_i) - (its damped mean over u)

    Means of a user are damped by 3 pseudo-ratings at the overall mean, so that short lists lean on it. Ratings count in
    units of their scale, r standing for rating / unit.
    """

    offsets: Float32Array
    """(n_items,) o_i"""
    mean: float
    """Overall mean of r - o"""
    unit: float = 1.0

    USER_DAMPING: ClassVar[float] = 3.0
    ITEM_DAMPING: ClassVar[float] = 5.0

    @classmethod
    def sums(cls, indptr: IntArray, items: IntArray, values: Float64Array, mean: float, n_items: int) -> DeviationSums:
        """Sums over some users' ratings in units; `mean` is that of all rows."""
        deviations = values - cls._user_means(indptr, values, mean)
        counts = np.bincount(items, minlength=n_items).astype(np.int64)
        return DeviationSums(counts, np.bincount(items, weights=deviations, minlength=n_items).astype(np.float64))

    @classmethod
    def of_sums(cls, sums: DeviationSums, mean: float, unit: float = 1.0) -> "RatingResiduals":
        """Residuals from the sums over all users' rows, whose mean rating in units is `mean`."""
        counts, deviations = sums
        offsets = deviations / (counts + cls.ITEM_DAMPING)
        return cls(offsets.astype(np.float32), mean - float(counts @ offsets) / float(counts.sum()), unit)

    def of(self, indptr: IntArray, items: IntArray, ratings: FloatArray) -> Float32Array:
        """(n, 1) residuals e of lists given as CSR, also of users not in training."""
        values = ratings.astype(np.float64) / self.unit - self.offsets[items]
        return np.asarray((values - self._user_means(indptr, values, self.mean))[:, None], np.float32)

    @classmethod
    def _user_means(cls, indptr: IntArray, values: Float64Array, overall: float) -> Float64Array:
        sizes = np.diff(indptr)
        sums = np.bincount(np.repeat(np.arange(sizes.size), sizes), weights=values, minlength=sizes.size)
        return np.repeat((sums + cls.USER_DAMPING * overall) / (sizes + cls.USER_DAMPING), sizes)


@dataclass(frozen=True)
class TypeChannels:
    """A history vector for each type of feedback: e_uj is 1 in the channel of the row's type, else 0.

    The type of a row is the one whose weight is nearest to the row's, of equally near ones the first.
    """

    weights: tuple[float, ...]
    """Weight of each type"""

    def of(self, indptr: IntArray, items: IntArray, values: FloatArray) -> Float32Array:
        """(n, channels) ones and zeros."""
        nearest = np.abs(np.asarray(values, np.float64)[:, None] - np.array(self.weights)).argmin(axis=1)
        return np.asarray(np.eye(len(self.weights))[nearest], np.float32)
