"""Users as histories: no free user vector, but a weighted sum of vectors of the items in the user's list.

    s_u  = c_u sum_{j in I_u} (y_j + e_uj x_j)                 y_j "rated at all", x_j scaled by the residual rating e_uj
    f_i  = b_i + < s_u - c_u (y_i + e_ui x_i), q_i >           training rows: leave-one-out, c_u = (m - 1)^-h
    f_i  = b_i + < s_u, q_i >                                  any other item,               c_u = m^-h

Rows may count less than others: with a strength rho_uj, (y_j + e_uj x_j) is rho_uj (y_j + e_uj x_j) throughout.
Leave-one-out is essential: otherwise an item's score would hold its own rating. Backward, with g = sum_i c_u G_i q_i:

    dL/dq_i = G_i (s_u - c_u (y_i + e_ui x_i)),  dL/db_i = G_i,  dL/dy_j = g - c_u G_j q_j,  dL/dx_j = e_uj dL/dy_j

An item sampled into the list has no own part there; a row of the history that is not in the list has G = 0.

In the family of SVD++ and FISM (Koren 2008; Kabbur et al. 2013), which the paper's factors do not have. A user never
seen in training needs nothing but a history.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int64Array, IntArray
from topnrank.errors import ParameterError
from topnrank.scorers.base import Parameters, UserRows, normal


@dataclass(frozen=True)
class History:
    """Item vectors q, history vectors y and x, item bias b; all state is on the item side."""

    factors: int
    init: float | str = 0.03
    """Standard deviation of q's start values; y and x start at a fifth of it."""
    exponent: float = 0.6
    """h: how a sum over a long history is scaled down."""
    channels: int = 1
    """Vectors x of an item: one, scaled by e, or one for each type of feedback."""

    user_block: ClassVar[str | None] = None
    history_blocks: ClassVar[frozenset[str]] = frozenset({"history_factors", "rating_factors"})

    def initialize(self, n_users: int, n_items: int, seed: int) -> Parameters:
        """Small random vectors, zero bias."""
        if isinstance(self.init, str):
            raise ParameterError(
                f"init={self.init!r} goes with user_representation='factors'; with user_representation='history' give a number"
            )
        shape = (n_items, self.factors)
        return {
            "item_factors": normal(seed, "item_factors", shape, self.init),
            "history_factors": normal(seed, "history_factors", shape, self.init / 5),
            "rating_factors": normal(seed, "rating_factors", (n_items, self.channels * self.factors), self.init / 5),
            "item_bias": np.zeros(n_items, np.float32),
        }

    def scale(self, size: int) -> float:
        """c for a history of `size` items; an empty one counts nothing."""
        return float(size) ** -self.exponent if size > 0 else 0.0

    def scores(self, parameters: Parameters, visited: UserRows) -> Float64Array:
        """Scores of the user's list, own rows leave-one-out."""
        items = visited.items[visited.first :]
        dots = np.einsum("ik,ik->i", self._others(parameters, visited), parameters["item_factors"][items])
        return np.asarray(dots + parameters["item_bias"][items])

    def user_gradient(self, parameters: Parameters, visited: UserRows, G: Float64Array) -> Float64Array:
        """Nothing: there is no user vector."""
        return np.empty(0)

    def item_gradients(
        self, parameters: Parameters, visited: UserRows, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """q and b follow G_item; the history vectors y and x, being the user's side, follow G_user."""
        q = parameters["item_factors"][visited.items]
        G = np.concatenate([np.zeros(visited.first), G_user])  # rows of the history only have no score
        pushed = (self._scales(visited) * G)[:, None] * q
        gradient = visited.recency_weights[:, None] * (pushed.sum(axis=0) - pushed[: visited.own])
        return {
            "item_factors": G_item[:, None] * self._others(parameters, visited),
            "history_factors": gradient,
            "rating_factors": _outer(visited.residuals[: visited.own], gradient),
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
        x = parameters["rating_factors"][items].astype(np.float64).reshape(len(items), self.channels, self.factors)
        return np.asarray(parameters["history_factors"][items] + np.einsum("nb,nbk->nk", residuals, x))

    def _scales(self, visited: UserRows) -> Float64Array:
        """(n,) c of each row: of the history without it for own rows, of the whole history for sampled ones."""
        own, sampled = visited.own, visited.items.size - visited.own
        return np.repeat([self.scale(own - 1), self.scale(own)], [own, sampled])

    def _others(self, parameters: Parameters, visited: UserRows) -> Float64Array:
        """(m, k) c_u times the history's sum without each list item's own part."""
        history = visited.items[: visited.own]
        parts = np.zeros((visited.items.size, self.factors))
        parts[: visited.own] = self.parts(parameters, history, visited.residuals[: visited.own])
        parts[: visited.own] *= visited.recency_weights[:, None]
        others = self._scales(visited)[:, None] * (parts.sum(axis=0) - parts)
        return np.asarray(others[visited.first :])


def _outer(residuals: FloatArray, gradient: Float64Array) -> Float64Array:
    """(n, channels * k) the gradients of the vectors x of each row, one after another."""
    return (residuals[:, :, None] * gradient[:, None, :]).reshape(len(gradient), -1)


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
        mean = float(ratings.mean(dtype=np.float64))
        return cls.of_sums(cls.sums(indptr, items, ratings, mean, n_items), mean)

    @classmethod
    def sums(
        cls, indptr: IntArray, items: IntArray, ratings: FloatArray, mean: float, n_items: int
    ) -> tuple[Int64Array, Float64Array]:
        """Of some users' rows: (n_items,) how many each item has, and the sum of their d; `mean` is that of all rows."""
        values = ratings.astype(np.float64)
        deviations = values - cls._user_means(indptr, values, mean)
        counts = np.bincount(items, minlength=n_items).astype(np.int64)
        return counts, np.asarray(np.bincount(items, weights=deviations, minlength=n_items), np.float64)

    @classmethod
    def of_sums(cls, sums: tuple[Int64Array, Float64Array], mean: float) -> "RatingResiduals":
        """The residuals by the sums over all users' rows, whose mean is `mean`."""
        counts, deviations = sums
        offsets = deviations / (counts + cls.ITEM_DAMPING)
        return cls(offsets.astype(np.float32), mean - float(counts @ offsets) / float(counts.sum()))

    def of(self, indptr: IntArray, items: IntArray, ratings: FloatArray) -> Float32Array:
        """(n, 1) residuals e of lists given as CSR; also of users never seen."""
        values = ratings.astype(np.float64) - self.offsets[items]
        return np.asarray((values - self._user_means(indptr, values, self.mean))[:, None], np.float32)

    @classmethod
    def _user_means(cls, indptr: IntArray, values: Float64Array, overall: float) -> Float64Array:
        sizes = np.diff(indptr)
        sums = np.bincount(np.repeat(np.arange(sizes.size), sizes), weights=values, minlength=sizes.size)
        return np.repeat((sums + cls.USER_DAMPING * overall) / (sizes + cls.USER_DAMPING), sizes)


@dataclass(frozen=True)
class TypeChannels:
    """Each type of feedback has a history vector of its own: e_uj is 1 in the channel of the row's type, else 0.

    A row is known by its weight: its type is the one whose weight is nearest, of equally near ones the first.
    """

    weights: tuple[float, ...]
    """Weight of each type"""

    def of(self, indptr: IntArray, items: IntArray, values: FloatArray) -> Float32Array:
        """(n, channels) ones and zeros."""
        nearest = np.abs(np.asarray(values, np.float64)[:, None] - np.array(self.weights)).argmin(axis=1)
        return np.asarray(np.eye(len(self.weights))[nearest], np.float32)
