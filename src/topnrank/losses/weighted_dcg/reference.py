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
* `gradient_budget`, `squared_weight`: the gradient's mass is set and a squared term added, as `shaping.py` says.
* `length_power`: the loss is divided by (number of items with a weight above 0)^balance, so that long lists do not outweigh.
* Unobserved items may be sampled into the list (`ListContext`): their weight a is 0, and in the ranks of the others each
  stands for as many items as the context says: R_i = sum_j w_j h(f_j - f_i), w_j = 1 for the user's own items.
* `anneal_n`: the gate's N starts at the length of the list and shrinks to N while training goes on (`shaping.annealed_n`).

MRR, MAP and AUC in place of DCG: `truncated.py`.
"""

from dataclasses import dataclass, field

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.ranks import rank_pull, smooth_ranks
from topnrank.losses.shaping import Shape, annealed_n, gradient_budget_scale, shaped
from topnrank.losses.steps import ReLU, StepFunction


@dataclass(frozen=True)
class WeightedDCG:
    """The Top-N-Rank objective wDCG@N."""

    step: StepFunction = field(default_factory=ReLU)
    """h in the ranks and H in the gate: the paper uses one function for both."""
    n: int = 20
    """The N of wDCG@N."""
    truncate: bool = True
    """Whether the gate H(N - R) multiplies the gain; without it the objective is the smoothed, uncut wDCG."""
    exact: bool = False
    """G for the items too (exact) instead of the paper's partial P."""
    discount: float = 2.0
    """The power p of the discount's slope; 2 is DCG."""
    gradient_budget: float = 0.0
    """Total mass of a user's list-wise gradient per item of min(m, N); 0 leaves the gradient as it is."""
    squared_weight: float = 0.0
    """Weight of the squared term."""
    anneal_n: float = 0.0
    """Share of the training in which the gate's N shrinks from the length of the list to N; 0 for N throughout."""
    length_power: float = 0.0
    """The power of the number of liked items that the loss is divided by; 0 for the plain sum."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and score gradients of one list, pair by pair: O(m^2)."""
        return shaped(self._plain(scores, gains, context), scores, gains, self._shape(gains))

    def frozen_scale(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> float:
        """The budget's scale at `scores`; the gradient is that of scale * L_u + anchor term with this number constant."""
        return gradient_budget_scale(self._plain(scores, gains, context), self._shape(gains))

    def _shape(self, gains: Float64Array) -> Shape:
        return Shape(self.gradient_budget * min(gains.size, self.n), float(np.abs(gains).sum()), self.squared_weight)

    def _plain(self, scores: Float64Array, gains: Float64Array, context: ListContext) -> ListGradient:
        """Eq. 8 and 9, without budget and anchor."""
        weights = np.ones_like(scores)
        weights[scores.size - context.sampled :] = context.weight
        gains = gains * max((gains > 0.0).sum(), 1) ** -self.length_power
        R, D = smooth_ranks(self.step, scores, weights)
        cut = annealed_n(self.n, scores.size, self.anneal_n, context.progress)
        value, c = self._gain_and_slope(R, gains, cut)
        own = -c * D
        user = own + rank_pull(self.step, scores, weights, c)
        return ListGradient(value, user, user if self.exact else own, int((self.n > R).sum()))

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
