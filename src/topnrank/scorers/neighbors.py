"""Neighbors: a fixed, sparse item-to-item term beside a scorer, scaled by one learned number.

    f_i = (scorer's score) + beta z_ui,     z_ui = sum over the user's liked items j in N(i) of rho_uj W_ji

W comes from regressions on the likes (`models/linear/neighbors.py`) and stays as it is while the rest is trained. For a liked item
of the user's own, z is that of the regression without this user, so that training sees what prediction will see (with
sessions: without the session of the like).
rho is 1, or less for likes long past (`models/factor/prepare.py`).

    dL/dbeta = sum_i G_i z_ui
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, IntArray

SCALE = "neighbor_scale"
"""Name of the block that holds beta."""


class Neighbors(NamedTuple):
    """N and W of every item."""

    items: Int32Array
    """(n_items, T) N(i), ascending; i itself, with weight 0, fills the places of an item that has fewer"""
    weights: Float32Array
    """(n_items, T) W_ji for the j of the same place"""

    def neighbor_scores(
        self, liked: IntArray, targets: IntArray, recency_weights: FloatArray | None = None
    ) -> Float64Array:
        """z of the items `targets` for a user who likes the items `liked`, each with its strength rho (else 1)."""
        likes = np.zeros(len(self.items))
        likes[liked] = 1.0 if recency_weights is None else recency_weights
        return np.asarray((self.weights[targets] * likes[self.items[targets]]).sum(axis=1))
