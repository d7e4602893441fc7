"""EASE: a ridge regression of every item on all others, in closed form (Steck 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, final

import numpy as np

from topnrank._csr import indptr_from_counts, masked_indptr, row_owner
from topnrank._memory import require_memory
from topnrank._typing import BoolArray, Float32Array, FloatArray, Int32Array, Int64Array, IntArray
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, DivergenceError
from topnrank.evaluation.held_out import FEWEST_USERS, JUDGED_BY, HeldOut
from topnrank.evaluation.splits import hold_out
from topnrank.models.base import Fitted
from topnrank.models.linear import _ease_kernel as linear
from topnrank.models.linear.choice import ChosenRidge, best_penalty
from topnrank.models.linear.likes import LikesModel
from topnrank.models.parameters import (
    AUTO,
    FLAG,
    POSITIVE,
    Range,
    Space,
    integer,
    param,
)

USUAL_PENALTY = 400.0
_BLOCK = 512
"""Rows that are mirrored at a time."""


def invert_in_place(matrix: FloatArray) -> None:
    """Overwrites a symmetric positive definite matrix, (m, m) in C order, with its inverse, by Cholesky (LAPACK)."""
    from scipy.linalg import get_lapack_funcs

    factor, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    # LAPACK is column-major: its lower triangle of the transposed view is the upper one here.
    triangle, failed = factor(matrix.T, lower=1, clean=0, overwrite_a=1)
    if not failed:
        triangle, failed = invert(triangle, lower=1, overwrite_c=1)
    if failed:
        raise DivergenceError(
            "the system cannot be solved in single precision: the regularization is too small for these data; set it higher"
        )
    if not np.shares_memory(triangle, matrix):
        matrix.T[...] = triangle
    _mirror_upper(matrix)


def _mirror_upper(matrix: FloatArray) -> None:
    """Copies the upper triangle onto the lower one."""
    for first in range(0, len(matrix), _BLOCK):
        last = min(first + _BLOCK, len(matrix))
        matrix[first:last, :first] = matrix[:first, first:last].T
        square = matrix[first:last, first:last]
        below = np.tril_indices(last - first, -1)
        square[below] = square.T[below]


# ----------------------------------------------------------------------------------------------------
# The two forms of EASE: weights between items, or where there are fewer users than items a kernel between users.
#
# With Z the likes (and dislikes) of all users, z_j the column of the likes of item j and L the diagonal of penalties,
# P = (Z'Z + L)^-1. The regression of item j on all other columns has the weights B_ij = -P_ij / P_jj, i != j. Where users
# are fewer,
#
#     P = L^-1 - L^-1 Z' K Z L^-1,   K = (Z L^-1 Z' + I)^-1,
#
# so that with the leverage s_j = z_j' K z_j / lambda the scores of a user with the row z are, without a large matrix,
#
#     (v' z_j - z_uj s_j) / (1 - s_j),   v = K Z L^-1 z;   for a user u of the training rows v is column u of I - K.


SMALLEST = 1e-6
"""The least 1 - leverage: where rounding made it less, it is noise."""


class Penalties(NamedTuple):
    """lambda of the columns of likes and of dislikes."""

    likes: float
    dislikes: float


class Sparse(NamedTuple):
    """A sparse matrix by rows (CSR)."""

    indptr: Int64Array
    indices: Int64Array
    values: Float32Array

    def transposed(self, n_columns: int) -> "Sparse":
        """The same by columns."""
        order = np.argsort(self.indices, kind="stable")
        indptr = indptr_from_counts(np.bincount(self.indices, minlength=n_columns))
        return Sparse(indptr, row_owner(self.indptr)[order], self.values[order])


class Signed(NamedTuple):
    """The training rows of all users: likes with weights above 0, dislikes with weights below."""

    indptr: Int64Array
    indices: Int32Array
    weights: FloatArray
    n_items: int
    dislikes: bool
    """Whether dislikes count."""

    @classmethod
    def of(cls, weighted: Interactions, dislikes: bool) -> "Signed":
        """The rows of weighted data."""
        assert weighted.weights is not None
        return cls(weighted.indptr, weighted.indices, weighted.weights, weighted.n_items, dislikes)

    def features(self) -> Sparse:
        """The rows as predictors: item j is column j for a like and column n_items + j for a dislike."""
        columns = self.indices.astype(np.int64) + self.n_items * (self.weights < 0)
        return _chosen(self, self.weights != 0 if self.dislikes else self.weights > 0, columns)

    def likes(self) -> Sparse:
        """The rows that are predicted."""
        return _chosen(self, self.weights > 0, self.indices.astype(np.int64))


def _chosen(rows: Signed, kept: BoolArray, columns: Int64Array) -> Sparse:
    return Sparse(masked_indptr(rows.indptr, kept), columns[kept], np.abs(rows.weights[kept]).astype(np.float32))


def _check_square(arrays: Mapping[str, FloatArray], *names: str) -> None:
    """Kernels do not look where a row ends: a damaged file must not make them read beyond it."""
    for name in names:
        if arrays[name].shape != (len(arrays[name]),) * 2:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, which is not square")


@dataclass(frozen=True)
class ByItems:
    """Weights between items: `item_weights` (n_items, n_items), and `item_dislikes` of the same shape with dislikes."""

    rows: Signed
    penalties: Penalties
    arrays: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        _check_square(self.arrays, "item_weights", *(["item_dislikes"] if self.rows.dislikes else []))

    @staticmethod
    def solve(rows: Signed, penalties: Penalties) -> dict[str, FloatArray]:
        """B in the memory of the Gram matrix; row i holds what liking (or disliking) item i does to all others."""
        n_items = rows.n_items
        size = n_items * (2 if rows.dislikes else 1)
        features = rows.features()
        weights = np.zeros((size, size), np.float32)
        linear.gram(*features.transposed(size), *features, weights)
        weights.flat[:: size + 1] += np.repeat(penalties, n_items)[:size].astype(np.float32)
        invert_in_place(weights)
        scale = -weights.diagonal()[:n_items].copy()
        if rows.dislikes:
            weights = weights[:, :n_items].copy()
        weights /= scale
        np.fill_diagonal(weights[:n_items], 0.0)
        if not rows.dislikes:
            return {"item_weights": weights}
        return {"item_weights": weights[:n_items].copy(), "item_dislikes": weights[n_items:].copy()}

    def block(self, users: Int64Array) -> Float32Array:
        """(len(users), n_items) scores."""
        scores = np.empty((users.size, self.rows.n_items), np.float32)
        linear.add_item_rows(users, *self.rows[:3], *self._weights(), scores)
        return scores

    def pairs(self, users: Int64Array, items: Int64Array) -> Float32Array:
        """(len(users),) scores."""
        scores = np.empty(users.size, np.float32)
        linear.item_row_pairs(users, items, *self.rows[:3], *self._weights(), scores)
        return scores

    def history(self, items: Int64Array, weights: Float32Array) -> Float32Array:
        """(n_items,) scores of a user with these rows."""
        one = np.array([0, items.size], np.int64), items.astype(np.int32), weights
        scores = np.empty((1, self.rows.n_items), np.float32)
        linear.add_item_rows(np.zeros(1, np.int64), *one, *self._weights(), scores)
        return np.asarray(scores[0])

    def column(self, item: int) -> Float32Array:
        """(n_items,) what liking each item does to `item`."""
        return np.array(self._weights()[0][:, item], np.float32)

    def _weights(self) -> tuple[FloatArray, FloatArray]:
        liked = self.arrays["item_weights"]
        return liked, self.arrays.get("item_dislikes", np.empty((0, liked.shape[1]), np.float32))


@dataclass(frozen=True)
class ByUsers:
    """A kernel between users: `user_kernel` is K, `item_free` is 1 - s."""

    rows: Signed
    penalties: Penalties
    arrays: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        _check_square(self.arrays, "user_kernel")

    @staticmethod
    def solve(rows: Signed, penalties: Penalties) -> dict[str, FloatArray]:
        """K in the memory of the users' Gram matrix, and the leverages of the items."""
        features = rows.features()
        penalty = np.where(features.indices < rows.n_items, *penalties)
        scaled = features._replace(values=(features.values / np.sqrt(penalty)).astype(np.float32))
        n_users = len(rows.indptr) - 1
        kernel = np.zeros((n_users, n_users), np.float32)
        linear.gram(*scaled, *scaled.transposed(2 * rows.n_items), kernel)
        kernel.flat[:: n_users + 1] += np.float32(1.0)
        invert_in_place(kernel)
        leverage = np.empty(rows.n_items)
        linear.leverages(*rows.likes().transposed(rows.n_items), kernel, leverage)
        free = np.maximum(1.0 - leverage / penalties.likes, SMALLEST)
        return {"user_kernel": kernel, "item_free": free.astype(np.float32)}

    def block(self, users: Int64Array) -> Float32Array:
        """(len(users), n_items) scores."""
        vectors = -self.arrays["user_kernel"][users]
        vectors[np.arange(users.size), users] += np.float32(1.0)
        scores = self._products(vectors)
        for row, user in enumerate(users.tolist()):
            mine = slice(self.rows.indptr[user], self.rows.indptr[user + 1])
            self._without_own(scores[row], self.rows.indices[mine], self.rows.weights[mine])
        scores /= self.arrays["item_free"]
        return scores

    def pairs(self, users: Int64Array, items: Int64Array) -> Float32Array:
        """(len(users),) scores."""
        scores = np.empty(users.size, np.float32)
        by_item = self.rows.likes().transposed(self.rows.n_items)
        linear.likes_of_users_pairs(
            users, items, *by_item, self.arrays["user_kernel"], self.arrays["item_free"], scores
        )
        return scores

    def history(self, items: Int64Array, weights: Float32Array) -> Float32Array:
        """(n_items,) scores of a user with these rows."""
        row = np.zeros(2 * self.rows.n_items)
        row[items + self.rows.n_items * (weights < 0)] = np.abs(weights) / np.where(weights > 0, *self.penalties)
        features = self.rows.features()
        shares = np.concatenate(([0.0], np.cumsum(features.values * row[features.indices])))
        shared = np.diff(shares[features.indptr]).astype(np.float32)
        scores = self._products((self.arrays["user_kernel"] @ shared)[None, :])[0]
        self._without_own(scores, items, weights)
        return np.asarray(scores / self.arrays["item_free"], np.float32)

    def column(self, item: int) -> Float32Array:
        """(n_items,) what liking each item does to `item`."""
        likes = self.rows.likes()
        users = row_owner(likes.indptr)
        mine = likes.indices == item
        vector = self.arrays["user_kernel"][:, users[mine]] @ likes.values[mine]
        divisor = self.penalties.likes * self.arrays["item_free"][item]
        return np.asarray(self._products(vector[None, :])[0] / divisor, np.float32)

    def _products(self, vectors: FloatArray) -> Float32Array:
        """v' z_j of all items for each row v of `vectors`."""
        scores = np.empty((len(vectors), self.rows.n_items), np.float32)
        linear.add_likes_of_users(np.ascontiguousarray(vectors, np.float32), *self.rows.likes(), scores)
        return scores

    def _without_own(self, scores: Float32Array, items: IntArray, weights: FloatArray) -> None:
        """Takes from the items of the user's own likes what each says of itself."""
        liked = weights > 0
        scores[items[liked]] -= weights[liked] * (1.0 - self.arrays["item_free"][items[liked]])


