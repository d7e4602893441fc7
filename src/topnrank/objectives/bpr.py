"""BPR: Bayesian personalised ranking, the logistic loss of pairs (Rendle, Freudenthaler, Gantner, Schmidt-Thieme 2009).

Loss of one visit, over pairs (i, j) drawn for it, where i should stand above j (g the logistic function):

    L_u = - sum_{(i,j)} ln g(f_i - f_j)

Score gradient: each pair pushes its winner up and its loser down by the same force

    dL_u/df_i = - g(f_j - f_i),     dL_u/df_j = + g(f_j - f_i)

Which pairs are drawn depends on the list:

* Without sampled rows ("rated pairs") each row draws one partner uniformly among all other rows. The larger gain is the
  winner. Equal gains make no pair: the row draws again, at most `tries` draws, then it has no pair at this visit.
* With sampled rows ("against unobserved") each own row with a gain above 0 draws one of the sampled rows and should
  stand above it. Gains above 0 all count alike.

With `pairs` above 1 each row asks for that many pairs in the same way.

Where all gains differ, the mean over the draws is 2 pairs / (m - 1) times the sum over all m (m - 1) / 2 pairs; against
unobserved items it is pairs / S times the sum over all (positive, sampled) pairs. So the gradient is that of the whole
sum but for a factor, without bias. Equal gains in rated pairs shift the weights: rows with few unequal partners meet
each of them more often.

Departs from the paper:

* Rated pairs are ours: the paper has observed items against unobserved ones only.
* The paper draws triples (user, item, other item) over all data, one step each; here a visit takes one draw for each
  row of the user and makes one step along their sum.

The pair loss never reaches 0, so scores grow with training until the penalty holds them. Every pair counts alike
wherever it stands in the list: the loss speaks for the area under the curve, not for the top.
"""

from dataclasses import dataclass

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.objectives.base import PLAIN, ListGradient, Occasion
from topnrank.objectives.draws import row_draws


@dataclass(frozen=True)
class PairwiseLogistic:
    """The logistic loss of randomly drawn pairs."""

    tries: int = 5
    """Draws that a row of rated pairs has to find a partner of another gain."""
    pairs: int = 1
    """Pairs that each row asks for at a visit."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, occasion: Occasion = PLAIN) -> ListGradient:
        """Loss and gradient of the pairs drawn for this visit: O(m)."""
        winners, losers = self.draw_pairs(gains, occasion).T
        x = scores[winners] - scores[losers]
        t = np.exp(-np.abs(x))
        force = np.where(x > 0.0, t, 1.0) / (1.0 + t)  # g(-x)
        G = np.zeros(scores.size)
        np.subtract.at(G, winners, force)
        np.add.at(G, losers, force)
        return ListGradient(float(np.logaddexp(0.0, -x).sum()), G, G, scores.size)

    def draw_pairs(self, gains: Float64Array, occasion: Occasion) -> Int64Array:
        """(n, 2) rows of the winners and the losers, in the order of the rows that drew them."""
        own = gains.size - occasion.sampled
        draw = self._against_unobserved if occasion.sampled > 0 else self._rated
        drawn = [pair for row in range(own) for pair in draw(row, gains, occasion)]
        return np.array(drawn, np.int64).reshape(-1, 2)

    def _against_unobserved(self, row: int, gains: Float64Array, occasion: Occasion) -> list[tuple[int, int]]:
        """The row above `pairs` of the sampled ones, if it is a positive."""
        if gains[row] <= 0.0:
            return []
        own = gains.size - occasion.sampled
        return [(row, own + int(s)) for s in row_draws(occasion, row, occasion.sampled, self.pairs)]

    def _rated(self, row: int, gains: Float64Array, occasion: Occasion) -> list[tuple[int, int]]:
        """The row with, for each of `pairs`, the first of `tries` partners that has another gain."""
        if gains.size < 2:
            return []
        draws = row_draws(occasion, row, gains.size - 1, self.pairs * self.tries)
        partners = draws + (draws >= row)  # all rows but this one
        found: list[tuple[int, int]] = []
        for tried in partners.reshape(self.pairs, self.tries):
            unequal = tried[gains[tried] != gains[row]]
            if unequal.size:
                other = int(unequal[0])
                found.append((row, other) if gains[row] > gains[other] else (other, row))
        return found
