"""Users never seen in training: a history sum, or a vector fitted under the model's own objective."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import BoolArray, Float32Array, FloatArray, IntArray
from topnrank.data.feedback.by_name import fitted_policy
from topnrank.data.feedback.liked import LikedRule
from topnrank.data.feedback.policies import Feedback, Threshold
from topnrank.data.feedback.recency import timeless
from topnrank.data.interactions import Interactions
from topnrank.engines import State, TrainingTime, make_engine, on_one_machine
from topnrank.errors import ParameterError
from topnrank.models.factor.fitted import history_sums
from topnrank.models.factor.prepare import (
    NO_FROZEN_TERMS,
    FrozenTerms,
    item_sampling_weights,
    prepare,
    recency_weights_in_order,
)
from topnrank.models.linear.neighbors import neighbor_term
from topnrank.scorers import History, Parameters, RatingResiduals, TrainingLists, TypeChannels, UpdateRule
from topnrank.scorers.neighbors import SCALE

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel


def score_histories(model: "FactorModel", indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
    """(n, n_items) scores for users never seen, whose histories are a CSR, each from the oldest item to the latest."""
    recency_weights, arrays = history_recency_weights(model, indptr), model.fitted.arrays
    if isinstance(model.recipe_.scorer, History):
        residuals = residuals_of(model, indptr, items, values)
        lists = TrainingLists(
            indptr.astype(np.int64, copy=False),
            items.astype(np.int32),
            recency_weights,
            residuals,
            recency_weights=recency_weights,
        )
        vectors = history_sums(model.recipe_.scorer, arrays, lists)
    else:
        parts = (slice(lo, hi) for lo, hi in pairwise(indptr.tolist()))
        vectors = np.stack([fold_in(model, items[own], None if values is None else values[own]) for own in parts])
    item_factors, bias = (arrays[name].astype(np.float32, copy=False) for name in ("item_factors", "item_bias"))
    scores = vectors.astype(np.float32, copy=False) @ item_factors.T + bias
    if (neighbors := neighbor_term(model.fitted)) is not None:
        for n, (lo, hi) in enumerate(pairwise(indptr.tolist())):
            own = slice(lo, hi)
            liked = liked_part(model, items[own], None if values is None else values[own])
            neighbors.add_history(scores[n], items[own][liked], recency_weights[own][liked])
    return np.asarray(scores, np.float32)


def residuals_of(model: "FactorModel", indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
    """e of histories. Without values items count as average ones, so only "rated at all" speaks; where types have vectors
    of their own, as of the type with the largest weight."""
    info, values = model.fitted.info, as_in_training(model, values)
    if (weights := info.type_weights) is not None:
        return TypeChannels(tuple(weights)).of(
            indptr, items, np.full(items.size, max(weights)) if values is None else values
        )
    if values is None:
        return np.zeros((items.size, 1), np.float32)
    known = RatingResiduals(model.array("item_offsets"), float(info.residual_mean or 0.0), info.rating_unit or 1.0)
    return known.of(indptr, items, values)


def as_in_training(model: "FactorModel", values: FloatArray | None) -> FloatArray | None:
    """The numbers of histories as training knew them: of counts and amounts only the signs."""
    known = model.fitted.info.feedback
    return np.sign(values) if values is not None and known is not None and known["kind"] == "amounts" else values


def history_recency_weights(model: "FactorModel", indptr: IntArray) -> Float32Array:
    """rho of histories, each given from the oldest item to the latest."""
    half_life = model.recipe_.selection.recency
    if half_life is None:
        return np.ones(int(indptr[-1]), np.float32)
    return np.concatenate([recency_weights_in_order(int(size), half_life) for size in np.diff(indptr)])


def liked_part(model: "FactorModel", items: IntArray, values: FloatArray | None) -> BoolArray:
    """(n,) which items of a history count as liked; without values all do."""
    if values is None:
        return np.ones(items.size, np.bool_)
    policy = model.recipe_.feedback
    if isinstance(policy, Threshold) and model.fitted.info.value == "ratings":
        return LikedRule(policy.at).flags(values)  # the usual case, without the detour over Interactions
    rows, chosen = _one_user(model, items, values)
    numbers = chosen[rows.items] if not model.recipe_.selection.negatives else rows.items
    return np.isin(items, numbers[rows.gains > 0])


def fold_in(model: "FactorModel", items: IntArray, values: FloatArray | None) -> FloatArray:
    """A user vector from the usual visits with all items fixed, starting at the mean user."""
    if values is None and not model.recipe_.selection.relevant_only:
        raise ParameterError(
            "recommend: with user_representation='factors' a history needs ratings: give (item, rating) pairs"
        )
    rows, numbers = _one_user(model, items, values)
    if rows.listed.size and not rows.listed.any():
        raise ParameterError(
            f"recommend: no item of this history counts as liked, and {type(model).__name__} learns from likes alone; give "
            "the liked items without ratings, or ratings that differ"
        )
    blocks: Parameters = {
        "user_factors": model.user_factors_.mean(axis=0, keepdims=True),
        "item_factors": model.item_factors_[numbers],
        "item_bias": model.item_bias_[numbers],
    }
    frozen = NO_FROZEN_TERMS
    if model.recipe_.selection.negatives:
        rows, frozen = _frozen_for_user(model, rows, blocks)
    problem = model.recipe_.problem(rows, frozen)
    problem.rules[SCALE] = UpdateRule(False, 0.0, 0.0)
    for block in ("item_factors", "item_bias"):
        problem.rules[block] = UpdateRule(False, 0.0, 0.0)
    state = State.start(blocks, model.recipe_.optimizer.initial)
    engine = make_engine(on_one_machine(model.recipe_.engine), problem, state, 1)
    steps = model.recipe_.steps_per_user(len(model.user_map), max(1, model.best_round_))
    for n in range(steps):
        engine.step(np.zeros(1, np.int64), TrainingTime(n, n / max(steps - 1, 1)))
    return np.asarray(engine.state.parameters["user_factors"][0])


def _frozen_for_user(
    model: "FactorModel", rows: TrainingLists, blocks: Parameters
) -> tuple[TrainingLists, FrozenTerms]:
    """Chances and neighbors of the trained model; the user was not part of them, so links need no leaving out."""
    selection, neighbor_scores = model.recipe_.selection, neighbor_term(model.fitted)
    sampling_weights = None
    if selection.popular:
        seen = model.seen_indices if neighbor_scores is None else neighbor_scores.liked
        sampling_weights = item_sampling_weights(np.bincount(seen, minlength=len(model.item_map)))
    if neighbor_scores is None:
        return rows, FrozenTerms(None, sampling_weights)
    blocks[SCALE] = np.array([neighbor_scores.scale], np.float32)
    liked = rows.gains > 0
    own = neighbor_scores.neighbors.neighbor_scores(
        rows.items[liked], rows.items, rows.recency_weights[liked] if rows.recency_weights.size else None
    )
    return rows._replace(neighbor_scores=own.astype(np.float32)), FrozenTerms(
        neighbor_scores.neighbors, sampling_weights
    )


def _one_user(model: "FactorModel", items: IntArray, values: FloatArray | None) -> tuple[TrainingLists, IntArray]:
    """The history as the rows of one user, and which item each of its item numbers is.

    Only the items of the history travel, unless unobserved ones are sampled from all the others. A history without
    values means: all of them liked.
    """
    known, value = model.fitted.info.feedback, str(model.fitted.info.value)
    values = as_in_training(model, values)
    policy = model.recipe_.feedback if value == "ratings" else "weights"  # what a row's number was in training
    if values is None:
        value, policy, values = "weights", "weights", np.ones(items.size)
    elif value == "ratings":  # by the scale of the training rows, not by that of this history
        policy = fitted_policy(model.recipe_.feedback, known)
    if isinstance(policy, Feedback):
        policy = timeless(policy)  # a history has no times
    column: dict[str, Any] = {value: values}
    one = Interactions.from_arrays(np.zeros(items.size, np.int64), np.asarray(items, np.int64), **column)
    selection = model.recipe_.selection._replace(ridge=None, popular=False, recency=None, by_type=False)
    prepared = prepare(one, policy, selection, strict=False)
    chosen = prepared.data.items.ids.astype(np.int64)
    if not model.recipe_.selection.negatives:
        return prepared.rows, chosen
    return prepared.rows._replace(items=chosen[prepared.rows.items].astype(np.int32)), np.arange(len(model.item_map))
