"""Why a score is what it is: the part of each item of the user's history.

    f_i = b_i + sum_{j in I_u} c_u rho_uj <y_j + e_uj x_j, q_i> + beta sum_{liked j in N(i)} rho_uj W_ji        c_u = m^-h

A score is a sum over the history, so the parts are exact; nothing is approximated. A model that adds a further sum over
the history adds a further kind of parts.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from topnrank._typing import Float64Array, FloatArray, Int64Array, IntArray
from topnrank.errors import ParameterError
from topnrank.models.base import Model
from topnrank.models.factor.fitted import VALUES
from topnrank.models.factor.new_users import history_recency_weights, liked_part, residuals_of
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS, neighbor_term
from topnrank.models.sequence.links import PAST
from topnrank.models.serving.histories import one_history
from topnrank.models.serving.tables import id_column
from topnrank.scorers import History

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel


class Contributions(NamedTuple):
    """The scores of some items as sums, row t for the t-th of them."""

    parts: dict[str, Float64Array]
    """By kind: (n_targets, n) what each of the n items of the history gives"""
    rest: dict[str, Float64Array]
    """By kind: (n_targets,) what does not come from the history"""


class OneHistory(NamedTuple):
    """The history of one user."""

    items: IntArray
    values: FloatArray | None
    """Ratings or weights"""
    recency_weights: FloatArray | None = None
    """rho of a known user's rows; None for a history given from the oldest item to the latest"""
    past: FloatArray | None = None
    """(n, S) what a known user's rows count in a model of order; None as above"""
    user: int | None = None
    """The number of a known user"""


def history_contributions(model: "FactorModel", history: OneHistory, targets: IntArray) -> Contributions:
    """The parts of a model of histories: those of the factors, and those of the neighbors where it has them."""
    scorer, items = model.recipe_.scorer, history.items
    if not isinstance(scorer, History):
        raise ParameterError(
            f"explain: this {type(model).__name__} has free user vectors, in which a user's items cannot be told apart; "
            "train it with user_representation='history'"
        )
    whole = np.array([0, items.size])
    residuals = residuals_of(model, whole, items, history.values)
    rho = history_recency_weights(model, whole) if history.recency_weights is None else history.recency_weights
    vectors = scorer.scale(items.size) * rho[:, None] * scorer.parts(model.fitted.arrays, items, residuals)
    q = model.item_factors_[targets].astype(np.float64)
    parts = {"history": q @ vectors.T}
    if (neighbor_scores := neighbor_term(model.fitted)) is not None:
        liked = liked_part(model, items, history.values)
        parts["neighbors"] = neighbor_scores.parts(items, targets) * (rho * liked)
    return Contributions(parts, {"bias": model.item_bias_[targets].astype(np.float64)})


def explain_users(model: Model, users: Any, items: Any) -> pa.Table:
    """The parts of the scores of pairs of known users and items, in the order asked for."""
    if users is None or items is None:
        raise ParameterError("explain: give a user and an item, or a history and an item")
    numbers, targets = model.pair_numbers("explain", users, items)
    if not numbers.size:
        raise ParameterError("explain: there are no pairs; give at least one user and one item")
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # neighboring pairs of one user are explained together
    return pa.concat_tables(
        [
            _user_table(model, int(numbers[run[0]]), targets[run])
            for run in np.split(np.arange(numbers.size), starts[1:])
        ]
    )


def explain_history(model: Model, history: Any, items: Any) -> pa.Table:
    """The parts of the scores of items for a user never seen."""
    if items is None:
        raise ParameterError("explain: give the item to explain")
    own, targets = one_history(model, history), model.item_numbers(items)
    values = None if np.isnan(own.values).any() else own.values
    return _table(model, own.items, model.contributions(OneHistory(own.items, values), targets), targets)


def history_of_user(model: Model, user: int) -> OneHistory:
    """What a known user was trained on."""
    rows = slice(*model.seen_indptr[user : user + 2].tolist())
    own, values = model.seen_indices[rows], model.fitted.arrays.get(VALUES)
    if values is None and "item_offsets" in model.fitted.arrays:  # ratings took part in the user's vector
        raise ParameterError(
            "explain: this model does not hold the values of its users' histories, as files of early versions do not; "
            "train it again, or give the user's history"
        )
    recency_weights = model.fitted.arrays.get(RECENCY_WEIGHTS)
    past = model.fitted.arrays.get(PAST)
    return OneHistory(
        own,
        None if values is None else values[rows],
        None if recency_weights is None else recency_weights[rows],
        None if past is None else past[rows],
        user,
    )


def _user_table(model: Model, user: int, targets: Int64Array) -> pa.Table:
    """The reasons for some items of one user."""
    history = history_of_user(model, user)
    parts = model.contributions(history, targets)
    table = _table(model, history.items, parts, targets)
    return table.add_column(0, "user", id_column(np.repeat(model.user_ids_[[user]], table.num_rows)))


def _table(model: Model, own: IntArray, contributions: Contributions, targets: IntArray) -> pa.Table:
    """The reasons for each target, the largest part first; items of the history that give exactly 0 are left out."""
    parts = [(kind, own, block) for kind, block in contributions.parts.items()]
    parts += [(kind, np.array([-1]), block[:, None]) for kind, block in contributions.rest.items()]
    what = np.array([kind for kind, items, _ in parts for _ in items], object)
    because = np.concatenate([items for _, items, _ in parts])
    block = np.concatenate([block for _, _, block in parts], axis=1)
    order = np.argsort(-block, axis=1, kind="stable")
    row, column = np.nonzero(np.take_along_axis((block != 0) | (because < 0), order, axis=1))
    column = order[row, column]
    reasons, text = because[column], model.item_ids_.dtype.kind == "O"
    columns = {
        "item": id_column(model.item_ids_[targets[row]]),
        "what": pa.array(what[column], pa.string()),
        "because": pa.array(
            model.item_ids_[np.maximum(reasons, 0)], pa.string() if text else pa.int64(), mask=reasons < 0
        ),
        "part": block[row, column],
    }
    return pa.table(columns)
