"""The list-wise models besides TopNRank: CLiMF, XCLiMF, ListRank, ListPMF, MFADG, TFMAP, GaussianRank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.losses.base import Objective
from topnrank.losses.climf.reference import CLiMFBound
from topnrank.losses.gaussian.reference import GaussianDCG
from topnrank.losses.links import LINKS
from topnrank.losses.listpmf.reference import TIES, PlackettLuce
from topnrank.losses.listrank.reference import TopOneCrossEntropy
from topnrank.losses.mfadg.reference import AveragedDiscountedGain
from topnrank.losses.tfmap.reference import SmoothAP
from topnrank.losses.xclimf.reference import XCLiMFBound
from topnrank.models.factor.model import PENALTIES, FactorModel
from topnrank.models.factor.prepare import Selection
from topnrank.models.parameters import (
    FLAG,
    POSITIVE,
    Choice,
    Range,
    Space,
    integer,
    one_word,
    param,
)

# ----------------------------------------------------------------------------------------------------
# CLiMF: reciprocal rank from liked items alone.


@final
@dataclass(eq=False, kw_only=True)
class CLiMF(FactorModel):
    """Maximizes sum_{j in P} [ ln g(f_j) + sum_{k in P} ln(1 - g(f_k - f_j)) ] over the liked items P of each user.

    Shi, Karatzoglou, Baltrunas, Larson, Oliver, Hanjalic 2012: "CLiMF: learning to maximize reciprocal rank with
    collaborative less-is-more filtering". Liked are rows with a weight above 0: ratings above the user's mean unless
    `feedback` says otherwise; "threshold" (four stars and more) is the usual reading.

    Use it where only likes are known and as a baseline from the literature. Do not use it to order items that a user
    has rated: nothing pushes disliked items down, and the pair term pulls liked ones together.
    """

    learning_rate: float = param(0.1, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.24, PENALTIES)
    epochs: int | None = param(5, integer().unless(None))
    mean_pairs: bool = param(True, FLAG)
    """Average an item's pairs over the other liked items; False is the paper's sum, in which they drown ln g(f_j)."""

    own_space: ClassVar[Space] = {"regularization": Range(0.003, 0.3, log=True)}

    name: ClassVar[str] = "climf"
    likes_only: ClassVar[bool] = True
    summary: ClassVar[str] = "list-wise: CLiMF, a bound of the reciprocal rank learned from liked items alone"

    def objective(self) -> Objective:
        """CLiMF's bound with this model's settings."""
        return CLiMFBound(self.mean_pairs)


# ----------------------------------------------------------------------------------------------------
# XCLiMF: expected reciprocal rank from graded items.


@final
@dataclass(eq=False, kw_only=True)
class XCLiMF(FactorModel):
    """Maximizes sum_j q_j [ ln g(f_j) + sum_{k != j} ln(1 - q_k g(f_k - f_j)) ], q the relevance from the rating.

    Shi, Karatzoglou, Baltrunas, Larson, Hanjalic 2013: "xCLiMF: optimizing expected reciprocal rank for data with
    multiple levels of relevance". The weights are q in [0, 1): with feedback "relevance", the default here,
    (2^r - 1) / 2^max of the rating r. A visit costs O(m^2) for a list of m items.

    Use it as a baseline from the literature for ratings. Do not expect a sharp order by grade: the pair term prefers the
    lower grade, only q_j ln g(f_j) speaks for the higher one. Lists of thousands of items are slow.
    """

    learning_rate: float = param(0.07, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.8, PENALTIES)
    epochs: int | None = param(10, integer().unless(None))
    mean_pairs: bool = param(True, FLAG)
    """Average an item's pairs over the others; False is the paper's sum, which turns long lists upside down."""

    name: ClassVar[str] = "xclimf"
    summary: ClassVar[str] = "list-wise: xCLiMF, a bound of the expected reciprocal rank learned from graded ratings"
    default_feedback: ClassVar[str | None] = "relevance"
    own_space: ClassVar[Space] = {"regularization": Range(0.02, 1.0, log=True)}

    def objective(self) -> Objective:
        """xCLiMF's bound with this model's settings."""
        return XCLiMFBound(self.mean_pairs)


# ----------------------------------------------------------------------------------------------------
# ListRank: cross entropy of top-one probabilities.


@final
@dataclass(eq=False, kw_only=True)
class ListRank(FactorModel):
    """Minimizes - sum_j p^r_j ln p^s_j, p^r = softmax(grades), p^s = softmax(g(f)) (Shi, Larson, Hanjalic 2010).

    Use it for ratings on a few levels when a list-wise model of linear cost without a sort is wanted: its target is how
    much better an item is, not only that it is better. Do not use it where only one level is observed (likes,
    purchases): then every target is uniform and nothing is learned about order. The top of the list weighs little more
    than the rest.
    """

    learning_rate: float = param(1.8, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.001, PENALTIES)
    epochs: int | None = param(25, integer().unless(None))
    link: str = param("sigmoid", one_word(*LINKS))
    """What the softmax is taken of: "sigmoid" (the logistic of the score, the paper) or "identity" (the score)."""
    per_item: bool = param(True, FLAG)
    """Loss times the length of the list, so that an item's gradient does not shrink with it; False is the paper's."""
    scale: float = param(1.0, POSITIVE)
    """Multiplies the loss: its weight against the regularization, and the size of the first steps."""

    name: ClassVar[str] = "list-rank"
    summary: ClassVar[str] = "list-wise: cross entropy of top-one probabilities of grades and scores"
    default_feedback: ClassVar[str | None] = "grades"
    own_space: ClassVar[Space] = {"learning_rate": Range(0.1, 3.0, log=True), "link": Choice(LINKS)}

    def objective(self) -> Objective:
        """The cross entropy with this model's settings."""
        return TopOneCrossEntropy(self.link, self.per_item, float(self.scale))


