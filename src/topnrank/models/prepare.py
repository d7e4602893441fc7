"""From interactions to training lists: feedback weights, rating residuals, and the checks that training makes sense."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from topnrank.data.feedback import ConversionRate, EventWeights, Feedback
from topnrank.data.grades import Graded
from topnrank.data.interactions import Interactions
from topnrank.data.policies import feedback_from
from topnrank.errors import DataError
from topnrank.scorers import RatingResiduals, Rows


class Selection(NamedTuple):
    """Which rows enter a user's list."""

    users: str
    """How users are represented: histories hold all rows, whatever the lists hold"""
    relevant_only: bool = False
    """Only rows with a weight above 0"""
    negatives: int = 0
    """Unobserved items sampled beside them at each visit"""


@dataclass(frozen=True)
class Prepared:
    """Training lists, and what is needed to prepare a new user the same way."""

    data: Interactions
    """Unique (user, item) pairs with weights"""
    rows: Rows
    residuals: RatingResiduals | None
    facts: dict[str, Any]


def prepare(
    data: Interactions,
    feedback: Feedback | str | None,
    selection: Selection,
    *,
    strict: bool = True,
    residuals: RatingResiduals | None = None,
) -> Prepared:
    """Lists for training; `strict` refuses data that cannot teach an order, `residuals` of earlier rows are used again."""
    if len(data) == 0:
        raise DataError("there are no rows to train on; check the filter or the split")
    policy = feedback_from(feedback, data)
    if isinstance(policy, ConversionRate):
        policy = policy.event_weights(data)  # the rates of the training rows, to weigh others by the same
    elif isinstance(policy, Graded):
        policy = policy.fitted_to(data)
    weighted = policy(data)
    weights = weighted.weights
    assert weights is not None
    if strict:
        (_check_likes if selection.relevant_only else _check_teaches)(weighted, selection)
    e = np.empty(0, np.float32)
    value = "ratings" if weighted.ratings is not None else "weights"
    values = weighted.ratings if weighted.ratings is not None else weights
    if selection.users == "history":
        residuals = residuals or RatingResiduals.fit(weighted.indptr, weighted.indices, values, weighted.n_items)
        e = residuals.of(weighted.indptr, weighted.indices, values)
    rows = Rows(weighted.indptr, weighted.indices, weights, e)
    if selection.relevant_only:
        rows = rows._replace(listed=weights > 0)
    facts: dict[str, Any] = {"fingerprint": data.fingerprint(), "value": value}
    if isinstance(policy, EventWeights | Graded):
        facts["feedback"] = policy.to_dict()
    if residuals is not None:
        facts["residual_mean"] = residuals.mean
    return Prepared(weighted, rows, residuals, facts)


def _check_likes(data: Interactions, selection: Selection) -> None:
    """There must be liked items, and where unobserved ones are sampled, some that a user has not observed."""
    weights, sizes = data.weights, np.diff(data.indptr)
    assert weights is not None
    if not (weights > 0).any():
        raise DataError(
            f"none of the {len(data)} rows has a weight above 0, so nobody likes anything; check the feedback: it says "
            "which ratings or events count as liked"
        )
    if selection.negatives and sizes.min() == data.n_items:
        raise DataError(
            f"every user has observed all {data.n_items} items: there are no unobserved items to sample; use a model "
            "of ratings, such as TopNRank, or BPR or WARP with negatives=0"
        )


def _check_teaches(data: Interactions, selection: Selection) -> None:
    """Some user must have two items with different weights: only that is an order to learn."""
    weights, sizes = data.weights, np.diff(data.indptr)
    assert weights is not None
    if sizes.max(initial=0) < 2:
        raise DataError("every user has one item only: there is nothing to rank; give data with longer lists per user")
    if data.ratings is not None and np.ptp(data.ratings) == 0:
        raise DataError(
            f"all {len(data)} ratings are {data.ratings[0]:g}: there is no order to learn from them; "
            "give graded ratings, or use Popularity"
        )
    same_user = np.diff(data.user_index) == 0
    if not np.any(same_user & (np.diff(weights) != 0)):
        raise DataError(
            f"within every user all weights are equal (for example {weights[0]:g}): training on observed items alone "
            "cannot learn an order from that; give ratings, weights that differ or dislikes with weight below 0, or use a "
            "model that learns from likes alone (BPR or WARP with negatives=100, MFADG, CLiMF), or Popularity"
        )
