"""partial_fit: new events, new users and new items, without training again from the start.

The model keeps the value of every training row, so old and new rows make up the whole data again; a pair that comes again
takes its new value. Then

* user_representation="history": users are what their histories are, so new events and new users count at once, exactly;
* what was never trained is trained as usual, for some epochs: the vectors of new items, and with
  user_representation="factors" the vectors of users with new rows;
* all that was trained before stays as it is;
* neighbors and rating offsets, which have closed forms, are computed from the whole data.

Old items so do not learn from new events; train anew when many have come. The learning rate starts as in a new training.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import BoolArray, FloatArray, Int64Array
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict, fitted_policy
from topnrank.data.feedback.policies import EventWeights, Feedback, WeightColumn
from topnrank.data.feedback.recency import timeless
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.engines import State, make_engine, on_one_machine
from topnrank.errors import DataError, ParameterError
from topnrank.models.base import FitInfo, Fitted
from topnrank.models.factor.fitted import TIMES, VALUES, fitted_arrays
from topnrank.models.factor.prepare import Prepared, prepare
from topnrank.models.factor.recipe import Recipe
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS
from topnrank.scorers.neighbors import SCALE
from topnrank.training import AdaGrad, train

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel


def add_rows(model: "FactorModel", recipe: Recipe, new: Interactions, epochs: int) -> Fitted:
    """The fitted state of `model`, which was trained by `recipe`, after the rows of `new`."""
    if not isinstance(recipe.optimizer, AdaGrad):
        raise ParameterError(f"partial_fit needs optimizer='adagrad', got {model.optimizer!r}; train anew instead")
    if VALUES not in model.fitted.arrays:
        raise ParameterError(
            "partial_fit: this model does not hold the values of its rows, as early files do not; fit it"
        )
    info = model.fitted.info
    recipe = replace(recipe, factor_weight=1.0, popularity=0.0)  # they are in the numbers that are trained on
    rows = _weighted(info, recipe, new)
    whole = _merged(model.fitted, recipe, rows)
    policy: Feedback | str | None = WeightColumn()
    if info.value == "ratings":
        policy = fitted_policy(recipe.feedback, info.feedback)
    prepared = prepare(whole, policy, recipe.selection, strict=False, unit=info.rating_unit or 1.0)
    state = _state(model.fitted, recipe, prepared)
    schedule = recipe.schedule(prepared.rows)
    users = np.intersect1d(schedule.users, _users_to_train(model.fitted, recipe, whole, rows))
    schedule = replace(schedule, users=users, rounds=epochs, whole=True)
    if schedule.users.size and epochs:
        problem = recipe.problem(prepared.rows, prepared.frozen)
        train(make_engine(on_one_machine(recipe.engine), problem, state, recipe.num_threads), schedule)
    now = prepared.info
    info = replace(
        info,
        fingerprint=now.fingerprint,
        feedback=info.feedback or now.feedback,  # that of the events, not of the weights they have become
        residual_mean=now.residual_mean,
        type_weights=now.type_weights or info.type_weights,
    )
    fitted = Fitted.of(prepared.data, fitted_arrays(recipe, state.parameters, prepared), info, recipe)
    return model.completed(fitted, prepared.data)


def _weighted(info: FitInfo, recipe: Recipe, new: Interactions) -> Interactions:
    """The new rows with the column that the model was trained on: ratings, or weights by the same feedback."""
    if len(new) == 0:
        raise DataError("partial_fit: there are no new rows")
    if info.value == "ratings":
        if new.ratings is None:
            raise DataError("partial_fit: the model was trained on ratings, and the new rows have none")
        return new.take(new.pair_starts)
    by_type = info.feedback is not None and timeless(feedback_from_dict(info.feedback))
    if isinstance(by_type, EventWeights) and new.types is None:
        raise DataError("partial_fit: the model was trained on feedback types, and the new rows have none")
    policy = feedback_from(recipe.feedback, new) if info.feedback is None else feedback_from_dict(info.feedback)
    return policy(new)


def _merged(fitted: Fitted, recipe: Recipe, new: Interactions) -> Interactions:
    """Old and new rows; of a pair that comes again the new one. Known users and items stay, also without rows."""
    value = str(fitted.info.value)
    if new.users.is_integer != fitted.users.is_integer or new.items.is_integer != fitted.items.is_integer:
        raise DataError("partial_fit: the ids of the new rows are of another kind (numbers or text) than the model's")
    users, user_codes = IdMap.encode(np.concatenate([fitted.users.ids, new.users.ids]))
    items, item_codes = IdMap.encode(np.concatenate([fitted.items.ids, new.items.ids]))
    owners = np.repeat(np.arange(len(fitted.users)), np.diff(fitted.indptr))
    user = user_codes[np.concatenate([owners, len(fitted.users) + new.user_index])].astype(np.int64)
    item = item_codes[np.concatenate([fitted.indices, len(fitted.items) + new.indices])].astype(np.int64)
    pair, n_old = user * len(items) + item, len(fitted.indices)
    kept = np.ones(pair.size, np.bool_)
    kept[:n_old] = ~np.isin(pair[:n_old], pair[n_old:])
    order = np.flatnonzero(kept)[np.argsort(pair[kept], kind="stable")]
    columns: dict[str, Any] = {value: np.concatenate([fitted.arrays[VALUES], _column(new, value)])[order]}
    if TIMES in fitted.arrays:
        of_sessions = recipe.selection.ridge is not None and recipe.selection.ridge.sessions is not None
        times = _times(new, "sessions" if of_sessions else "an order of rows")
        columns["timestamps"] = np.concatenate([fitted.arrays[TIMES], times])[order].astype(np.int64)
    elif recipe.selection.recency is not None:
        past = _past(fitted, recipe.selection.recency)
        columns["timestamps"] = np.concatenate([past, _now(new)])[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(user[order], minlength=len(users)))])
    return Interactions(users=users, items=items, indptr=indptr, indices=item[order].astype(np.int32), **columns)


def _column(rows: Interactions, value: str) -> FloatArray:
    column = rows.ratings if value == "ratings" else rows.weights
    assert column is not None
    return column


def _past(fitted: Fitted, half_life: float) -> Int64Array:
    """Times before 0 in the order of the old rows: only the order of a user's rows matters."""
    return -1 - np.round(-half_life * np.log2(fitted.arrays[RECENCY_WEIGHTS].astype(np.float64))).astype(np.int64)


