"""GaussianRank: DCG with ranks from a normal distribution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.checks import check_flag, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.gaussian import GaussianDCG


@final
@dataclass(eq=False, kw_only=True)
class GaussianRank(FactorModel):
    """Maximises sum_i a_i / ln(R_i + 2), R_i = (m - 1) Phi(-(f_i - mean) / deviation): DCG by Gaussian ranks.

    After Steck 2015, "Gaussian ranking by matrix factorization", of which only the idea is known here, as cited by the
    Top-N-Rank paper; gains, discount, `floor` and `normalize` are ours.

    Use it as the cheap competitor of Top-N-Rank: the same gains and discount at linear cost without a sort. Do not use
    it for lists of a few items, where a mean and a deviation say little about ranks.
    """

    learning_rate: float = 0.2
    regularization: float | Mapping[str, float] = 0.004
    epochs: int | None = 16
    floor: float = 0.13
    """Least deviation of a list's scores (added in squares); gaps well below it hardly change the ranks."""
    normalize: bool = False
    """Divide the loss by the sum of the list's absolute weights."""

    name: ClassVar[str] = "gaussian-rank"
    summary: ClassVar[str] = "list-wise: weighted DCG with ranks from a normal distribution of the list's scores"
    own_space: ClassVar[Space] = {"floor": Range(0.05, 1.0, log=True)}

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_number(self, "floor", above_zero=True)
        check_flag(self, "normalize")

    def objective(self) -> Objective:
        """The DCG of Gaussian ranks with this model's settings."""
        return GaussianDCG(float(self.floor), self.normalize)
