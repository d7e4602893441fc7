"""What models that learn from likes alone share: which rows are likes, in training and in the history of a new user."""

import numpy as np

from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.data.feedback.by_name import feedback_from_dict, fitted_feedback, remembered
from topnrank.data.feedback.liked import LikedRule, likes_feedback, remembered_rule
from topnrank.data.feedback.policies import Amounts, EventWeights, Feedback, Threshold, WeightColumn
from topnrank.data.feedback.recency import timeless
from topnrank.data.interactions import Interactions
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError, ParameterError
from topnrank.models.base import FitInfo, Model


def likes_info(policy: Feedback, fingerprint: str, *, rated: bool, counts: RatingCounts | None) -> FitInfo:
    """What a fitted model keeps of how rows were weighted; `rated`: they have ratings, which occur so often."""
    by_weight = not rated or isinstance(timeless(policy), EventWeights | WeightColumn)
    return FitInfo(
        fingerprint=fingerprint,
        task="catalog",
        value="weights" if by_weight else "ratings",  # what the numbers of a new user's history are
        feedback=remembered(policy),
        liked=remembered_rule(policy, counts),
    )


class LikesModel(Model):
    """Base of the closed-form models: a row with a weight above 0 is a like."""

    feedback: Feedback | str | None

    def weighted(self, data: Interactions) -> tuple[Interactions, FitInfo]:
        """`data` with weights, and what other rows are weighted alike by."""
        policy = fitted_feedback(likes_feedback(self.feedback, data), data)
        weighted = policy(data)
        assert weighted.weights is not None
        if not (weighted.weights > 0).any():
            raise DataError(
                f"{type(self).__name__}: none of the {len(weighted)} rows has a weight above 0, so nobody likes anything; "
                "check the feedback: it says which ratings or events count as liked"
            )
        rated = weighted.ratings is not None
        return weighted, likes_info(policy, data.fingerprint(), rated=rated, counts=data.rating_counts)

    def weigh(self, data: Interactions) -> Interactions:
        """Other rows, weighted as the training rows were; what has no feedback types stays as it is."""
        return data if data.types is None or data.ratings is not None else self._fitted_policy()(data)

    def history_weights(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Weights of a history's ratings or weights, as in training; without values all of its items are liked."""
        if values is None:
            return np.ones(items.size, np.float32)
        if self.fitted.info.value == "weights":
            policy = self._fitted_policy() if self.fitted.info.feedback is not None else None
            return np.asarray(np.sign(values) if isinstance(policy, Amounts) else values, np.float32)
        policy = timeless(self._fitted_policy())
        if isinstance(policy, Threshold):  # the usual case, without the detour over Interactions
            return np.where(LikedRule(policy.at).flags(values), np.float32(1), np.float32(-1))
        one = Interactions.from_arrays(np.zeros(items.size, np.int64), items, ratings=values)
        weights = policy(one).weights
        assert weights is not None
        return weights[np.argsort(np.argsort(items))]  # the rows of `one` are sorted by item

    def refuse_history(self) -> ParameterError:
        """For a history without a like."""
        return ParameterError(
            f"recommend: no item of this history counts as liked, and {type(self).__name__} learns from likes alone; give "
            "the liked items without ratings, or higher ratings"
        )

    def _fitted_policy(self) -> Feedback:
        """The policy of training, with what it took from the training rows."""
        known = self.fitted.info.feedback
        if known is not None:
            return feedback_from_dict(known)
        if not isinstance(self.feedback, Feedback):
            raise ParameterError(
                "the feedback of the training is an object of your own that the file does not hold; put it back with "
                "set_params(feedback=...)"
            )
        return self.feedback
