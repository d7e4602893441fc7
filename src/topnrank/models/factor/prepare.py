"""From interactions to training lists: feedback weights, rating residuals, and the checks that training makes sense."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Int64Array, IntArray
from topnrank.data.feedback.by_name import feedback_from, fitted_feedback
from topnrank.data.feedback.grades import Graded
from topnrank.data.feedback.liked import remembered_rule
from topnrank.data.feedback.policies import Amounts, Centered, EventWeights, Feedback, ItemCount
from topnrank.data.feedback.recency import Recency, timeless
from topnrank.data.interactions import Interactions
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError
from topnrank.models.base import FitInfo
from topnrank.models.linear.neighbors import NO_SESSIONS, LikedItems, Ridge, Solved, fit_neighbors
from topnrank.scorers import Neighbors, RatingResiduals, TrainingLists, TypeChannels
from topnrank.scorers.base import EQUAL_RECENCY, NO_RESIDUALS

# ----------------------------------------------------------------------------------------------------
# Recency: what a user did lately counts more in the history than what is long past.
#
#     rho_uj = 2^-(later_uj / half-life),   later_uj = how many of the user's items are later than j
#
# Counted in items, not in days, so that one number suits users of every pace. It says how histories and likes are summed up,
# in training and in prediction, and how much an item of a training list counts: what stands at the end of a history is most
# like what is asked for next. It needs the order of events, so it makes sense where the next items are wanted.


FAINTEST = 1e-6
"""However long past, an event is not nothing."""


def recency_weights_by_time(data: Interactions, half_life: float) -> Float32Array:
    """(n_rows,) rho of each row; rows of the same moment count alike."""
    if data.timestamps is None:
        raise DataError("recency needs timestamps and the data has none; name that column, or leave recency out")
    order = np.lexsort((-data.timestamps, data.user_index))  # latest first
    times, users = data.timestamps[order], data.user_index[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (times[1:] != times[:-1]) | (users[1:] != users[:-1])
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))  # where rows of this moment begin
    later = np.empty(len(order), np.int64)
    later[order] = start - data.indptr[users]
    return recency_weights_by_age(later, half_life)


def recency_weights_by_age(later: np.ndarray[tuple[int, ...], np.dtype[np.int64]], half_life: float) -> Float32Array:
    """rho of items that `later` others came after."""
    return np.maximum(np.exp2(-later / half_life), FAINTEST).astype(np.float32)


def recency_weights_in_order(size: int, half_life: float) -> Float32Array:
    """rho of a history of `size` items given from the oldest to the latest."""
    return recency_weights_by_age(np.arange(size)[::-1], half_life)


# ----------------------------------------------------------------------------------------------------
# Sessions: what a user does at one go. Items seen together there are closer than two items of a long history.
#
# The events of a user in the order of time, cut wherever more than `gap` seconds passed since the one before. A pair of user
# and item is one event, at the time that the feedback kept for it.


def sessions_of(data: Interactions, gap: float) -> Int64Array:
    """(n_rows,) the number of each row's session, counted through all users in their order."""
    if data.timestamps is None:
        raise DataError("sessions need timestamps and the data has none; name that column, or leave sessions out")
    users = data.user_index
    order = np.lexsort((data.timestamps, users))
    begins = np.ones(len(data), np.bool_)
    begins[1:] = (np.diff(users[order]) != 0) | (np.diff(data.timestamps[order]) > gap)
    numbers = np.empty(len(data), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers


class Selection(NamedTuple):
    """Which rows enter a user's list."""

    user_representation: str
    """How users are represented: histories hold all rows, whatever the lists hold"""
    relevant_only: bool = False
    """Only rows with a weight above 0"""
    negatives: int = 0
    """Unobserved items sampled beside them at each visit"""
    disliked: bool = False
    """With `relevant_only`: rows with a weight below 0 too"""
    popular: bool = False
    """Whether items are sampled by the square root of their number of likes; else all alike"""
    ridge: Ridge | None = None
    """How neighbors are found, where the model has them"""
    by_type: bool = False
    """Whether each type of feedback has a history vector of its own"""
    recency: float | None = None
    """Half-life of a row in the history, in later items; None for ever"""


class FrozenTerms(NamedTuple):
    """What training takes from the data once and then holds fixed."""

    neighbors: Neighbors | None = None
    sampling_weights: Int64Array | None = None
    """(n_items,) see `Problem.sampling_weights`"""
    scale: float = 0.0
    """Where the neighbors' scale begins"""
    channels: int = 1
    """What histories know of a row beside its item: its rating, or one channel for each type"""
    popularity: Float32Array | None = None
    """(n_items,) what popularity adds to the score of each item, before its weight"""


NO_FROZEN_TERMS = FrozenTerms()
NEIGHBOR_SCORE_OF_A_LIKE = 1.2
"""The neighbors' scale begins where they give so much to the score of a like on average, however sparse the data."""
SAMPLING_UNIT = 1024.0
"""Sampling weights are integers; an item without likes has this one."""


@dataclass(frozen=True)
class Prepared:
    """Training lists, and what is needed to prepare a new user the same way."""

    data: Interactions
    """Unique (user, item) pairs with weights"""
    rows: TrainingLists
    residuals: RatingResiduals | TypeChannels | None
    info: FitInfo
    """Fingerprint, and what new users and other rows are prepared by"""
    frozen: FrozenTerms = NO_FROZEN_TERMS


def prepare(
    data: Interactions,
    feedback: Feedback | str | None,
    selection: Selection,
    *,
    strict: bool = True,
    earlier: Prepared | None = None,
    unit: float | None = None,
    left_out: bool = True,
) -> Prepared:
    """Lists for training; `strict` refuses data that cannot teach an order, what `earlier` rows taught is used again.

    `unit` is that of the ratings, where another one than that of `data` is to be kept. Without `left_out` the lists lack the
    neighbors' scores of likes, which only training needs.
    """
    if len(data) == 0:
        raise DataError("there are no rows to train on; check the filter or the split")
    policy = fitted_feedback(feedback_from(feedback, data), data)
    weighted = policy(data)
    if strict:
        check_trainable(weighted, selection)
    by_weight = weighted.ratings is None or selection.by_type
    values = weighted.weights if by_weight else weighted.ratings
    assert values is not None
    residuals: RatingResiduals | TypeChannels | None = None
    if earlier is not None:
        residuals = earlier.residuals
    elif selection.user_representation == "history" and selection.by_type:
        residuals = type_channels(policy)
    elif selection.user_representation == "history":
        if unit is None:
            unit = 1.0 if weighted.rating_counts is None else weighted.rating_counts.unit
        in_units = values.astype(np.float64) / unit
        mean = float(in_units.mean())
        sums = RatingResiduals.sums(weighted.indptr, weighted.indices, in_units, mean, data.n_items)
        residuals = RatingResiduals.of_sums(sums, mean, unit)
    rows = training_lists(weighted, selection)
    if residuals is not None:
        rows = rows._replace(residuals=residuals.of(weighted.indptr, weighted.indices, values))
    frozen = FrozenTerms(channels=rows.residuals.shape[1]) if earlier is None else earlier.frozen
    if earlier is None and (selection.ridge is not None or selection.popular):
        likes = likes_of(rows, data.n_items, like_sessions(weighted, rows.gains > 0, selection.ridge))
        counts = np.bincount(likes.items, minlength=data.n_items)
        frozen, neighbor_scores = fit_frozen_terms(selection, residuals, counts, likes, left_out=left_out)
        rows = rows if neighbor_scores is None else add_neighbor_scores(rows, neighbor_scores)
    value: Literal["ratings", "weights"] = "weights" if by_weight else "ratings"
    info = fit_info(data.fingerprint(), value, policy, residuals, data.rating_counts)
    return Prepared(weighted, rows, residuals, info, frozen)


def training_lists(weighted: Interactions, selection: Selection) -> TrainingLists:
    """The training lists without residuals: weights, how much a row counts in the history, whether it is listed."""
    weights = weighted.weights
    assert weights is not None
    rows = TrainingLists(weighted.indptr, weighted.indices, weights, NO_RESIDUALS)
    if selection.recency is not None:
        recency_weights = recency_weights_by_time(weighted, selection.recency)
        rows = rows._replace(recency_weights=recency_weights, gains=weights * recency_weights)
    if selection.relevant_only:
        rows = rows._replace(listed=weights != 0 if selection.disliked else weights > 0)
    return rows


def fit_info(
    fingerprint: str,
    value: Literal["ratings", "weights"],
    policy: Feedback,
    residuals: RatingResiduals | TypeChannels | None,
    ratings: RatingCounts | None,
) -> FitInfo:
    """What new users and other rows are prepared by, as a fitted model keeps it; of a policy what it took from the rows."""
    keeps_values = isinstance(policy, Amounts | Centered | EventWeights | Graded | Recency) or (
        isinstance(policy, ItemCount) and value == "ratings"
    )
    return FitInfo(
        fingerprint=fingerprint,
        value=value,
        feedback=policy.to_dict() if keeps_values else None,
        liked=remembered_rule(policy, ratings),
        residual_mean=residuals.mean if isinstance(residuals, RatingResiduals) else None,
        rating_unit=residuals.unit if isinstance(residuals, RatingResiduals) and residuals.unit != 1.0 else None,
        type_weights=list(residuals.weights) if isinstance(residuals, TypeChannels) else None,
    )


def type_channels(policy: Feedback) -> TypeChannels:
    """The weights of the feedback types, each of which has history vectors of its own."""
    base = timeless(policy)
    if not isinstance(base, EventWeights):
        raise DataError("type_vectors=True needs a weight for each feedback type: give feedback=EventWeights(...)")
    return TypeChannels(tuple(base.weights.values()))


def likes_of(rows: TrainingLists, n_items: int, sessions: Int64Array = NO_SESSIONS) -> LikedItems:
    """The rows with a weight above 0, whose `sessions` are given."""
    liked = rows.gains > 0
    indptr = np.concatenate([[0], np.cumsum(liked)])[rows.indptr].astype(np.int64)
    recency_weights = rows.recency_weights[liked] if rows.recency_weights.size else EQUAL_RECENCY
    return LikedItems(indptr, rows.items[liked], n_items, recency_weights, sessions)


def fit_frozen_terms(
    selection: Selection,
    residuals: RatingResiduals | TypeChannels | None,
    counts: IntArray,
    likes: LikedItems,
    *,
    left_out: bool = True,
) -> tuple[FrozenTerms, Float32Array | None]:
    """What training takes from the likes of all users, and for each like the neighbors' score when its user is left out.

    `counts` are the likes of each item; no scores where the model has no neighbors, or without `left_out`.
    """
    channels = len(residuals.weights) if isinstance(residuals, TypeChannels) else 1
    sampling_weights = item_sampling_weights(counts) if selection.negatives and selection.popular else None
    if selection.ridge is None:
        return FrozenTerms(None, sampling_weights, channels=channels), None
    solved = fit_neighbors(likes, selection.ridge, left_out=left_out)
    if not left_out:
        return FrozenTerms(solved.neighbors, sampling_weights, channels=channels), None
    scale = start_scale(solved.neighbor_scores)
    return FrozenTerms(solved.neighbors, sampling_weights, scale, channels), solved.neighbor_scores


def start_scale(of_likes: Float32Array) -> float:
    """Where the neighbors' scale begins, by the scores they give to likes whose user is left out."""
    return NEIGHBOR_SCORE_OF_A_LIKE / max(float(np.abs(of_likes).mean()), 1e-6)


def add_neighbors(prepared: Prepared, solved: Solved) -> Prepared:
    """Lists that were prepared without neighbors, with these, solved with left-out scores."""
    frozen = prepared.frozen._replace(neighbors=solved.neighbors, scale=start_scale(solved.neighbor_scores))
    return replace(prepared, frozen=frozen, rows=add_neighbor_scores(prepared.rows, solved.neighbor_scores))


def add_neighbor_scores(rows: TrainingLists, of_likes: Float32Array) -> TrainingLists:
    """The lists with the neighbors' scores of their likes."""
    neighbor_scores = np.zeros(rows.items.size, np.float32)
    neighbor_scores[rows.gains > 0] = of_likes
    return rows._replace(neighbor_scores=neighbor_scores)


def like_sessions(data: Interactions, liked: BoolArray, ridge: Ridge | None) -> Int64Array:
    """The sessions of the liked rows of `data`; empty where a user's likes are together."""
    return NO_SESSIONS if ridge is None or ridge.sessions is None else sessions_of(data, ridge.sessions)[liked]


def item_sampling_weights(counts: IntArray) -> Int64Array:
    """Whole numbers proportional to sqrt(likes + 1) of each item."""
    sampling_weights: Int64Array = np.round(SAMPLING_UNIT * np.sqrt(counts + 1.0)).astype(np.int64)
    return sampling_weights


def check_trainable(weighted: Interactions, selection: Selection) -> None:
    """DataError where nothing can be learned from the rows: some user must have two items with different weights.

    Only that is an order to learn; models of likes need likes.
    """
    if selection.relevant_only:
        _check_likes(weighted, selection)
        return
    weights, sizes = weighted.weights, np.diff(weighted.indptr)
    assert weights is not None
    if sizes.max(initial=0) < 2:
        raise DataError("every user has one item only: there is nothing to rank; give data with longer lists per user")
    if weighted.ratings is not None and np.ptp(weighted.ratings) == 0:
        raise DataError(
            f"all {len(weighted)} ratings are {weighted.ratings[0]:g}: there is no order to learn from them; "
            "give graded ratings, or use Popularity"
        )
    same_user = np.diff(weighted.user_index) == 0
    if not np.any(same_user & (np.diff(weights) != 0)):
        raise DataError(
            f"within every user all weights are equal (for example {weights[0]:g}): training on observed items alone "
            "cannot learn an order from that; rank the whole catalog instead (TopNRank(task='catalog')), give "
            "ratings, weights that differ or dislikes with weight below 0, or use another model that learns from likes "
            "alone (BPR or WARP with negatives=100, MFADG, CLiMF)"
        )


def _check_likes(data: Interactions, selection: Selection) -> None:
    """There must be liked items, and where unobserved ones are sampled, some that a user has not observed."""
    weights, sizes = data.weights, np.diff(data.indptr)
    assert weights is not None
    if selection.negatives and data.n_items == 1:
        raise DataError("the catalog holds one item only: there is nothing to rank; give data with more items")
    if not (weights > 0).any():
        raise DataError(
            f"none of the {len(data)} rows has a weight above 0, so nobody likes anything; check the feedback: it says "
            "which ratings or events count as liked"
        )
    if selection.negatives and sizes.min() == data.n_items:
        raise DataError(
            f"every user has observed all {data.n_items} items: there are no unobserved items to sample; rank the observed "
            "ones: TopNRank with task='rated', or BPR or WARP with negatives=0"
        )
