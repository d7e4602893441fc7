"""BPR and WARP: losses of sampled pairs, reference."""

from dataclasses import dataclass
from math import floor, log1p

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.rng import draws_below

STRIDE = 1 << 16
"""Draws set aside for each row: row i owns the draws i * STRIDE, i * STRIDE + 1, ... of the list's key."""


def row_draws(context: ListContext, row: int, n: int, count: int) -> Int64Array:
    """(count,) integers from 0 to n - 1: the first draws of `row`, whatever the other rows draw."""
    return draws_below(context.key, row * STRIDE, n, count)


@dataclass(frozen=True)
class PairwiseLogistic:
    """BPR: Bayesian personalized ranking, the logistic loss of pairs (Rendle, Freudenthaler, Gantner, Schmidt-Thieme 2009).

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
    wherever it stands in the list: the loss approximates the area under the curve, not the top.

    Two rows of unequal gain and equal score each draw the other:

        >>> result = PairwiseLogistic().evaluate(np.zeros(2), np.array([2.0, 1.0]))
        >>> bool(np.isclose(result.value, 2 * np.log(2))), result.user.tolist()
        (True, [-1.0, 1.0])
    """

    tries: int = 5
    """Most draws of a row of rated pairs to find a partner of another gain."""
    pairs: int = 1
    """Pairs of each row at a visit."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and gradient of the pairs drawn for this visit: O(m)."""
        winners, losers = self.draw_pairs(gains, context).T
        x = scores[winners] - scores[losers]
        t = np.exp(-np.abs(x))
        force = np.where(x > 0.0, t, 1.0) / (1.0 + t)  # g(-x)
        G = np.zeros(scores.size)
        np.subtract.at(G, winners, force)
        np.add.at(G, losers, force)
        return ListGradient(float(np.logaddexp(0.0, -x).sum()), G, G, scores.size)

    def draw_pairs(self, gains: Float64Array, context: ListContext) -> Int64Array:
        """(n, 2) rows of the winners and the losers, in the order of the rows that drew them."""
        own, pairs = gains.size - context.sampled, []
        for row in range(own):
            if context.sampled and gains[row] > 0.0:
                pairs += [(row, own + s) for s in row_draws(context, row, context.sampled, self.pairs)]
            if context.sampled or own < 2:
                continue
            draws = row_draws(context, row, own - 1, self.pairs * self.tries)
            partners = draws + (draws >= row)  # all rows but this one
            for tried in partners.reshape(self.pairs, self.tries):
                unequal = tried[gains[tried] != gains[row]]
                if unequal.size:
                    pairs.append((row, unequal[0]) if gains[row] > gains[unequal[0]] else (unequal[0], row))
        return np.array(pairs, np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class WarpHinge:
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
      Draws are uniform over all rows; those with a gain not below a_i are not candidates: they use up a try but do not
      count in T.
    * With sampled rows ("against unobserved") the positives are the own rows with a gain above 0, the candidates are drawn
      from the sampled rows, and J is the number of unobserved items they stand for: weight * sampled, rounded.

    A violator that was found is at least one, so the rank is never below 1 (draws repeat, so that T can exceed J).

    Departs from the paper:

    * Phi(rank) = ln(1 + rank) instead of the harmonic sum 1 + 1/2 + ... + 1/rank. It is smaller by at most 0.58.
    * Rated pairs are ours: there a "candidate" is a row of lower gain, not an item without feedback.
    * Candidates come from the rows sampled for the visit, which all positives of the user share, and a visit makes one step
      along the sum over its positives.

    The weight favors the top: a positive that is already above most candidates seldom finds a violator, and if it does,
    its step is small. The rank estimate is too high on average, since E[1/T] > 1/E[T]; the logarithm softens that. The loss
    jumps where a score crosses a margin, since then another candidate is the first violator.

    A positive and a sampled row that stands for 4 items, at equal scores; the first draw violates the margin, so rank = 4:

        >>> result = WarpHinge().evaluate(np.zeros(2), np.array([1.0, 0.0]), ListContext(sampled=1, weight=4.0))
        >>> bool(np.isclose(result.value, np.log(5)))
        True
    """

    margin: float = 1.0
    """How far a positive should stand above a candidate."""
    tries: int = 30
    """Most draws of a positive to find a violator."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and gradient of the violators found at this visit."""
        value, G = 0.0, np.zeros(scores.size)
        for i in range(scores.size - context.sampled):
            j, phi = self.violator(i, scores, gains, context)
            if phi > 0.0:
                value += phi * (scores[j] - scores[i] + self.margin)
                G[i] -= phi
                G[j] += phi
        return ListGradient(float(value), G, G, scores.size)

    def violator(self, i: int, scores: Float64Array, gains: Float64Array, context: ListContext) -> tuple[int, float]:
        """The first violator that row i draws, and Phi of its rank; Phi is 0 where there is none."""
        own = gains.size - context.sampled
        if context.sampled == 0:
            drawn = row_draws(context, i, own, self.tries)
            candidate, J = gains[drawn] < gains[i], int((gains < gains[i]).sum())
        else:
            drawn = own + row_draws(context, i, context.sampled, self.tries)
            unobserved = float(np.broadcast_to(context.weight, context.sampled).sum())
            candidate, J = np.ones(self.tries, np.bool_), floor(unobserved + 0.5) if gains[i] > 0.0 else 0
        found = np.flatnonzero(candidate & (scores[drawn] - scores[i] + self.margin > 0.0))
        if J == 0 or found.size == 0:
            return i, 0.0
        T = int(candidate[: found[0] + 1].sum())
        return int(drawn[found[0]]), log1p(max(J // T, 1))
