"""XCLiMF: expected reciprocal rank from graded items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.checks import check_flag
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.xclimf import XCLiMFBound


@final
@dataclass(eq=False, kw_only=True)
class XCLiMF(FactorModel):
    """Maximises sum_j q_j [ ln g(f_j) + sum_{k != j} ln(1 - q_k g(f_k - f_j)) ], q the relevance from the rating.

    Shi, Karatzoglou, Baltrunas, Larson, Hanjalic 2013: "xCLiMF: optimizing expected reciprocal rank for data with
    multiple levels of relevance". The weights are q in [0, 1): with feedback "relevance", the default here,
    (2^r - 1) / 2^max of the rating r. A visit costs O(m^2) for a list of m items.

    Use it as a baseline from the literature for ratings. Do not expect a sharp order by grade: the pair term prefers the
    lower grade, only q_j ln g(f_j) speaks for the higher one. Lists of thousands of items are slow.
    """

    learning_rate: float = 0.07
    regularization: float | Mapping[str, float] = 0.8
    epochs: int | None = 10
    mean_pairs: bool = True
    """Average an item's pairs over the others; False is the paper's sum, which turns long lists upside down."""

    name: ClassVar[str] = "xclimf"
    summary: ClassVar[str] = "list-wise: xCLiMF, a bound of the expected reciprocal rank learnt from graded ratings"
    default_feedback: ClassVar[str | None] = "relevance"
    own_space: ClassVar[Space] = {"regularization": Range(0.02, 1.0, log=True)}

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_flag(self, "mean_pairs")

    def objective(self) -> Objective:
        """xCLiMF's bound with this model's settings."""
        return XCLiMFBound(self.mean_pairs)