def _now(new: Interactions) -> Int64Array:
    times = _times(new, "recency")
    return np.asarray(times - times.min())


def _times(new: Interactions, setting: str) -> Int64Array:
    if new.timestamps is None:
        raise DataError(f"partial_fit: the model has {setting}, which needs timestamps, and the new rows have none")
    return new.timestamps


def _state(fitted: Fitted, recipe: Recipe, prepared: Prepared) -> State:
    """Old parameters in their new places, held fast by accumulators without end; start values for what is new."""
    data = prepared.data
    state = recipe.start_state(data.n_users, data.n_items, prepared.frozen)
    places = {"user": data.users.index(fitted.users.ids), "item": data.items.index(fitted.items.ids)}
    trained = places["item"][_has_rows(fitted)]
    for name, block in state.parameters.items():
        if name == SCALE:
            block[:], state.accumulators[name][:] = fitted.arrays[name], np.inf
            continue
        old = places["user" if name == recipe.scorer.user_block else "item"]
        block[old] = fitted.arrays[name]
        if name != recipe.scorer.user_block:
            state.accumulators[name][trained] = np.inf
    return state


def _has_rows(fitted: Fitted) -> BoolArray:
    """(n_items,) which items had rows in training."""
    return np.bincount(fitted.indices, minlength=len(fitted.items)) > 0


def _users_to_train(fitted: Fitted, recipe: Recipe, whole: Interactions, new: Interactions) -> Int64Array:
    """Users to train on: those with new items, or with free vectors all who have new rows."""
    rows = np.ones(len(new), np.bool_)
    if recipe.scorer.user_block is None:
        known = fitted.items.index(new.items.ids)
        rows = ((known < 0) | ~_has_rows(fitted)[known])[new.indices]
    return np.unique(whole.users.index(new.users.ids[new.user_index[rows]]))
