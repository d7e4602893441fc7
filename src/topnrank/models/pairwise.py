"""The pair-wise models: BPR and WARP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.errors import ParameterError
from topnrank.losses.base import Objective
from topnrank.losses.pairwise.reference import STRIDE, PairwiseLogistic, WarpHinge
from topnrank.models.factor.model import PENALTIES, FactorModel
from topnrank.models.factor.prepare import Selection
from topnrank.models.parameters import POSITIVE, Choice, Range, Space, integer, param


class PairwiseModel(FactorModel):
    """A model of drawn pairs."""

    negatives: int

    def selection(self) -> Selection:
        """Against unobserved items only likes enter the lists; rated pairs need dislikes too."""
        return Selection(self.user_representation, relevant_only=self.negatives > 0, negatives=self.negatives)


# ----------------------------------------------------------------------------------------------------
# BPR: randomly drawn pairs under the logistic loss.


@final
@dataclass(eq=False, kw_only=True)
class BPR(PairwiseModel):
    """Minimizes -sum ln g(f_i - f_j) over drawn pairs in which i is the better item (Rendle et al. 2009).

    With negatives=0 pairs are of two items that the user rated, the better one first. With negatives=S they are of a
    liked item and one of S items that the user never observed, sampled anew at each visit: the setting of the paper.

    Use it as the pair-wise control, and with `negatives` to rank the whole catalog from likes alone. Do not use it
    when only the top of the list matters: every pair counts alike wherever it stands.
    """

    learning_rate: float = param(0.13, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.02, PENALTIES)
    epochs: int | None = param(16, integer().unless(None))
    negatives: int = param(0, integer(0))
    """0: pairs of rated items. S: liked items against S unobserved ones, sampled at each visit."""
    pairs: int = param(2, integer())
    """Pairs that each item of the user asks for at a visit."""
    tries: int = param(5, integer())
    """Draws to find a rated partner of another weight; unused against unobserved items."""

    name: ClassVar[str] = "bpr"
    summary: ClassVar[str] = "pair-wise: logistic loss of pairs, of rated items or of likes against unobserved items"
    own_space: ClassVar[Space] = {"learning_rate": Range(0.01, 0.3, log=True), "pairs": Range(1, 4, whole=True)}

    def check(self) -> None:
        """Shared rules and those of the draws."""
        super().check()
        if self.pairs * self.tries > STRIDE:
            raise ParameterError(f"BPR: pairs * tries must be at most {STRIDE}, got {self.pairs} * {self.tries}")

    def objective(self) -> Objective:
        """The logistic loss of drawn pairs."""
        return PairwiseLogistic(tries=self.tries, pairs=self.pairs)


# ----------------------------------------------------------------------------------------------------
# WARP: a hinge on the first violator drawn, weighted by the estimated rank.


@final
@dataclass(eq=False, kw_only=True)
class WARP(PairwiseModel):
    """Minimizes sum_i ln(1 + rank_i) max(0, margin - f_i + f_j), j the first violator drawn (Weston et al. 2011).

    With negatives=0 an item is held against the user's rated items of lower weight. With negatives=S the liked items
    are held against S items that the user never observed, sampled anew at each visit: the setting closer to the paper.

    Use it with `negatives` to rank the whole catalog when the top of the list matters. Do not use it with negatives=0
    on lists of a few items: there is no rank to estimate, and it is a hinge loss with noise.
    """

    learning_rate: float = param(0.024, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.04, PENALTIES)
    epochs: int | None = param(25, integer().unless(None))
    negatives: int = param(0, integer(0))
    """0: rated items only. S: liked items against S unobserved ones, sampled at each visit."""
    margin: float = param(0.3, POSITIVE)
    """How far an item should stand above a worse one."""
    tries: int = param(10, integer())
    """Draws to find a violator."""

    name: ClassVar[str] = "warp"
    summary: ClassVar[str] = "pair-wise: hinge on the first violator drawn, weighted by the estimated rank"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(0.003, 0.1, log=True),
        "margin": Range(0.1, 1.0, log=True),
        "tries": Choice((10, 30, 100)),
    }

    def check(self) -> None:
        """Shared rules and those of the draws."""
        super().check()
        if self.tries > STRIDE:
            raise ParameterError(f"WARP: tries must be at most {STRIDE}, got {self.tries}")

    def objective(self) -> Objective:
        """The weighted hinge loss against drawn violators."""
        return WarpHinge(margin=float(self.margin), tries=self.tries)
