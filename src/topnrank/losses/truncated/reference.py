"""Top-N-Rank's truncation and smoothing for MRR, MAP and AUC: the paper's future work (i), in a form of our own.

Liang, Hu, Dong, Honavar (2018) name these metrics as a next step and give no formulas. With y_i = 1(a_i > 0), P the
positives (y = 1), Q the others, R_i the smooth rank in the list (`ranks.py`) and T(R) = (N - R)_+ / N, or 1 if not cut:

    MRR    L_u = - T(R*) / (1 + R*)                                   R* = -tau ln( 1/|P| sum_{i in P} e^{-R_i / tau} )
    MAP    L_u = - 1/min(|P|, N) sum_{i in P} T(R_i) (1 + R+_i) / (1 + R_i)           R+ = smooth rank among P only
    AUC    L_u = 1/(|P| |Q|) sum_{j in Q} T(R_j) S_j          S_j = sum_{i in P} (delta + f_j - f_i)_+

R* is a softmin with tau ln|P| added. The plain softmin, -tau ln sum e^{-R_i / tau}, lies up to tau ln|P| below the smallest
rank; with many ties it passes -1, the pole of the loss. With the term

    min R  <=  R*  <=  min( mean R, min R + tau ln|P| )

because the mean of the |P| summands is at most the largest, e^{-min R / tau} (left), at least a |P|-th of it (right), and by
Jensen's inequality. So R* >= 0, and R* = R for a single positive.

Score gradient: G_j = X_j - c_j D_j of the rank engine with c = dL_u/dR, plus what does not pass through R; T' = -1(R < N)/N:

    MRR    c_i = omega_i [ -T'(R*) / (1 + R*) + T(R*) / (1 + R*)^2 ]          omega = softmax(-R / tau) over P, 0 elsewhere
    MAP    c_i = y_i/min(|P|, N) [ -T' (1 + R+) / (1 + R) + T (1 + R+) / (1 + R)^2 ]
           d_i = dL_u/dR+_i = - y_i/min(|P|, N) T / (1 + R), through the rank engine with weights y
    AUC    c_j = T' S_j / (|P| |Q|) for j in Q;  the hinge adds T_j #{i : delta + f_j - f_i > 0} / (|P| |Q|) to j in Q and
           takes the T_j of all j in Q with delta + f_j - f_i > 0, over |P| |Q|, from i in P

G is the exact gradient, for the user and for the items. At kinks the slope is 0: ties exert no force (`steps.py`), nor does
an item at R = N, nor a pair at exactly the margin. Without positives (AUC: or negatives) value and gradient are 0.
Only the signs of the gains count, but for the squared term. N in min(|P|, N) is not annealed.

Cautions. The gate is (N - R)_+ / N whatever the step, not the H(N - R) of eq. 8: it starts at 1, so that cut and uncut
losses are of one size. It has a dead zone, which `anneal_n` is against. MAP: with ReLU and ramp an item with R_i >= N stands
above cut items only and feels nothing; with Laplace and sigmoid it feels the ranks of others, though not its own. MRR: no
item feels anything once R* >= N. AUC: a cut negative exerts no force, so nothing is felt once all negatives are cut. It cuts
negatives because cutting positives would take the force from just those that are badly placed. Its margin is needed:
without one, equal scores are optimal. MAP is not monotone in the scale of the scores under ReLU, whose ranks grow with it
into the gate: prefer Laplace or ramp.

With scores 2, 1, 0 of a negative, a positive and a negative, ReLU ranks are 0, 1, 3. Not cut, the one positive has
reciprocal rank and precision 1/2; its negatives lead by 1 and -1, so that with margin 1 the hinges are 2 and 0:

    >>> from topnrank.losses.steps import ReLU
    >>> f, a = np.array([2.0, 1.0, 0.0]), np.array([-1.0, 1.0, -1.0])
    >>> [kind(ReLU(), truncate=False).evaluate(f, a).value for kind in (TruncatedMRR, TruncatedMAP, TruncatedAUC)]
    [-0.5, -0.5, 1.0]
    >>> TruncatedMRR(ReLU(), n=4).evaluate(f, a).value  # T = 3/4
    -0.375
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topnrank._typing import BoolArray, Float64Array
from topnrank.losses.base import ListContext, ListGradient
from topnrank.losses.ranks import rank_pull, smooth_ranks
from topnrank.losses.shaping import ShapedObjective, annealed_n


class Slopes(NamedTuple):
    """A loss and how it depends on the scores."""

    value: float
    c: Float64Array
    """(m,) dL_u/dR"""
    rest: Float64Array
    """(m,) the part of the score gradient that does not pass through R"""


@dataclass(frozen=True)
class Truncated(ShapedObjective):
    """What the three share: smooth ranks and the gate (N - R)_+ / N."""

    def _natural_mass(self, gains: Float64Array) -> float:
        """The losses are averages: a force is faint compared with 1, not with the gains, of which only signs count."""
        return 1.0

    def _plain(self, scores: Float64Array, gains: Float64Array, context: ListContext) -> ListGradient:
        ones = np.ones_like(scores)
        R, D = smooth_ranks(self.step, scores, ones)
        cut = annealed_n(self.n, scores.size, self.anneal_n, context.progress)
        value, c, rest = self._slopes(scores, gains > 0.0, R, cut)
        G = rest - c * D + rank_pull(self.step, scores, ones, c)
        return ListGradient(value, G, G, int((self.n > R).sum()))

    def _gate(self, R: Float64Array, cut: float) -> tuple[Float64Array, Float64Array]:
        """T and T' at some ranks."""
        if not self.truncate:
            return np.ones_like(R), np.zeros_like(R)
        return np.maximum(cut - R, 0.0) / cut, -(cut > R).astype(np.float64) / cut

    @abstractmethod
    def _slopes(self, scores: Float64Array, positive: BoolArray, R: Float64Array, cut: float) -> Slopes:
        """The metric's own part."""


