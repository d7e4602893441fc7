"""EASE: a linear model of all items in closed form, the strongest simple baseline for whole catalogues."""

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np

from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.models.base import Fitted
from topnrank.models.checks import check_count, check_flag, check_interactions, check_number
from topnrank.models.ease_forms import ByItems, ByUsers, Penalties, Signed
from topnrank.models.likes import LikesModel
from topnrank.models.search import Range, Space


@final
@dataclass(eq=False, kw_only=True)
class EASE(LikesModel):
    """Predicts a user's likes from the user's other likes by ridge regression with a zero diagonal (Steck 2019).

    Scores are X B with B = I - P diag(1 / diag P), P = (X'X + lambda I)^-1, X the weights of the likes. Where there are
    far fewer users than items the same scores come from a system of users, and no items x items matrix is made.
    """

    regularization: float = 400.0
    """lambda, in likes of an item: dense data want some hundreds, sparse data some tens."""
    dislikes: bool = False
    """Whether rows with a weight below 0 are predictors of likes, too, each item's dislikes in a column of their own."""
    dislike_regularization: float = 800.0
    """lambda of the columns of dislikes."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight: above 0 is a like. None: 1 for ratings of at least 4 and -1 below, else the natural one
    of the data."""
    max_items: int = 30_000
    """The largest system that `fit` will solve: items (twice with `dislikes`), or users where they are fewer."""

    name: ClassVar[str] = "ease"
    summary: ClassVar[str] = "closed form: ridge regression on all other items (Steck 2019); strong on whole catalogues"

    def check(self) -> None:
        """Penalties are above 0."""
        check_number(self, "regularization", "dislike_regularization", above_zero=True)
        check_flag(self, "dislikes")
        check_count(self, "max_items")

    @classmethod
    def search_space(cls) -> Space:
        """lambda decides alone."""
        return {"regularization": Range(10.0, 3000.0, log=True)}

    def fit(self, data: Interactions) -> Self:
        """Solves one system of linear equations."""
        self.check()
        check_interactions(data)
        weighed, facts = self.weighed(data)
        assert weighed.weights is not None
        form = self._cheaper_form(weighed.n_users, weighed.n_items * (2 if self.dislikes else 1))
        penalties = Penalties(float(self.regularization), float(self.dislike_regularization))
        arrays = form.solve(Signed.of(weighed, self.dislikes), penalties)
        facts |= {"penalties": list(penalties), "dislikes": self.dislikes, "protocol": "catalogue"}
        self._fitted = Fitted.of(weighed, {**arrays, "seen_weights": weighed.weights}, **facts)
        return self

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
        if not (weights != 0 if self.fitted.facts["dislikes"] else weights > 0).any():
            raise self.refuse_history()
        return self._form().history(np.asarray(items, np.int64), weights)

    def likeness(self, items: Int64Array) -> Float32Array:
        """Columns of B."""
        form = self._form()
        columns = [form.column(int(item)) for item in items]
        return np.stack(columns) if columns else np.empty((0, len(self.item_map)), np.float32)

    def _form(self) -> ByItems | ByUsers:
        """What was learnt, in the form in which it was solved."""
        fitted, facts = self.fitted, self.fitted.facts
        weights = fitted.arrays["seen_weights"]
        rows = Signed(fitted.indptr, fitted.indices, weights, len(fitted.items), facts["dislikes"])
        kind = ByUsers if "user_kernel" in fitted.arrays else ByItems
        return kind(rows, Penalties(*facts["penalties"]), fitted.arrays)

    def _cheaper_form(self, n_users: int, n_features: int) -> type[ByItems] | type[ByUsers]:
        """By users where they are fewer by half, or where items are too many: a little fewer saves less than scores cost."""
        size = min(n_users, n_features)
        if size <= self.max_items:
            by_users = 2 * n_users <= n_features or n_features > self.max_items
            return ByUsers if by_users else ByItems
        raise DataError(
            f"EASE would have to invert a matrix of {size} x {size}, which takes {4 * size**2 / 2**30:.1f} GiB of memory, "
            f"and max_items is {self.max_items}; use NeighbourRidge or TopNRank, leave out rare items with "
            "filter(min_item_users=...), or raise max_items"
        )
