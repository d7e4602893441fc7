"""How models of other libraries, and models on some of the rows, join the catalog study."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

import topnrank as tnr
from topnrank.data.feedback.policies import Feedback
from topnrank.evaluation.labels import Ranker
from topnrank.experiments.compare.competitors import Competitor, CompetitorRanker

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
        weighted = self.feedback(train)
        assert weighted.weights is not None
        self.model.fit(weighted.take(weighted.weights > 0))
        self.fitted = train.take(train.pair_starts)
        return self

    def score_block(self, users: _Array) -> _Array:
        """Scores of all items."""
        return self.model.score_block(users)

    def score_pairs(self, users: _Array, items: _Array) -> _Array:
        """Scores of pairs."""
        return self.model.score_pairs(users, items)