# ----------------------------------------------------------------------------------------------------
# EASE: a linear model of all items in closed form, the strongest simple baseline for whole catalogs.


@final
@dataclass(eq=False, kw_only=True)
class EASE(LikesModel):
    """Predicts a user's likes from the user's other likes by ridge regression with a zero diagonal (Steck 2019).

    Scores are X B with B = I - P diag(1 / diag P), P = (X'X + lambda I)^-1, X the weights of the likes. Where there are
    far fewer users than items the same scores come from a system of users, and no items x items matrix is made.
    """

    regularization: float | str = param(USUAL_PENALTY, POSITIVE.unless(AUTO))
    """lambda, in likes of an item: dense data want some hundreds, sparse data some tens. "auto": chosen on rows held out
    inside `fit`, at the cost of some ten fits."""
    dislikes: bool = param(False, FLAG)
    """Whether rows with a weight below 0 are predictors of likes, too, each item's dislikes in a column of their own."""
    dislike_regularization: float = param(800.0, POSITIVE)
    """lambda of the columns of dislikes."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight: above 0 is a like. None: 1 for ratings of at least 4 and -1 below, else the natural one
    of the data."""
    max_items: int = param(30_000, integer())
    """The largest system that `fit` will solve: items (twice with `dislikes`), or users where they are fewer."""

    name: ClassVar[str] = "ease"
    summary: ClassVar[str] = "closed form: ridge regression on all other items (Steck 2019); strong on whole catalogs"
    own_space: ClassVar[Space] = {"regularization": Range(10.0, 3000.0, log=True)}

    def fit(self, data: Interactions) -> Self:
        """Solves one system of linear equations."""
        self.check()
        weighted, info = self.weighted(data)
        assert weighted.weights is not None
        form = self._cheaper_form(weighted.n_users, weighted.n_items * (2 if self.dislikes else 1))
        if self.regularization == AUTO:
            info = replace(info, chosen={"regularization": self._chosen(weighted)})
        penalty = (info.chosen or {}).get("regularization", self.regularization)
        penalties = Penalties(float(penalty), float(self.dislike_regularization))
        arrays = form.solve(Signed.of(weighted, self.dislikes), penalties)
        info = replace(info, penalties=list(penalties), dislikes=self.dislikes)
        self._fitted = Fitted.of(weighted, {**arrays, "seen_weights": weighted.weights}, info)
        return self

    def _chosen(self, weighted: Interactions) -> float:
        """The lambda that ranks held-out rows of `weighted` best; the usual one where there are too few."""
        split = hold_out(weighted)
        if split is None:
            return USUAL_PENALTY
        train, rest = split
        assert rest.weights is not None
        held_out = HeldOut.of(train, rest, (rest.weights > 0).astype(np.float64), JUDGED_BY)
        if held_out.n_users < FEWEST_USERS:
            return USUAL_PENALTY
        values: dict[float, float] = {}

        def best_of(penalties: Sequence[float]) -> ChosenRidge:
            for penalty in penalties:
                if penalty not in values:
                    trial = EASE(**self.get_params() | {"regularization": penalty, "feedback": "weights"}).fit(train)
                    values[penalty] = float(held_out.means(lambda users: [trial.score_block(users)])[0])  # noqa: B023
            best = max(values, key=lambda penalty: values[penalty])
            return ChosenRidge(len(weighted.items), best, values[best])

        return best_penalty(best_of).penalty

    # -- scores -------------------------------------------------------------------------------------------------------

    def score_block(self, users: IntArray) -> Float32Array:
        """Sums over the users' likes; an item of the user's own history is scored by the others."""
        return self._form().block(np.ascontiguousarray(users, np.int64))

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Sums over the users' likes, for the items asked for alone."""
        return self._form().pairs(np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64))

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Sums over the likes of the history; without values all of its items are liked."""
        weights = self.history_weights(items, values)
        if not (weights != 0 if self.fitted.info.dislikes else weights > 0).any():
            raise self.refuse_history()
        return self._form().history(np.asarray(items, np.int64), weights)

    def item_similarity(self, items: Int64Array) -> Float32Array:
        """Columns of B."""
        form = self._form()
        columns = [form.column(int(item)) for item in items]
        return np.stack(columns) if columns else np.empty((0, len(self.item_map)), np.float32)

    def _form(self) -> ByItems | ByUsers:
        """What was learned, in the form in which it was solved."""
        fitted, info = self.fitted, self.fitted.info
        weights = fitted.arrays["seen_weights"]
        rows = Signed(fitted.indptr, fitted.indices, weights, len(fitted.items), info.dislikes)
        kind = ByUsers if "user_kernel" in fitted.arrays else ByItems
        return kind(rows, Penalties(*(info.penalties or ())), fitted.arrays)

    def _cheaper_form(self, n_users: int, n_features: int) -> type[ByItems] | type[ByUsers]:
        """By users where they are fewer by half, or where items are too many: a little fewer saves less than scores cost."""
        size = min(n_users, n_features)
        if size <= self.max_items:
            by_users = 2 * n_users <= n_features or n_features > self.max_items
            one = 4 * (n_users if by_users else n_features) ** 2  # with dislikes part of it is copied
            advice = "use NeighborRidge or TopNRank, or leave out rare items with filter(min_item_users=...)"
            require_memory(one * 3 // 2 if self.dislikes and not by_users else one, "the matrix of EASE", advice)
            return ByUsers if by_users else ByItems
        raise DataError(
            f"EASE would have to invert a matrix of {size} x {size}, which takes {4 * size**2 / 2**30:.1f} GiB of memory, "
            f"and max_items is {self.max_items}; use NeighborRidge or TopNRank, leave out rare items with "
            "filter(min_item_users=...), or raise max_items"
        )
