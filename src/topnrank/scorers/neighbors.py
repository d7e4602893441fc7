"""Neighbors: a fixed, sparse item-to-item term added to a scorer, scaled by one learned number.

    f_i = (scorer's score) + beta z_ui,     z_ui = sum over the user's positive items j in N(i) of rho_uj W_ji

W comes from ridge regressions (`models/linear/neighbors.py`) and is not trained further:

    G = X' diag(w) X,  X the (users, items) matrix of positives
    N(i) = the T items j != i with the largest G_ij / (sqrt(G_ii G_jj) + shrink)
    W_i  = (G[N, N] + lambda I)^-1 G[N, i]                            one T x T system for each item

EASE (Steck 2019) is the same regression with N(i) = all other items. In training, z of a user's own positive item is that of
the regression without this user (with sessions: without the session of the row), so that training sees what prediction will
see. rho is 1, or less for rows long past (`models/factor/prepare.py`).

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
    """(n_items, T) N(i), ascending; padded with i itself, with weight 0, for an item that has fewer"""
    weights: Float32Array
    """(n_items, T) W_ji of the items j in `items`"""

    def neighbor_scores(
        self, positives: IntArray, targets: IntArray, recency_weights: FloatArray | None = None
    ) -> Float64Array:
        """z of the items `targets` for a user with the items `positives`, each with its recency weight rho (else 1)."""
        weights = np.zeros(len(self.items))
        weights[positives] = 1.0 if recency_weights is None else recency_weights
        return np.asarray((self.weights[targets] * weights[self.items[targets]]).sum(axis=1))