# ----------------------------------------------------------------------------------------------------
# ListPMF: likelihood of the order of the ratings.


@final
@dataclass(eq=False, kw_only=True)
class ListPMF(FactorModel):
    """Minimizes sum_i [ln sum_{l at or below i} e^{f_l} - f_i], the order by ratings (after Liu and others 2014).

    ListPMF as published (two permutation models, maximum a posteriori) was read in abstract only; this is its
    Plackett-Luce form.

    Use it when the order of a user's items is to be learned and the distances between ratings mean nothing. Do not use
    it where only one level is observed: then it pulls all scores of a list together. Every place of the order counts,
    the last ones too, so it spends force on order that no top-N list shows.
    """

    learning_rate: float = param(0.06, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.0025, PENALTIES)
    epochs: int | None = param(20, integer().unless(None))
    ties: str = param("breslow", one_word(*TIES))
    """Equal weights: "breslow" (each against all at or below its level), "shuffled" (anew each visit), "fixed"."""
    link: str = param("identity", one_word(*LINKS))
    """What enters the likelihood: "identity" (the score) or "sigmoid" (its logistic)."""
    normalize: bool = param(False, FLAG)
    """Divide the loss by the length of the list."""

    name: ClassVar[str] = "list-pmf"
    summary: ClassVar[str] = "list-wise: Plackett-Luce likelihood of the order of a user's items"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(0.01, 0.3, log=True),
        "ties": Choice(("breslow", "shuffled")),
    }

    def objective(self) -> Objective:
        """The likelihood with this model's settings."""
        return PlackettLuce(self.ties, self.link, self.normalize)


# ----------------------------------------------------------------------------------------------------
# MF-ADG: the averaged discounted gain, reconstructed.


