"""Squared loss on centered scores and gains: the loss of BiasedMF, and the squared term of Top-N-Rank.

    L_u = 1/2 sum_i z_i^2,     z_i = (f_i - mean f) - (a_i - mean a),     dL_u/df_i = z_i

Centering solves for the user's bias in closed form: among all constants added to the user's scores the best one is
mean a - mean f. So a factorization with item bias under this loss is the usual biased matrix factorization.

    >>> result = Squared().evaluate(np.array([2.0, 0.0]), np.array([1.0, 0.0]))  # z = (1/2, -1/2)
    >>> result.value, result.user.tolist()
    (0.25, [0.5, -0.5])
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient


@dataclass(frozen=True)
class Squared:
    """Half the squared error of a list after the user's bias has been fitted."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient z; every item counts."""
        z = (scores - np.mean(scores)) - (gains - np.mean(gains))
        return ListGradient(0.5 * float(z @ z), z, z, scores.size)
