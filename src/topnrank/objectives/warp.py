"""WARP: weighted approximate-rank pairwise loss (Weston, Bengio, Usunier 2011), a hinge on the first violator found.

For each positive row i of a visit, candidates are drawn until one violates the margin, f_j > f_i - margin, at most
`tries` draws in all. If the T-th candidate is the first to do so, about one candidate in T violates, so that of J
candidates about rank = max(1, floor(J / T)) do. The row's loss grows with that rank:

    L_u = sum_i Phi(rank_i) max(0, margin - f_i + f_j),     Phi(rank) = ln(1 + rank)

A row that finds no violator has no loss. Score gradient, with Phi held constant (the draws do not change as long as no
score crosses a margin, so it is the derivative wherever there is one):

    dL_u/df_i = - Phi(rank_i),     dL_u/df_j = + Phi(rank_i)

Which rows are positives and candidates depends on the list:

* Without sampled rows ("rated pairs") a row is a positive if some row has a lower gain; J is the number of those rows.
  Draws are uniform over all rows; those with a gain not below a_i are no candidates: they use up a try but do not count
  in T.
* With sampled rows ("against unobserved") the positives are the own rows with a gain above 0, the candidates are drawn
  from the sampled rows, and J is the number of unobserved items they stand for: weight * sampled, rounded.

A violator that was found is at least one, so the rank is never below 1 (draws repeat, so that T can exceed J).

Departs from the paper:

* Phi(rank) = ln(1 + rank) instead of the harmonic sum 1 + 1/2 + ... + 1/rank. It is smaller by at most 0.58.
* Rated pairs are ours: there a "candidate" is a row of lower gain, not an item without feedback.
* Candidates come from the rows sampled for the visit, which all positives of the user share, and a visit makes one step
  along the sum over its positives.

The weight favours the top: a positive that is already above most candidates seldom finds a violator, and if it does,
its step is small. The rank estimate is too high on average, since E[1/T] > 1/E[T]; the logarithm softens that. The loss
jumps where a score crosses a margin, since then another candidate is the first violator.
"""

from dataclasses import dataclass
from math import floor, log1p

import numpy as np

from topnrank._typing import BoolArray, Float64Array, Int64Array
from topnrank.objectives.base import PLAIN, ListGradient, Occasion
from topnrank.objectives.draws import row_draws


@dataclass(frozen=True)
class WarpHinge:
    """The hinge loss against the first violator drawn, weighted by the rank that its rarity suggests."""

    margin: float = 1.0
    """How far a positive should stand above a candidate."""
    tries: int = 30
    """Draws that a positive has to find a violator."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, occasion: Occasion = PLAIN) -> ListGradient:
        """Loss and gradient of the violators found at this visit."""
        value, G = 0.0, np.zeros(scores.size)
        for i in range(scores.size - occasion.sampled):
            j, phi = self.violator(i, scores, gains, occasion)
            if phi > 0.0:
                value += phi * (scores[j] - scores[i] + self.margin)
                G[i] -= phi
                G[j] += phi
        return ListGradient(float(value), G, G, scores.size)

    def violator(self, i: int, scores: Float64Array, gains: Float64Array, occasion: Occasion) -> tuple[int, float]:
        """The first violator that row i draws, and Phi of the rank; Phi is 0 where there is none."""
        drawn, candidate, J = self._drawn(i, gains, occasion)
        violates = scores[drawn] - scores[i] + self.margin > 0.0
        found = np.flatnonzero(candidate & violates)
        if J == 0 or found.size == 0:
            return i, 0.0
        T = int(candidate[: found[0] + 1].sum())
        return int(drawn[found[0]]), log1p(max(J // T, 1))

    def _drawn(self, i: int, gains: Float64Array, occasion: Occasion) -> tuple[Int64Array, BoolArray, int]:
        """Rows that row i draws, which of them are candidates, and how many candidates there are in all."""
        own = gains.size - occasion.sampled
        if occasion.sampled == 0:
            rows = row_draws(occasion, i, own, self.tries)
            return rows, gains[rows] < gains[i], int((gains < gains[i]).sum())
        rows = own + row_draws(occasion, i, occasion.sampled, self.tries)
        unobserved = (
            floor(float(np.broadcast_to(occasion.weight, occasion.sampled).sum()) + 0.5) if gains[i] > 0.0 else 0
        )
        return rows, np.ones(self.tries, np.bool_), unobserved
