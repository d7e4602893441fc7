"""Models of other libraries in a comparison: a protocol of two methods, and adapters for implicit and LightFM.

    class Mine:
        def fit(self, train): ...                 # topnrank.Interactions
        def score(self, users, items): ...        # arrays of original ids, pair by pair; one number for each

    topnrank.compare([topnrank.TopNRank(), Mine(), ImplicitModel(AlternatingLeastSquares(factors=50))], data)

Each repeat fits a fresh copy (`copy.deepcopy`) of the object given. Scores must be numbers for every pair, also with users
and items that the model does not know; the adapters give such pairs `LOWEST`, so that they rank last.
"""

import copy
from abc import ABC, abstractmethod
from typing import Any, Self, final

import numpy as np

from topnrank._checks import require_integer
from topnrank._typing import Float32Array
from topnrank.data.feedback.liked import likes_feedback
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.foreign import Competitor, CompetitorRanker

__all__ = ["LOWEST", "Competitor", "CompetitorRanker", "FactorAdapter", "ImplicitModel", "LightFMModel"]
LOWEST = float(np.finfo(np.float32).min)
"""The score of a pair with a user or an item that the model does not know."""


class FactorAdapter(ABC):
    """Base of the adapters: vectors of users and items whose product is the score, from positive rows alone.

    Users and items without a positive row in training, and those not in it at all, are unknown to the model: all pairs with
    them have the score `LOWEST`. Such users' lists are all ties.
    """

    def __init__(self, model: Any, *, name: str, feedback: Feedback | str | None) -> None:
        self.model = model
        """The model as given; it is never fitted itself, so that every `fit` starts afresh"""
        self.name = name
        self.feedback = feedback

    @abstractmethod
    def vectors(self, fitted: Any, weighted: Interactions) -> tuple[Any, Any]:
        """Fits `fitted`; returns the vectors of users and items, (n_users, k) and (n_items, k)."""

    def fit(self, train: Interactions) -> Self:
        """Weighs the rows by the feedback policy and trains on those above 0."""
        weighted = likes_feedback(self.feedback, train)(train)
        assert weighted.weights is not None
        positive = weighted.weights > 0
        if not positive.any():
            raise DataError(f"{self.name}: no training row has a weight above 0, there is nothing to learn; {_REMEDY}")
        users, items = self.vectors(copy.deepcopy(self.model), weighted)
        self._users, self._items = train.users, train.items
        self._user_vectors = np.asarray(users, np.float32)
        self._item_vectors = np.asarray(items, np.float32)
        self._knows_user = np.bincount(weighted.user_index[positive], minlength=train.n_users) > 0
        self._knows_item = np.bincount(weighted.indices[positive], minlength=train.n_items) > 0
        return self

    def score(self, users: Any, items: Any) -> Float32Array:
        """Products of the vectors, pair by pair; `LOWEST` where the model does not know the user or the item."""
        rows, columns = self._users.index(users), self._items.index(items)
        products = np.einsum("nk,nk->n", self._user_vectors[rows], self._item_vectors[columns])
        known = (rows >= 0) & self._knows_user[rows] & (columns >= 0) & self._knows_item[columns]
        return np.where(known, products, np.float32(LOWEST))

    def score_all(self, users: Any, items: Any) -> Float32Array:
        """(len(users), len(items)) products, with the rule of `score`."""
        rows, columns = self._users.index(users), self._items.index(items)
        products = self._user_vectors[rows] @ self._item_vectors[columns].T
        knows_item = (columns >= 0) & self._knows_item[columns]
        known = ((rows >= 0) & self._knows_user[rows])[:, None] & knows_item[None, :]
        return np.where(known, products, np.float32(LOWEST))


_REMEDY = "give a feedback policy, such as Threshold(3)"
_SHORT_NAMES = {
    "AlternatingLeastSquares": "implicit-als",
    "BayesianPersonalizedRanking": "implicit-bpr",
    "LogisticMatrixFactorization": "implicit-lmf",
}


