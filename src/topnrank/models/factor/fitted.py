"""What a trained model keeps: parameters, and what scoring needs beside them."""

from typing import Any

import numpy as np

from topnrank._typing import FloatArray
from topnrank.models.factor.prepare import Prepared, Selection
from topnrank.models.factor.recipe import Recipe
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS, neighbor_arrays
from topnrank.scorers import History, Parameters, RatingResiduals, Scorer, TrainingLists
from topnrank.scorers._history_kernel import HistoryState, history_vector, history_vectors

VALUES, TIMES = "seen_values", "seen_times"
"""The arrays of the ratings or weights of the training rows: with them a known user's history can be told again; and of
their times, where sessions are."""


def fitted_arrays(recipe: Recipe, parameters: Parameters, prepared: Prepared) -> dict[str, FloatArray]:
    """Parameters; for histories the users' sums and the items' rating offsets; neighbors; the rows' values."""
    arrays: dict[str, FloatArray] = {name: block.astype(np.float32) for name, block in parameters.items()}
    if prepared.residuals is not None:
        arrays["user_factors"] = history_sums(recipe.with_channels(prepared.frozen.channels), arrays, prepared.rows)
    if isinstance(prepared.residuals, RatingResiduals):
        arrays["item_offsets"] = prepared.residuals.offsets
    arrays |= row_arrays(recipe, prepared)
    if prepared.frozen.neighbors is not None:
        arrays |= neighbor_arrays(prepared.frozen.neighbors, prepared.rows.gains > 0)
    return arrays


def row_arrays(recipe: Recipe, prepared: Prepared) -> dict[str, Any]:
    """What is kept of each training row: its value, its strength in the history, and with sessions its time."""
    values = prepared.data.ratings if prepared.info.value == "ratings" else prepared.data.weights
    assert values is not None
    arrays: dict[str, Any] = {VALUES: values.astype(np.float32)}
    if prepared.rows.recency_weights.size:
        arrays[RECENCY_WEIGHTS] = prepared.rows.recency_weights
    if has_sessions(recipe.selection):
        arrays[TIMES] = prepared.data.timestamps
    return arrays


def has_sessions(selection: Selection) -> bool:
    """Whether the model's neighbors are those of sessions."""
    ridge = selection.ridge
    return ridge is not None and ridge.sessions is not None


def history_sums(scorer: Scorer, arrays: dict[str, Any], rows: TrainingLists) -> FloatArray:
    """(n_users, k) s_u of the histories `rows`, for items outside them."""
    assert isinstance(scorer, History)
    names = ("item_factors", "history_factors", "rating_factors", "item_bias")
    state = HistoryState(*(arrays[name].astype(np.float32, copy=False) for name in names))
    sums = np.empty((rows.indptr.size - 1, scorer.factors), np.float32)
    if len(sums) == 1:  # one user's request waits for no other thread
        history_vector(rows, 0, state, scorer.exponent, sums[0])
    else:
        history_vectors(rows, state, scorer.exponent, sums)
    return sums