@dataclass(frozen=True)
class TruncatedMRR(Truncated):
    """- T(R*) / (1 + R*): the first positive is what counts."""

    tau: float = 1.0
    """Width of the softmin in ranks: positives within about tau of the first share its force."""

    def _slopes(self, scores: Float64Array, positive: BoolArray, R: Float64Array, cut: float) -> Slopes:
        c = np.zeros_like(R)
        if not positive.any():
            return Slopes(0.0, c, np.zeros_like(R))
        least = R[positive].min()
        e = np.exp(-(R[positive] - least) / self.tau)
        first = np.array(least - self.tau * np.log(e.mean()))  # R*
        T, T_slope = self._gate(first, cut)
        c[positive] = e / e.sum() * (-T_slope / (1.0 + first) + T / (1.0 + first) ** 2)
        return Slopes(-float(T / (1.0 + first)), c, np.zeros_like(R))


@dataclass(frozen=True)
class TruncatedMAP(Truncated):
    """- 1/min(|P|, N) sum over positives of T (1 + R+) / (1 + R): smoothed precision at each positive."""

    def _slopes(self, scores: Float64Array, positive: BoolArray, R: Float64Array, cut: float) -> Slopes:
        if not positive.any():
            return Slopes(0.0, np.zeros_like(R), np.zeros_like(R))
        y = positive.astype(np.float64)
        R_plus, D_plus = smooth_ranks(self.step, scores, y)
        T, T_slope = self._gate(R, cut)
        share = y / min(positive.sum(), self.n)
        precision = (1.0 + R_plus) / (1.0 + R)
        c = share * precision * (T / (1.0 + R) - T_slope)
        d = -share * T / (1.0 + R)
        rest = rank_pull(self.step, scores, y, d) - d * D_plus
        return Slopes(-float(share @ (T * precision)), c, rest)


@dataclass(frozen=True)
class TruncatedAUC(Truncated):
    """1/(|P| |Q|) sum over negatives of T_j sum over positives of (margin + f_j - f_i)_+: one-way partial hinge AUC."""

    margin: float = 1.0
    """delta: by how much a positive is to lead a negative."""

    def _slopes(self, scores: Float64Array, positive: BoolArray, R: Float64Array, cut: float) -> Slopes:
        c, rest = np.zeros_like(R), np.zeros_like(R)
        pairs = int(positive.sum()) * int((~positive).sum())
        if pairs == 0:
            return Slopes(0.0, c, rest)
        T, T_slope = self._gate(R[~positive], cut)
        lead = self.margin + (scores[~positive][:, None] - scores[positive][None, :])
        felt = (lead > 0.0).astype(np.float64)
        S = np.maximum(lead, 0.0).sum(axis=1)
        c[~positive] = T_slope * S / pairs
        rest[~positive] = T * felt.sum(axis=1) / pairs
        rest[positive] = -(T @ felt) / pairs
        return Slopes(float(T @ S) / pairs, c, rest)