@final
class ImplicitModel(FactorAdapter):
    """A factor model of the library implicit: ALS, BPR or LMF.

    Parameters
    ----------
    model
        Such as `implicit.als.AlternatingLeastSquares(factors=50, random_state=0)`. Without `random_state` its results
        differ from run to run; BPR's do so on more than one thread, too (num_threads=1).
    name
        Name of the row; else by the kind of model.
    feedback
        How a row becomes a weight; weights above 0 are implicit's confidences. None: 1 for ratings that are
        liked on their scale, or where there are no ratings the weights of the data, or 1 for every row.
    """

    def __init__(self, model: Any, *, name: str | None = None, feedback: Feedback | str | None = None) -> None:
        kind = type(model).__name__
        if not (hasattr(model, "fit") and hasattr(model, "user_factors")):
            raise ParameterError(
                f"ImplicitModel needs a factor model of implicit (ALS, BPR, LMF), got {kind}; give one of those"
            )
        super().__init__(model, name=name or _SHORT_NAMES.get(kind, f"implicit-{kind}"), feedback=feedback)

    def vectors(self, fitted: Any, weighted: Interactions) -> tuple[Any, Any]:
        """Factors, which hold the biases of BPR and LMF as columns."""
        fitted.fit(_matrix(weighted), show_progress=False)
        found = fitted.user_factors, fitted.item_factors
        users, items = (array.to_numpy() if hasattr(array, "to_numpy") else array for array in found)  # from a GPU
        return users, items


@final
class LightFMModel(FactorAdapter):
    """A `lightfm.LightFM` without side features.

    Parameters
    ----------
    model
        Such as `LightFM(no_components=50, loss="warp", random_state=0)`.
    epochs
        Passes over the training rows.
    name, feedback
        As those of `ImplicitModel`; weights above 0 are sample weights, which LightFM does not take with
        loss="warp-kos". With loss="logistic" rows with weights below 0 are its negatives; other losses draw their own.
    num_threads
        More than one thread makes the results differ from run to run.
    """

    def __init__(
        self,
        model: Any,
        *,
        epochs: int = 10,
        name: str | None = None,
        feedback: Feedback | str | None = None,
        num_threads: int = 1,
    ) -> None:
        if not (hasattr(model, "fit") and hasattr(model, "get_user_representations")):
            raise ParameterError(f"LightFMModel needs a lightfm.LightFM, got {type(model).__name__}; give one")
        super().__init__(model, name=name or f"lightfm-{model.loss}", feedback=feedback)
        self.epochs, self.num_threads = require_integer("LightFMModel.epochs", epochs, 1), num_threads

    def vectors(self, fitted: Any, weighted: Interactions) -> tuple[Any, Any]:
        """Embeddings, with the items' biases as a column; users' biases do not change an order."""
        weights = _matrix(weighted, negatives=fitted.loss == "logistic").tocoo()
        signs, sizes = weights.copy(), weights
        signs.data, sizes.data = np.sign(weights.data), np.abs(weights.data)
        options = {"epochs": self.epochs, "num_threads": self.num_threads}
        fitted.fit(signs, sample_weight=None if fitted.loss == "warp-kos" else sizes, **options)
        (_, users), (bias, items) = fitted.get_user_representations(), fitted.get_item_representations()
        ones = np.ones((len(users), 1), np.float32)
        return np.hstack([users, ones]), np.hstack([items, np.asarray(bias)[:, None]])


def _matrix(weighted: Interactions, *, negatives: bool = False) -> Any:
    """A SciPy users x items matrix of the weights above 0, or of all but 0."""
    from scipy.sparse import csr_matrix

    weights = weighted.weights
    assert weights is not None
    rows = weighted.take(weights != 0 if negatives else weights > 0)
    shape = (weighted.n_users, weighted.n_items)
    return csr_matrix((rows.weights, rows.indices, rows.indptr), shape=shape, dtype=np.float32, copy=True)
