"""MF-ADG, our reconstruction: averaged discounted gain against sampled unobserved items (after Lim et al. 2015).

The method is a baseline of the Top-N-Rank paper, which cites Lim et al. 2015: taken to be Lim, McAuley, Lanckriet,
"Top-N Recommendation with Missing Implicit Feedback". That paper could not be read. Known of it are

* its abstract: a missing-data model for implicit feedback, a measure for top-N lists that can be estimated without bias
  under that model (NDCG cannot), and an algorithm that optimizes the measure;
* what the Top-N-Rank paper says: the measure is the averaged discounted gain (ADG), "obtained by averaging the DCG
  across all users"; a sampling parameter gamma is set to 100;
* from memory, unconfirmed: ADG is DCG divided by the number of relevant items.

Ours is the rest: the smoothing, the estimate of the rank from a sample, and the gradient. With P_u the user's own rows
with a gain above 0, S_u the sampled rows, row s of which stands for weight_s unobserved items, and g the logistic
function:

    L_u = - ADG_u = - 1/|P_u| sum_{i in P_u} 1 / log2(2 + R_i),     R_i = sum_{s in S_u} weight_s g(C (f_s - f_i))

Score gradients, exact for the sample drawn, with h(x) = g(Cx):

    c_i = dL_u/dR_i = ln 2 / (|P_u| (2 + R_i) ln^2(2 + R_i))
    dL_u/df_i = - c_i sum_{s in S_u} weight_s h'(f_s - f_i)       positives
    dL_u/df_s = + weight_s sum_{i in P_u} c_i h'(f_s - f_i)       sampled rows

All positives of a user share one sample, and only sampled rows count in the ranks: positives do not push each other
down, and own rows with a gain of 0 or less neither count nor move. R_i is estimated without bias; its discount is not,
because 1 / log2 is convex. Without sampled rows (the user has seen everything) R = 0, the loss is -1 and nothing moves;
without positives the loss is 0. The loss lies between -1 and 0. Far from the sampled items the force on a positive
vanishes.

A positive and a sampled row at equal scores; the row stands for 4 unobserved items, so that R = 4 g(0) = 2 and the loss is
-1 / log2(4):

    >>> result = AveragedDiscountedGain().evaluate(np.zeros(2), np.array([1.0, 0.0]), ListContext(sampled=1, weight=4.0))
    >>> bool(np.isclose(result.value, -0.5)), result.user.round(4).tolist()
    (True, [-0.0902, 0.0902])
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.steps import Sigmoid


@dataclass(frozen=True)
class AveragedDiscountedGain:
    """Smoothed ADG of the positives among sampled unobserved items."""

    steepness: float = 1.0
    """C of the logistic step in the ranks."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and exact gradient for the sample at hand, pair by pair: O(|P| S)."""
        own = scores.size - context.sampled
        positives = np.flatnonzero(gains[:own] > 0.0)
        G = np.zeros(scores.size)
        if positives.size == 0:
            return ListGradient(0.0, G, G, scores.size)
        step = Sigmoid(self.steepness)
        gaps = scores[None, own:] - scores[positives, None]
        R = (context.weight * step.h(gaps)).sum(axis=1)
        log = np.log(2.0 + R)
        c = np.log(2.0) / (positives.size * (2.0 + R) * log**2)
        force = context.weight * c[:, None] * step.dh(gaps)
        G[positives] = -force.sum(axis=1)
        G[own:] = force.sum(axis=0)
        return ListGradient(-float(np.mean(np.log(2.0) / log)), G, G, scores.size)
