"""What is liked: one rule, taken from the ratings of the training data, for training and for every measurement."""

from dataclasses import dataclass
from numbers import Real
from typing import Literal, final

import numpy as np

from topnrank._typing import BoolArray, FloatArray
from topnrank.data.feedback.by_name import feedback_from
from topnrank.data.feedback.policies import Amounts, Feedback, ItemCount, Threshold
from topnrank.data.feedback.recency import Recency
from topnrank.data.interactions import Interactions
from topnrank.data.scale import RatingCounts
from topnrank.errors import ParameterError

MANY_WEIGHTS = 5
"""More different weights than these are counts or amounts, unless all are shares of a like."""


@final
@dataclass(frozen=True)
class LikedRule:
    """Which ratings count as liked."""

    at: float | None
    """The lowest of them; None: all above 0"""
    why: str = ""
    """Where the rule comes from, with the scale it was taken from; empty where the user gave it"""

    def flags(self, ratings: FloatArray) -> BoolArray:
        """(n,) which ratings are liked."""
        if self.at is None:
            return np.asarray(ratings > 0)
        return np.asarray(ratings.astype(np.float32, copy=False) >= np.float32(self.at))

    @property
    def policy(self) -> Feedback:
        """The feedback by which models learn from likes."""
        return Amounts() if self.at is None else Threshold(self.at)

    def __str__(self) -> str:
        compared = "rating > 0" if self.at is None else f"rating >= {self.at:g}"
        return f"{compared}, {self.why}" if self.why else compared


Relevant = float | LikedRule | Literal["auto"] | None
"""Which rows are relevant: from a rating on, by the rule of the model or the data, or None: see `evaluate`."""


def rule_of(counts: RatingCounts) -> LikedRule:
    """The rule for ratings of these values.

    Liked is the upper fifth of a scale (`RatingCounts.four_fifths`). Counts and amounts, which have no top, are all liked.
    """
    lowest, highest = counts.values[[0, -1]].tolist()
    if len(counts.values) == 1:
        return LikedRule(lowest, "the only rating there is")
    at, scale = counts.four_fifths(), f"{lowest:g} to {highest:g}"
    if at is None:
        return LikedRule(None, f"as amounts from {scale} have no scale")
    part = "four fifths" if len(counts.values) > 2 else "the top"
    return LikedRule(at, f"{part} of the scale {scale}")


def rule_for(relevant: object, known: LikedRule | None, ratings: RatingCounts | None) -> LikedRule | None:
    """The rule that an argument `relevant` asks for: "auto" is the one already `known`, else that of the `ratings`."""
    if relevant is None or isinstance(relevant, LikedRule):
        return relevant
    if isinstance(relevant, str) and relevant == "auto":
        return known or (None if ratings is None else rule_of(ratings))
    if isinstance(relevant, bool) or not isinstance(relevant, Real):
        raise ParameterError(f"relevant must be 'auto', a rating or None, got {relevant!r}")
    if not np.isfinite(float(relevant)):
        raise ParameterError(f"relevant must be a finite rating, 'auto' or None, got {relevant}")
    return LikedRule(float(relevant))


def likes_feedback(given: Feedback | str | None, data: Interactions) -> Feedback:
    """The feedback of models that learn from likes: the one `given`, else by the rule of `data`.

    Without ratings, weights that look like counts or hours, of which there are more than `MANY_WEIGHTS` different ones and
    some above 2, are likes of equal strength. Few different weights, or shares of a like, somebody has thought about.
    """
    if given is None:
        weights = data.weights if data.types is None and len(data) else None
        known = likes_of_counts(data.rating_counts, None if weights is None else RatingCounts.of(weights))
        if known is not None:
            return known
    return feedback_from(given, data)


def likes_of_counts(ratings: RatingCounts | None, weights: RatingCounts | None) -> Feedback | None:
    """`likes_feedback` by how often each rating, or else weight, occurs; None where they do not decide it."""
    if ratings is not None:
        return rule_of(ratings).policy
    are_amounts = weights is not None and weights.values[-1] > 2.0 and len(weights.values) > MANY_WEIGHTS
    return Amounts() if are_amounts else None


def remembered_rule(policy: Feedback, ratings: RatingCounts | None) -> LikedRule | None:
    """What a model keeps: the threshold of its feedback, else the rule for its ratings; None without ratings."""
    if ratings is None:
        return None
    rule = rule_of(ratings)
    while isinstance(policy, Recency | ItemCount):
        policy = policy.base
    if isinstance(policy, Threshold) and policy.at != rule.at:
        rule = LikedRule(policy.at)
    return rule
