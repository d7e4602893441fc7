"""Gaussian ranks: DCG with ranks read off a normal distribution fitted to the list's scores (after Steck 2015).

    z_i = (f_i - mu) / sigma       mu = mean f,  sigma^2 = mean (f - mu)^2 + floor^2
    R_i = (m - 1) Phi(-z_i)        smooth 0-based rank, Phi the standard normal distribution function
    L_u = - sum_i a_i / ln(R_i + 2)

Score gradient, through mu and sigma too, with phi = Phi':

    q_i = dL_u/dz_i = - a_i (m - 1) phi(z_i) / ((R_i + 2) ln^2(R_i + 2))
    dL_u/df_j = ( q_j - mean q - z_j mean(q z) ) / sigma

No sort and no pairs: O(m).

Of Steck's paper ("Gaussian ranking by matrix factorization") only the idea is known here, as cited by the Top-N-Rank
paper: a rank from the mean and the deviation of the scores. Ours are the list (the user's training items),
the discount and the gains (those of Top-N-Rank; negative gains push down), the factor m - 1, and two options:

* `floor`: without it L_u would not change with the scale of the scores, and its gradient would have no bound as they
  draw together. With it the scores have a unit: gaps well below `floor` hardly move the ranks.
* `normalize`: divides by sum |a|.

Cautions. R is a rank only as far as the scores look normal. Within a list |z| <= sqrt(m - 1), so with a few items R
stays away from 0 and m - 1 (two items: 0.159 and 0.841 at best). The R of a list need not be a permutation's, so a list
of equal gains still exerts a force, though its true DCG is constant. Far above `floor` the gradient falls as 1/sigma.

Equal scores have rank (m - 1) / 2 = 1 each, so that equal gains exert no force:

    >>> result = GaussianDCG().evaluate(np.zeros(3), np.ones(3))
    >>> bool(np.isclose(result.value, -3 / np.log(3))), bool(np.allclose(result.user, 0.0))
    (True, True)
"""

import math
from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array
from topnrank.errors import ParameterError
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient


def _upper_tail(z: Float64Array) -> Float64Array:
    """Phi(-z); never negative, unlike 1 - Phi(z)."""
    return np.array([0.5 * math.erfc(x / math.sqrt(2.0)) for x in z])


@dataclass(frozen=True)
class GaussianDCG:
    """Smoothed DCG with Gaussian ranks."""

    floor: float = 0.5
    """Added to the deviation of the scores (in squares); above 0."""
    normalize: bool = False
    """Whether the loss is divided by the sum of the absolute gains."""

    def __post_init__(self) -> None:
        if not (self.floor > 0.0 and math.isfinite(self.floor)):
            raise ParameterError(f"floor must be a finite number above 0, got {self.floor!r}")

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its exact gradient; every item counts."""
        others = scores.size - 1
        centered = scores - np.mean(scores)
        centered = centered - np.mean(centered)  # the rounding of the first mean, which matters when |mean f| is large
        sigma = math.hypot(math.sqrt(float(np.mean(centered**2))), self.floor)
        z = centered / sigma
        R = others * _upper_tail(z)
        a = self._weights(gains)
        log = np.log(R + 2.0)
        density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
        q = -a * others * density / ((R + 2.0) * log**2)
        G = (q - np.mean(q) - z * np.mean(q * z)) / sigma
        return ListGradient(-float(np.sum(a / log)), G, G, scores.size)

    def _weights(self, gains: Float64Array) -> Float64Array:
        total = float(np.abs(gains).sum())
        return gains / total if self.normalize and total > 0.0 else gains