@final
@dataclass(eq=False, kw_only=True)
class MFADG(FactorModel):
    """Maximizes 1/|P| sum_{i in P} 1/log2(2 + R_i), R_i the smooth rank among sampled items (after Lim et al. 2015).

    A reconstruction: the original (Lim, McAuley, Lanckriet 2015) could not be read beyond its abstract. Name and sample
    size follow the Top-N-Rank paper; smoothing and gradient are ours. Call results "MF-ADG (our reconstruction)".

    Gradients of an average of small discounts are small: hence the large learning rate and the small regularization.

    Use it to rank the whole catalog from likes alone, with the weight on the top. Do not expect it to tell apart
    items that the user rated: it sees likes and unobserved items, never dislikes.
    """

    learning_rate: float = param(30.0, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.0001, PENALTIES)
    epochs: int | None = param(20, integer().unless(None))
    negatives: int = param(100, integer())
    """Unobserved items sampled at each visit: the gamma = 100 of the Top-N-Rank paper."""
    steepness: float = param(1.3, POSITIVE)
    """C of the logistic step in the ranks."""

    name: ClassVar[str] = "mf-adg"
    summary: ClassVar[str] = "list-wise: averaged discounted gain against sampled unobserved items (a reconstruction)"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(3.0, 300.0, log=True),
        "regularization": Range(1e-6, 1e-3, log=True),
        "steepness": Range(0.5, 7.0, log=True),
        "negatives": Choice((50, 100, 200)),
    }

    def objective(self) -> Objective:
        """The smoothed averaged discounted gain."""
        return AveragedDiscountedGain(steepness=float(self.steepness))

    def selection(self) -> Selection:
        """Dislikes have no place in this objective; they stay in the users' histories."""
        return Selection(self.user_representation, relevant_only=True, negatives=self.negatives)


# ----------------------------------------------------------------------------------------------------
# TFMAP: average precision from liked items alone.


@final
@dataclass(eq=False, kw_only=True)
class TFMAP(FactorModel):
    """Maximizes 1/|P| sum_{i in P} g(f_i) sum_{j in P} g(f_j - f_i) over the liked items P of each user.

    Shi, Karatzoglou, Baltrunas, Larson, Hanjalic, Oliver 2012: "TFMAP: optimizing MAP for top-n context-aware
    recommendation"; here without context. Liked are rows with a weight above 0: ratings above the user's mean unless
    `feedback` says otherwise; "threshold" (four stars and more) is the usual reading.

    Use it where only likes are known and as a baseline from the literature. Do not use it to order items that a user
    has rated: nothing pushes disliked items down, and the pair terms pull liked ones together.
    """

    learning_rate: float = param(0.13, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.08, PENALTIES)
    epochs: int | None = param(8, integer().unless(None))
    own_space: ClassVar[Space] = {"regularization": Range(0.01, 0.3, log=True)}

    name: ClassVar[str] = "tfmap"
    likes_only: ClassVar[bool] = True
    summary: ClassVar[str] = "list-wise: TFMAP without context, smoothed average precision of liked items alone"

    def objective(self) -> Objective:
        """Smoothed average precision."""
        return SmoothAP()


# ----------------------------------------------------------------------------------------------------
# GaussianRank: DCG with ranks from a normal distribution.


@final
@dataclass(eq=False, kw_only=True)
class GaussianRank(FactorModel):
    """Maximizes sum_i a_i / ln(R_i + 2), R_i = (m - 1) Phi(-(f_i - mean) / deviation): DCG by Gaussian ranks.

    After Steck 2015, "Gaussian ranking by matrix factorization", of which only the idea is known here, as cited by the
    Top-N-Rank paper; gains, discount, `floor` and `normalize` are ours.

    Use it as the cheap competitor of Top-N-Rank: the same gains and discount at linear cost without a sort. Do not use
    it for lists of a few items, where a mean and a deviation say little about ranks.
    """

    learning_rate: float = param(0.2, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.004, PENALTIES)
    epochs: int | None = param(16, integer().unless(None))
    floor: float = param(0.13, POSITIVE)
    """Least deviation of a list's scores (added in squares); gaps well below it hardly change the ranks."""
    normalize: bool = param(False, FLAG)
    """Divide the loss by the sum of the list's absolute weights."""

    name: ClassVar[str] = "gaussian-rank"
    summary: ClassVar[str] = "list-wise: weighted DCG with ranks from a normal distribution of the list's scores"
    own_space: ClassVar[Space] = {"floor": Range(0.05, 1.0, log=True)}

    def objective(self) -> Objective:
        """The DCG of Gaussian ranks with this model's settings."""
        return GaussianDCG(float(self.floor), self.normalize)
