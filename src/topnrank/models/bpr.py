"""BPR: randomly drawn pairs under the logistic loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.errors import ParameterError
from topnrank.models.checks import check_count
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.bpr import PairwiseLogistic
from topnrank.objectives.draws import STRIDE


@final
@dataclass(eq=False, kw_only=True)
class BPR(FactorModel):
    """Minimises -sum ln g(f_i - f_j) over drawn pairs in which i is the better item (Rendle et al. 2009).

    With negatives=0 pairs are of two items that the user rated, the better one first. With negatives=S they are of a
    liked item and one of S items that the user never observed, sampled anew at each visit: the setting of the paper.

    Use it as the pair-wise control, and with `negatives` to rank the whole catalogue from likes alone. Do not use it
    when only the top of the list matters: every pair counts alike wherever it stands.
    """

    learning_rate: float = 0.13
    regularization: float | Mapping[str, float] = 0.02
    epochs: int | None = 16
    negatives: int = 0
    """0: pairs of rated items. S: liked items against S unobserved ones, sampled at each visit."""
    pairs: int = 2
    """Pairs that each item of the user asks for at a visit."""
    tries: int = 5
    """Draws to find a rated partner of another weight; unused against unobserved items."""

    name: ClassVar[str] = "bpr"
    summary: ClassVar[str] = "pair-wise: logistic loss of pairs, of rated items or of likes against unobserved items"
    own_space: ClassVar[Space] = {"learning_rate": Range(0.01, 0.3, log=True), "pairs": Range(1, 4, whole=True)}

    def check(self) -> None:
        """Shared rules and those of the draws."""
        super().check()
        check_count(self, "negatives", least=0)
        check_count(self, "pairs", "tries")
        if self.pairs * self.tries > STRIDE:
            raise ParameterError(f"BPR: pairs * tries must be at most {STRIDE}, got {self.pairs} * {self.tries}")

    def objective(self) -> Objective:
        """The logistic loss of drawn pairs."""
        return PairwiseLogistic(tries=self.tries, pairs=self.pairs)

    def relevant_only(self) -> bool:
        """Against unobserved items only likes enter the lists; rated pairs need dislikes too."""
        return self.negatives > 0
