"""xCLiMF: a lower bound of the smoothed expected reciprocal rank (Shi, Karatzoglou, Baltrunas, Larson, Hanjalic 2013).

The gains are q in [0, 1), the probabilities that an item satisfies the user; from ratings r they are
(2^r - 1) / 2^max, r a real number. g is the logistic function. To be maximized:

    F = sum_j q_j [ ln g(f_j) + sum_{k != j} ln(1 - q_k g(f_k - f_j)) ]

    dF/df_j = q_j g(-f_j) + sum_k q_j q_k g'(f_j - f_k) [ 1 / (1 - q_k g(f_k - f_j)) - 1 / (1 - q_j g(f_j - f_k)) ]

Negative gains count as 0, and items with q = 0 are ignored. At q = 1 the logarithm could fall to -infinity, so q is
clipped at 1 - 2^-20. The penalty on the parameters is the model's.

Departs from the paper: `mean_pairs` divides the pair term by the number of other items with q > 0. In the paper's sum it
outweighs q_j ln g(f_j) the more the longer the list, and then the order by grade is learned upside down (see below);
`mean_pairs=False` is the paper's.

Caution: the pair term prefers the lower grade. Its derivative vanishes where e^{f_j - f_k} = q_k / q_j, so for grades 5
and 1 of 5 it is largest with the better item ln 31 = 3.43 below the worse one (5 and 4: ln(31/15) = 0.73 below). The
order by grade comes from q_j ln g(f_j) alone. That is a property of the objective, not of this code.

Two items with q = 1/2 at score 0: each has 1/2 ln g(0) = -1/2 ln 2 and 1/2 ln(1 - 1/4):

    >>> result = XCLiMFBound().evaluate(np.zeros(2), np.full(2, 0.5))
    >>> bool(np.isclose(result.value, np.log(2) - np.log(0.75)))
    True
    >>> result.user.tolist()
    [-0.25, -0.25]
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.steps import Sigmoid

LARGEST = 1.0 - 2.0**-20
"""Gains above this count as this: 1 - q g(x) stays above 2^-20."""


@dataclass(frozen=True)
class XCLiMFBound:
    """The negative of xCLiMF's bound."""

    mean_pairs: bool = True
    """Whether each item's pairs are averaged over the other items with q > 0; the paper adds them up."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient, pair by pair."""
        g, q = Sigmoid(1.0), np.clip(gains, 0.0, LARGEST)
        gaps = scores[None, :] - scores[:, None]  # entry (j, k) is f_k - f_j
        above = q[None, :] * g.h(gaps)  # k satisfies the user before j is seen
        logs = np.log1p(-above)
        np.fill_diagonal(logs, 0.0)
        share = 1.0 / max(int((q > 0.0).sum()) - 1, 1) if self.mean_pairs else 1.0
        F = q @ (share * logs.sum(axis=1) - np.logaddexp(0.0, -scores))  # ln g(x) = -ln(1 + e^-x)
        odds = 1.0 / (1.0 - above)
        G = -q * g.h(-scores) - share * q * ((g.dh(gaps) * (odds - odds.T)) @ q)
        return ListGradient(-float(F), G, G, scores.size)
