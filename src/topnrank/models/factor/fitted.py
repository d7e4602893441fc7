"""What a trained model keeps: parameters, and what scoring needs beside them."""

from typing import Any

import numpy as np

from topnrank._typing import FloatArray
from topnrank.models.factor.prepare import FrozenTerms, Prepared
from topnrank.models.factor.recipe import Recipe
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS, neighbor_arrays
from topnrank.scorers import History, Parameters, RatingResiduals, Scorer, TrainingLists
from topnrank.scorers._history_kernel import HistoryState, history_vector, history_vectors
from topnrank.scorers.history import blocks_in_order

VALUES, TIMES = "seen_values", "seen_times"
"""The arrays of the ratings or weights of the training rows: with them a known user's history can be told again; and of
their times, where sessions are."""


def fitted_arrays(recipe: Recipe, parameters: Parameters, prepared: Prepared) -> dict[str, FloatArray]:
    """Parameters; for histories the users' sums and the items' rating offsets; neighbors; the rows' values."""
    arrays = served_parameters(recipe, parameters, prepared.frozen)
    if prepared.residuals is not None:
        arrays["user_factors"] = history_sums(recipe.scorer, arrays, prepared.rows)
    if isinstance(prepared.residuals, RatingResiduals):
        arrays["item_offsets"] = prepared.residuals.offsets
    arrays |= row_arrays(recipe, prepared)
    if prepared.frozen.neighbors is not None:
        arrays |= neighbor_arrays(prepared.frozen.neighbors, prepared.rows.gains > 0)
    return arrays


def served_parameters(recipe: Recipe, parameters: Parameters, frozen: FrozenTerms) -> dict[str, FloatArray]:
    """The parameters as they are scored with: item vectors and biases at their weight, popularity in the biases."""
    arrays: dict[str, FloatArray] = {name: block.astype(np.float32) for name, block in parameters.items()}
    if recipe.factor_weight != 1.0:
        for name in ("item_factors", "item_bias"):
            arrays[name] = arrays[name] * np.float32(recipe.factor_weight)
    if recipe.popularity and frozen.popularity is not None:
        arrays["item_bias"] = arrays["item_bias"] + np.float32(recipe.popularity) * frozen.popularity
    return arrays


def row_arrays(recipe: Recipe, prepared: Prepared) -> dict[str, Any]:
    """What is kept of each training row: its value, its strength in the history, and with sessions its time."""
    values = prepared.data.ratings if prepared.info.value == "ratings" else prepared.data.weights
    assert values is not None
    arrays: dict[str, Any] = {VALUES: values.astype(np.float32)}
    if prepared.rows.recency_weights.size:
        arrays[RECENCY_WEIGHTS] = prepared.rows.recency_weights
    ridge = recipe.selection.ridge
    if ridge is not None and ridge.sessions is not None:
        arrays[TIMES] = prepared.data.timestamps
    return arrays


def history_sums(scorer: Scorer, arrays: dict[str, Any], rows: TrainingLists) -> FloatArray:
    """(n_users, k) s_u of the histories `rows`, for items outside them."""
    assert isinstance(scorer, History)
    state = HistoryState(*(block.astype(np.float32, copy=False) for block in blocks_in_order(arrays)))
    sums = np.empty((rows.indptr.size - 1, scorer.factors), np.float32)
    if len(sums) == 1:  # one user's request waits for no other thread
        history_vector(rows, 0, state, scorer.exponent, sums[0])
    else:
        history_vectors(rows, state, scorer.exponent, sums)
    return sums
