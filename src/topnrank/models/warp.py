"""WARP: a hinge on the first violator drawn, weighted by the estimated rank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.errors import ParameterError
from topnrank.models.checks import check_count, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Choice, Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.draws import STRIDE
from topnrank.objectives.warp import WarpHinge


@final
@dataclass(eq=False, kw_only=True)
class WARP(FactorModel):
    """Minimises sum_i ln(1 + rank_i) max(0, margin - f_i + f_j), j the first violator drawn (Weston et al. 2011).

    With negatives=0 an item is held against the user's rated items of lower weight. With negatives=S the liked items
    are held against S items that the user never observed, sampled anew at each visit: the setting closer to the paper.

    Use it with `negatives` to rank the whole catalogue when the top of the list matters. Do not use it with negatives=0
    on lists of a few items: there is no rank to estimate, and it is a hinge loss with noise.
    """

    learning_rate: float = 0.024
    regularization: float | Mapping[str, float] = 0.04
    epochs: int | None = 25
    negatives: int = 0
    """0: rated items only. S: liked items against S unobserved ones, sampled at each visit."""
    margin: float = 0.3
    """How far an item should stand above a worse one."""
    tries: int = 10
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
        check_count(self, "negatives", least=0)
        check_count(self, "tries")
        check_number(self, "margin", above_zero=True)
        if self.tries > STRIDE:
            raise ParameterError(f"WARP: tries must be at most {STRIDE}, got {self.tries}")

    def objective(self) -> Objective:
        """The weighted hinge loss against drawn violators."""
        return WarpHinge(margin=float(self.margin), tries=self.tries)

    def relevant_only(self) -> bool:
        """Against unobserved items only likes enter the lists; rated pairs need dislikes too."""
        return self.negatives > 0
