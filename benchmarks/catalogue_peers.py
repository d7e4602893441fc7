"""Models of other libraries and closed forms for the catalogue study, all with the interface of a competitor."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, lapack

import topnrank as tnr
from topnrank.comparison.competitors import Competitor, CompetitorRanker
from topnrank.data.feedback import Feedback
from topnrank.data.policies import feedback_from
from topnrank.evaluation.labels import Ranker

_LARGE = 10_000
"""Matrices with more rows are inverted in 32 bits: half the memory and time."""
_BLOCK = 512
"""Rows mirrored at a time."""
_Array = NDArray[Any]


@final
@dataclass(frozen=True)
class LikesAndDislikes:
    """A feedback policy: 1 for likes, a small positive weight for dislikes, since to rate is to have chosen."""

    dislike: float
    like_from: float = 4.0

    def __call__(self, data: tnr.Interactions) -> tnr.Interactions:
        """`data` with these weights."""
        assert data.ratings is not None
        return data.with_weights(np.where(data.ratings >= self.like_from, 1.0, self.dislike).astype(np.float32))

    def to_dict(self) -> dict[str, Any]:
        """For the protocol's sake; no model is saved here."""
        return {"kind": "likes and dislikes", "dislike": self.dislike, "like_from": self.like_from}


@final
@dataclass
class Peer:
    """A competitor with a `fit` that returns what `evaluate` wants; all training rows count as seen."""

    competitor: Competitor

    def fit(self, train: tnr.Interactions) -> Ranker:
        """Fits the competitor."""
        return CompetitorRanker.fit(self.competitor, train)


@final
class Restricted:
    """A model of this library fitted on some of the rows; candidates are those of a model fitted on all."""

    def __init__(self, model: tnr.Model, feedback: Feedback) -> None:
        self.model, self.feedback = model, feedback

    def fit(self, train: tnr.Interactions) -> Ranker:
        """Fits on the rows of a weight above 0."""
        weighed = self.feedback(train)
        assert weighed.weights is not None
        self.model.fit(weighed.take(weighed.weights > 0))
        seen = train.take(train.pair_starts)
        self.user_map, self.item_map = train.users, train.items
        self.seen_indptr, self.seen_indices = seen.indptr, seen.indices
        return self

    def score_block(self, users: _Array) -> _Array:
        """Scores of all items."""
        return self.model.score_block(users)

    def score_pairs(self, users: _Array, items: _Array) -> _Array:
        """Scores of pairs."""
        return self.model.score_pairs(users, items)


@final
class EASE:
    """Embarrassingly shallow autoencoder (Steck 2019), where asked with the dislikes as further input columns.

    With Z the inputs (users x columns), L the diagonal of penalties and P = (Z'Z + L)^-1, the weights into item j are
    -P_.j / P_jj, and 0 from j to itself. Where users are fewer than columns the same scores come from a matrix of the
    users: with M = I + Z L^-1 Z', Z P = M^-1 Z L^-1.
    """

    name = "ease"

    def __init__(
        self, regularization: float, *, dislikes: float | None = None, feedback: Feedback | str | None = None
    ) -> None:
        self.regularization, self.dislikes, self.feedback = regularization, dislikes, feedback

    def fit(self, train: tnr.Interactions) -> Self:
        """Solves for the weights, or for the scores of the training users at once."""
        self.users, self.items = train.users, train.items
        policy = tnr.Threshold() if self.feedback is None and train.ratings is not None else self.feedback
        weighed = feedback_from(policy, train)(train)
        assert weighed.weights is not None
        inputs = [_matrix(weighed, weighed.weights > 0)]
        if self.dislikes is not None:
            inputs.append(abs(_matrix(weighed, weighed.weights < 0)))
        self.inputs = sparse.hstack(inputs, format="csr")
        penalties = np.repeat([self.regularization, self.dislikes or 0.0][: len(inputs)], train.n_items)
        n_users, n_columns = self.inputs.shape
        self.scores = self.weights = None
        if n_users < n_columns:
            self.scores = _user_side(self.inputs, penalties, train.n_items)
        else:
            self.weights = _item_side(self.inputs, penalties)[:, : train.n_items]
        return self

    def score_all(self, users: Any, items: Any) -> _Array:
        """(len(users), len(items)) scores."""
        rows, columns = self.users.index(users), self.items.index(items)
        block = self.scores[rows] if self.scores is not None else self.inputs[rows] @ self.weights
        return np.asarray(block[:, columns], np.float32)

    def score(self, users: Any, items: Any) -> _Array:
        """Scores pair by pair."""
        every, place = np.unique(np.asarray(items), return_inverse=True)
        who, row = np.unique(np.asarray(users), return_inverse=True)
        return np.asarray(self.score_all(who, every)[row, place])


def _matrix(weighed: tnr.Interactions, chosen: _Array) -> Any:
    rows = weighed.take(chosen)
    shape = (weighed.n_users, weighed.n_items)
    return sparse.csr_matrix((rows.weights, rows.indices, rows.indptr), shape=shape, dtype=np.float32, copy=True)


def _item_side(inputs: Any, penalties: _Array) -> _Array:
    """(n_columns, n_columns) weights; one dense matrix is all that is held."""
    dtype = np.float32 if len(penalties) > _LARGE else np.float64
    gram = (inputs.T @ inputs).astype(dtype).toarray(order="F")
    gram[np.diag_indices_from(gram)] += penalties.astype(dtype)
    potrf, potri = lapack.get_lapack_funcs(("potrf", "potri"), (gram,))
    factor, failed = potrf(gram, lower=1, overwrite_a=1, clean=0)
    inverse, failed_too = potri(factor, lower=1, overwrite_c=1)
    assert not failed
    assert not failed_too
    weights: _Array = inverse.T  # rows in memory order; the upper triangle is the one that holds the inverse
    for first in range(0, len(weights), _BLOCK):
        last = first + _BLOCK
        corner = np.triu(weights[first:last, first:last])
        weights[first:last, first:last] = corner + np.triu(corner, 1).T
        weights[last:, first:last] = weights[first:last, last:].T
    diagonal = weights.diagonal().copy()
    for row in weights:
        row /= -diagonal
    weights[np.diag_indices_from(weights)] = 0.0
    return weights


def _user_side(inputs: Any, penalties: _Array, n_items: int) -> _Array:
    """(n_users, n_items) scores of the training users: Z - (M^-1 Z L^-1)_j / P_jj."""
    inputs = inputs.astype(np.float64)
    scaled = (inputs @ sparse.diags(1.0 / penalties)).tocsr()
    system = (scaled @ inputs.T).toarray()
    system[np.diag_indices_from(system)] += 1.0
    targets = scaled[:, :n_items].toarray()
    solved = cho_solve(cho_factor(system, lower=True, overwrite_a=True), targets)
    diagonal = 1.0 / penalties[:n_items] - np.einsum("ui,ui->i", targets, solved)
    solved /= -diagonal
    solved += inputs[:, :n_items].toarray()
    return np.asarray(solved, np.float32)
