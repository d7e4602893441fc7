"""Top-N-Rank: weighted DCG cut at N, smoothed (Liang, Hu, Dong, Honavar 2018, eq. 4 to 9).

Loss of one list (eq. 8), with a_i = w_i (2^{y_i} - 1) the gain of item i and R_i its smooth rank among the user's items:

    L_u = - sum_i a_i H(N - R_i) D(R_i)         D(R) = 1 / ln(R + 2),  H = the step function (truncated) or 1

Slope in the rank, and score gradients (eq. 9):

    c_i = dL_u/dR_i = a_i [ H'(N - R_i) D(R_i) - H(N - R_i) D'(R_i) ]
    G_j = sum_i c_i h'(f_j - f_i) - c_j sum_l h'(f_l - f_j)          exact
    P_j =                         - c_j sum_l h'(f_l - f_j)          the paper's item gradient (Alg. 2, line 15)

Reads the paper as follows: the factor "wDCG_u" of eq. 9 is the item's own ungated gain a_i / log(R_i + 2); logarithms are
natural; y = 1 for every observed item, so that a weight of -1 acts (with y = 0 below four stars it never would).

Departs from it, each switched off by `TopNRank.paper`:

* `discount=p`: D'(R) = -1 / ((R+2) ln^p(R+2)); p = 2 is DCG, p = 0 is -ln(R+2), smaller p is less top-heavy.
* `gradient_budget`, `squared_weight`: the mass of the gradient is set and a squared term added (`shaping.py`).
* `length_power`: the loss is divided by (number of items with a gain above 0)^length_power, so that long lists do not
  outweigh short ones.
* Unobserved items may be sampled into the list (`ListContext`): their gain a is 0, and in the ranks of the others each
  stands for as many items as the context says: R_i = sum_j w_j h(f_j - f_i), w_j = 1 for the user's own items.
* `anneal_n`: the gate's N starts at the length of the list and shrinks to N during training (`shaping.annealed_n`).

With scores 1 and 0 and gains 1 and -1, h = ReLU and N = 2, the ranks are 0 and 1:

    >>> result = WeightedDCG(ReLU(), n=2, exact=True).evaluate(np.array([1.0, 0.0]), np.array([1.0, -1.0]))
    >>> bool(np.isclose(result.value, -2 / np.log(2) + 1 / np.log(3)))
    True
    >>> result.user.round(4).tolist()
    [-1.1864, 1.1864]
"""

from dataclasses import dataclass, field

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import ListContext, ListGradient
from topnrank.losses.ranks import rank_pull, smooth_ranks
from topnrank.losses.shaping import ShapedObjective, annealed_n
from topnrank.losses.steps import ReLU, StepFunction


@dataclass(frozen=True)
class WeightedDCG(ShapedObjective):
    """The Top-N-Rank objective wDCG@N."""

    step: StepFunction = field(default_factory=ReLU)
    """h in the ranks and H in the gate: the paper uses one function for both."""
    exact: bool = False
    """G for the items too (exact) instead of the paper's partial P."""
    discount: float = 2.0
    """The power p of the discount's slope; 2 is DCG."""
    length_power: float = 0.0
    """The power of the number of positives that the loss is divided by; 0 for the plain sum."""

    def _natural_mass(self, gains: Float64Array) -> float:
        return float(np.abs(gains).sum())

    def _plain(self, scores: Float64Array, gains: Float64Array, context: ListContext) -> ListGradient:
        """Eq. 8 and 9."""
        weights = np.ones_like(scores)
        weights[scores.size - context.sampled :] = context.weight
        gains = gains * max((gains > 0.0).sum(), 1) ** -self.length_power
        R, D = smooth_ranks(self.step, scores, weights)
        cut = annealed_n(self.n, scores.size, self.anneal_n, context.progress)
        value, c = self._gain_and_slope(R, gains, cut)
        P = -c * D
        G = P + rank_pull(self.step, scores, weights, c)
        return ListGradient(value, G, G if self.exact else P, int((self.n > R).sum()))

    def _gain_and_slope(self, R: Float64Array, gains: Float64Array, cut: float) -> tuple[float, Float64Array]:
        """L_u and c = dL_u/dR."""
        log = np.log(R + 2.0)
        p = self.discount
        D = -np.log(log) if p == 1.0 else log ** (1.0 - p) / (p - 1.0)
        minus_D_slope = 1.0 / ((R + 2.0) * log**p)
        if not self.truncate:
            return -float(gains @ D), gains * minus_D_slope
        H, H_slope = self.step.h(cut - R), self.step.dh(cut - R)
        return -float(gains @ (H * D)), gains * (H_slope * D + H * minus_D_slope)
