"""MF-ADG: the averaged discounted gain, reconstructed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.checks import check_count, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Choice, Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.mfadg import AveragedDiscountedGain


@final
@dataclass(eq=False, kw_only=True)
class MFADG(FactorModel):
    """Maximises 1/|P| sum_{i in P} 1/log2(2 + R_i), R_i the smooth rank among sampled items (after Lim et al. 2015).

    A reconstruction: the original (Lim, McAuley, Lanckriet 2015) could not be read beyond its abstract. Name and sample
    size follow the Top-N-Rank paper; smoothing and gradient are ours. Call results "MF-ADG (our reconstruction)".

    Gradients of an average of small discounts are small: hence the large learning rate and the small regularisation.

    Use it to rank the whole catalogue from likes alone, with the weight on the top. Do not expect it to tell apart
    items that the user rated: it sees likes and unobserved items, never dislikes.
    """

    learning_rate: float = 30.0
    regularization: float | Mapping[str, float] = 0.0001
    epochs: int | None = 20
    negatives: int = 100
    """Unobserved items sampled at each visit: the gamma = 100 of the Top-N-Rank paper."""
    steepness: float = 1.3
    """C of the logistic step in the ranks."""

    name: ClassVar[str] = "mf-adg"
    summary: ClassVar[str] = "list-wise: averaged discounted gain against sampled unobserved items (a reconstruction)"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(3.0, 300.0, log=True),
        "regularization": Range(1e-6, 1e-3, log=True),
        "steepness": Range(0.5, 7.0, log=True),
        "negatives": Choice((50, 100, 200)),
    }

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_count(self, "negatives")
        check_number(self, "steepness", above_zero=True)

    def objective(self) -> Objective:
        """The smoothed averaged discounted gain."""
        return AveragedDiscountedGain(steepness=float(self.steepness))

    def relevant_only(self) -> bool:
        """Dislikes have no place in this objective; they stay in the users' histories."""
        return True
