"""Squared loss on centred scores and gains: the point-wise control, and the anchor of Top-N-Rank.

    L_u = 1/2 sum_i z_i^2,     z_i = (f_i - mean f) - (a_i - mean a),     dL_u/df_i = z_i

Centring solves for the user's bias in closed form: among all constants added to the user's scores the best one is
mean a - mean f. So a factorisation with item bias under this loss is the usual biased matrix factorisation.
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.objectives.base import PLAIN, ListGradient, Occasion


@dataclass(frozen=True)
class Squared:
    """Half the squared error of a list after the user's bias has been fitted."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, occasion: Occasion = PLAIN) -> ListGradient:
        """Loss and its gradient z; every item counts."""
        z = (scores - np.mean(scores)) - (gains - np.mean(gains))
        return ListGradient(0.5 * float(z @ z), z, z, scores.size)
