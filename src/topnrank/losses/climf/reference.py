"""CLiMF: a lower bound of the smoothed reciprocal rank (Shi, Karatzoglou, Baltrunas, Larson, Oliver, Hanjalic 2012).

P are the relevant items of the list, those with a gain above 0; g is the logistic function. To be maximized:

    F = sum_{j in P} [ ln g(f_j) + sum_{k in P} ln(1 - g(f_k - f_j)) ]              k = j adds the constant -ln 2

    dF/df_j = g(-f_j) + sum_{k in P} tanh((f_k - f_j) / 2) = g(-f_j) + 2 R_j - (|P| - 1)

R_j is the smooth rank of j among P with the logistic step, C = 1, j itself left out. The tanh is what the paper's
fraction of g' collapses to; nothing in it overflows. Rows with a gain of 0 or less are ignored. The penalty on the
parameters is the model's.

Departs from the paper: `mean_pairs` divides the pair term of F by |P| - 1. In the paper's sum it outweighs ln g(f_j) the
more the longer the list; as a mean the two keep their proportion. `mean_pairs=False` is the paper's.

Caution: a pair adds ln g(x) + ln g(-x), which is largest at x = 0. The pair term pulls the relevant items' scores
together; only ln g(f_j) raises them, and nothing pushes any item down. -F is convex in the scores.

Two relevant items at score 0: twice ln 2 for ln g(0), and ln 2 for the pair of each with itself and with the other:

    >>> result = CLiMFBound().evaluate(np.zeros(3), np.array([1.0, 1.0, 0.0]))
    >>> bool(np.isclose(result.value, 6 * np.log(2)))
    True
    >>> result.user.tolist()
    [-0.5, -0.5, 0.0]
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.steps import Sigmoid


@dataclass(frozen=True)
class CLiMFBound:
    """The negative of CLiMF's bound."""

    mean_pairs: bool = True
    """Whether each item's pairs are averaged over the other relevant items; the paper adds them up."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient, pair by pair; rows that are not relevant feel nothing."""
        relevant = gains > 0.0
        f, G = scores[relevant], np.zeros_like(scores)
        if f.size == 0:
            return ListGradient(0.0, G, G, scores.size)
        gaps = f[None, :] - f[:, None]  # entry (j, k) is f_k - f_j
        share = 1.0 / max(f.size - 1, 1) if self.mean_pairs else 1.0
        F = -np.logaddexp(0.0, -f).sum() - share * np.logaddexp(0.0, gaps).sum()  # ln g(x) = -ln(1 + e^-x)
        G[relevant] = -Sigmoid(1.0).h(-f) - share * np.tanh(0.5 * gaps).sum(axis=1)
        return ListGradient(-float(F), G, G, scores.size)
