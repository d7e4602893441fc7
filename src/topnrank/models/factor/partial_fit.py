"""partial_fit: new events, new users and new items, without training again from the start.

The model keeps the value of every training row, so old and new rows make up the whole data again; a pair that comes again
takes its new value. Then

* user_representation="history": users are what their histories are, so new events and new users count at once, exactly;
* what was never trained is trained as usual, for some epochs: the vectors of new items, and with user_representation="factors" the
  vectors of users with new rows;
* all that was trained before stays as it is;
* neighbors and rating offsets, which have closed forms, are computed from the whole data.

Old items so do not learn from new events; train anew when many have come. The learning rate starts as in a new training.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import BoolArray, FloatArray, Int64Array
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict
from topnrank.data.feedback.policies import WeightColumn
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.engines import State, make_engine, on_one_machine
from topnrank.errors import DataError, ParameterError
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import TIMES, VALUES, fitted_arrays, has_sessions
from topnrank.models.factor.prepare import Prepared, prepare
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS
from topnrank.scorers.neighbors import SCALE
from topnrank.training import AdaGrad, make_optimizer, train

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel


def add_rows(model: "FactorModel", new: Interactions, epochs: int) -> Fitted:
    """The fitted state of `model`, all settings given, after the rows of `new`."""
    if not isinstance(make_optimizer(model.optimizer), AdaGrad):
        raise ParameterError(f"partial_fit needs optimizer='adagrad', got {model.optimizer!r}; train anew instead")
    if VALUES not in model.fitted.arrays:
        raise ParameterError(
            "partial_fit: this model does not hold the values of its rows, as early files do not; fit it"
        )
    rows = _weighted(model, new)
    whole = _merged(model, rows)
    known = model.fitted.facts.get("feedback")
    policy = feedback_from_dict(known) if known is not None and model.fitted.facts["value"] == "ratings" else None
    given = model.policy() if model.fitted.facts["value"] == "ratings" else WeightColumn()
    prepared = prepare(whole, policy or given, model.selection(), strict=False)
    state = _state(model, prepared)
    schedule = replace(model.schedule(prepared.rows), epochs=epochs, iterations=None)
    schedule = replace(schedule, users=np.intersect1d(schedule.users, _taught(model, whole, rows)))
    if schedule.users.size and epochs:
        problem = model.problem(prepared.rows, prepared.frozen)
        train(make_engine(on_one_machine(model.engine), problem, state, model.num_threads), schedule)
    facts: dict[str, Any] = {**model.fitted.facts, **prepared.facts, "rows": len(prepared.data)}
    if known is not None:
        facts["feedback"] = known  # that of the events, not of the weights they have become
    return Fitted.of(prepared.data, fitted_arrays(model, state.parameters, prepared), **facts)


def _weighted(model: "FactorModel", new: Interactions) -> Interactions:
    """The new rows with the column that the model was trained on: ratings, or weights by the same feedback."""
    if len(new) == 0:
        raise DataError("partial_fit: there are no new rows")
    value = model.fitted.facts["value"]
    if value == "ratings":
        if new.ratings is None:
            raise DataError("partial_fit: the model was trained on ratings, and the new rows have none")
        return new.take(new.pair_starts)
    known = model.fitted.facts.get("feedback")
    if known is not None and new.types is None:
        raise DataError("partial_fit: the model was trained on feedback types, and the new rows have none")
    policy = feedback_from(model.policy(), new) if known is None else feedback_from_dict(known)
    return policy(new)


def _merged(model: "FactorModel", new: Interactions) -> Interactions:
    """Old and new rows; of a pair that comes again the new one. Known users and items stay, also without rows."""
    fitted, value = model.fitted, str(model.fitted.facts["value"])
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
    if has_sessions(model):
        columns["timestamps"] = np.concatenate([fitted.arrays[TIMES], _times(new, "sessions")])[order].astype(np.int64)
    elif model.selection().recency is not None:
        columns["timestamps"] = np.concatenate([_past(model), _now(new)])[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(user[order], minlength=len(users)))])
    return Interactions(users=users, items=items, indptr=indptr, indices=item[order].astype(np.int32), **columns)


def _column(rows: Interactions, value: str) -> FloatArray:
    column = rows.ratings if value == "ratings" else rows.weights
    assert column is not None
    return column


def _past(model: "FactorModel") -> Int64Array:
    """Moments before 0 in the order of the old rows: only the order of a user's rows matters."""
    half_life = model.selection().recency
    assert half_life is not None
    return -1 - np.round(-half_life * np.log2(model.fitted.arrays[RECENCY_WEIGHTS].astype(np.float64))).astype(np.int64)


def _now(new: Interactions) -> Int64Array:
    times = _times(new, "recency")
    return np.asarray(times - times.min())


def _times(new: Interactions, setting: str) -> Int64Array:
    if new.timestamps is None:
        raise DataError(f"partial_fit: the model has {setting}, which needs timestamps, and the new rows have none")
    return new.timestamps


def _state(model: "FactorModel", prepared: Prepared) -> State:
    """Old parameters in their new places, held fast by accumulators without end; start values for what is new."""
    data, fitted = prepared.data, model.fitted
    state = model.start_state(data.n_users, data.n_items, prepared.frozen)
    places = {"user": data.users.index(fitted.users.ids), "item": data.items.index(fitted.items.ids)}
    trained = places["item"][_has_rows(fitted)]
    for name, block in state.parameters.items():
        if name == SCALE:
            block[:], state.accumulators[name][:] = fitted.arrays[name], np.inf
            continue
        old = places["user" if name == model.scorer().user_block else "item"]
        block[old] = fitted.arrays[name]
        if name != model.scorer().user_block:
            state.accumulators[name][trained] = np.inf
    return state


def _has_rows(fitted: Fitted) -> BoolArray:
    """(n_items,) which items had rows in training."""
    return np.bincount(fitted.indices, minlength=len(fitted.items)) > 0


def _taught(model: "FactorModel", whole: Interactions, new: Interactions) -> Int64Array:
    """Users to visit: those with new items, or with free vectors all who have new rows."""
    rows = np.ones(len(new), np.bool_)
    if model.scorer().user_block is None:
        known = model.fitted.items.index(new.items.ids)
        rows = ((known < 0) | ~_has_rows(model.fitted)[known])[new.indices]
    return np.unique(whole.users.index(new.users.ids[new.user_index[rows]]))
