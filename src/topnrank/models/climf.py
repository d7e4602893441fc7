"""CLiMF: reciprocal rank from liked items alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.checks import check_flag
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.climf import CLiMFBound


@final
@dataclass(eq=False, kw_only=True)
class CLiMF(FactorModel):
    """Maximises sum_{j in P} [ ln g(f_j) + sum_{k in P} ln(1 - g(f_k - f_j)) ] over the liked items P of each user.

    Shi, Karatzoglou, Baltrunas, Larson, Oliver, Hanjalic 2012: "CLiMF: learning to maximize reciprocal rank with
    collaborative less-is-more filtering". Liked are rows with a weight above 0: ratings above the user's mean unless
    `feedback` says otherwise; "threshold" (four stars and more) is the usual reading.

    Use it where only likes are known and as a baseline from the literature. Do not use it to order items that a user
    has rated: nothing pushes disliked items down, and the pair term pulls liked ones together.
    """

    learning_rate: float = 0.1
    regularization: float | Mapping[str, float] = 0.24
    epochs: int | None = 5
    mean_pairs: bool = True
    """Average an item's pairs over the other liked items; False is the paper's sum, in which they drown ln g(f_j)."""

    own_space: ClassVar[Space] = {"regularization": Range(0.003, 0.3, log=True)}

    name: ClassVar[str] = "climf"
    summary: ClassVar[str] = "list-wise: CLiMF, a bound of the reciprocal rank learnt from liked items alone"

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_flag(self, "mean_pairs")

    def relevant_only(self) -> bool:
        """Only liked items enter the lists."""
        return True

    def objective(self) -> Objective:
        """CLiMF's bound with this model's settings."""
        return CLiMFBound(self.mean_pairs)
