"""TFMAP without context: smoothed average precision (Shi, Karatzoglou, Baltrunas, Larson, Hanjalic, Oliver 2012).

P are the relevant items of the list, those with a gain above 0; g is the logistic function. Average precision with g(f_i)
for 1 / rank and g(f_j - f_i) for "j stands above i", to be maximized:

    F = 1/|P| sum_{i in P} g(f_i) sum_{j in P} g(f_j - f_i) = 1/|P| sum_{i in P} g(f_i) (1/2 + R_i)     j = i adds 1/2

    dF/df_j = 1/|P| [ g'(f_j) (1/2 + R_j) - g(f_j) D_j + sum_{i in P} g(f_i) g'(f_j - f_i) ]

R_i is the smooth rank of i among P with the logistic step, C = 1, and D_i its slope (`losses/ranks.py`). Rows with a
gain of 0 or less are ignored. The penalty on the parameters is the model's.

Departs from the paper: no context, so scores come from a matrix factorization and not from a tensor's.

Cautions: F lies between 0 and |P|/2, not between 0 and 1, and it rises with the level of the scores. Of two items with a
given mean score, the two pair terms are largest where the scores are equal: they pull the relevant items together, and
nothing pushes others down. With a mean of at least 0 that holds for all of F; below, the terms j = i are convex and can
favor a spread. Where all scores are very low F is flat: every part of the gradient goes to 0.

Two relevant items at score 0 have R = 1/2, so that F = 1/2 (1/2 + 1/2) for each of them:

    >>> result = SmoothAP().evaluate(np.zeros(3), np.array([1.0, 1.0, 0.0]))
    >>> result.value, result.user.tolist()
    (-0.5, [-0.125, -0.125, 0.0])
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.ranks import rank_pull, smooth_ranks
from topnrank.losses.steps import Sigmoid


@dataclass(frozen=True)
class SmoothAP:
    """The negative of TFMAP's smoothed average precision."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient, pair by pair; rows that are not relevant feel nothing."""
        relevant = gains > 0.0
        f, G = scores[relevant], np.zeros_like(scores)
        if f.size == 0:
            return ListGradient(0.0, G, G, scores.size)
        step, ones = Sigmoid(1.0), np.ones_like(f)
        R, D = smooth_ranks(step, f, ones)
        g = step.h(f)
        slope = step.dh(f) * (0.5 + R) - g * D + rank_pull(step, f, ones, g)
        G[relevant] = -slope / f.size
        return ListGradient(-float(g @ (0.5 + R)) / f.size, G, G, scores.size)
