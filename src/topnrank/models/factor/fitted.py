"""What a trained model keeps: parameters, and what scoring needs beside them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.kernels.top_items import scores_of
from topnrank.models.factor.prepare import Prepared
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS, neighbor_arrays, neighbor_term
from topnrank.scorers import History, Parameters, RatingResiduals, TrainingLists
from topnrank.scorers._history_kernel import HistoryState, history_vectors

if TYPE_CHECKING:
    from topnrank.models.factor.model import FactorModel

VALUES, TIMES = "seen_values", "seen_times"
"""The arrays of the ratings or weights of the training rows: with them a known user's history can be told again; and of
their times, where sessions are."""


def fitted_arrays(model: "FactorModel", parameters: Parameters, prepared: Prepared) -> dict[str, FloatArray]:
    """The parameters; with user_representation="history" the users' sums and the items' rating offsets; neighbors; the rows' values."""
    arrays: dict[str, FloatArray] = {name: block.astype(np.float32) for name, block in parameters.items()}
    if prepared.residuals is not None:
        arrays["user_factors"] = history_sums(model, arrays, prepared.rows)
    if isinstance(prepared.residuals, RatingResiduals):
        arrays["item_offsets"] = prepared.residuals.offsets
    arrays |= row_arrays(model, prepared)
    if prepared.frozen.neighbors is not None:
        arrays |= neighbor_arrays(prepared.frozen.neighbors, prepared.rows.gains > 0)
    return arrays


def row_arrays(model: "FactorModel", prepared: Prepared) -> dict[str, Any]:
    """What is kept of each training row: its value, its strength in the history, and with sessions its time."""
    values = prepared.data.ratings if prepared.facts["value"] == "ratings" else prepared.data.weights
    assert values is not None
    arrays: dict[str, Any] = {VALUES: values.astype(np.float32)}
    if prepared.rows.recency_weights.size:
        arrays[RECENCY_WEIGHTS] = prepared.rows.recency_weights
    if has_sessions(model):
        arrays[TIMES] = prepared.data.timestamps
    return arrays


def has_sessions(model: "FactorModel") -> bool:
    """Whether the model's neighbors are those of sessions."""
    ridge = model.selection().ridge
    return ridge is not None and ridge.sessions is not None


def history_sums(model: "FactorModel", arrays: dict[str, Any], rows: TrainingLists) -> FloatArray:
    """(n_users, k) s_u of the histories `rows`, for items outside them."""
    scorer = model.scorer()
    assert isinstance(scorer, History)
    names = ("item_factors", "history_factors", "rating_factors", "item_bias")
    state = HistoryState(*(arrays[name].astype(np.float32, copy=False) for name in names))
    sums = np.empty((rows.indptr.size - 1, model.factors), np.float32)
    history_vectors(rows, state, scorer.exponent, sums)
    return sums


def score_users(model: "FactorModel", users: IntArray) -> Float32Array:
    """(len(users), n_items) U V' + b of known users, plus the neighbors' part."""
    block = scores_of(model.user_factors_[users], model.item_factors_, model.item_bias_)
    if (neighbor_scores := neighbor_term(model.fitted)) is not None:
        neighbor_scores.add_to(block, users)
    return block
