"""ListPMF: likelihood of the order of the ratings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.errors import one_of
from topnrank.models.checks import check_flag
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Choice, Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.links import LINKS
from topnrank.objectives.listpmf import TIES, PlackettLuce


@final
@dataclass(eq=False, kw_only=True)
class ListPMF(FactorModel):
    """Minimises sum_i [ln sum_{l at or below i} e^{f_l} - f_i], the order by ratings (after Liu and others 2014).

    ListPMF as published (two permutation models, maximum a posteriori) was read in abstract only; this is its
    Plackett-Luce form.

    Use it when the order of a user's items is to be learnt and the distances between ratings mean nothing. Do not use
    it where only one level is observed: then it pulls all scores of a list together. Every place of the order counts,
    the last ones too, so it spends force on order that no top-N list shows.
    """

    learning_rate: float = 0.06
    regularization: float | Mapping[str, float] = 0.0025
    epochs: int | None = 20
    ties: str = "breslow"
    """Equal weights: "breslow" (each against all at or below its level), "shuffled" (anew each visit), "fixed"."""
    link: str = "identity"
    """What enters the likelihood: "identity" (the score) or "sigmoid" (its logistic)."""
    normalize: bool = False
    """Divide the loss by the length of the list."""

    name: ClassVar[str] = "list-pmf"
    summary: ClassVar[str] = "list-wise: Plackett-Luce likelihood of the order of a user's items"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(0.01, 0.3, log=True),
        "ties": Choice(("breslow", "shuffled")),
    }

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        one_of("ties", self.ties, TIES)
        one_of("link", self.link, LINKS)
        check_flag(self, "normalize")

    def objective(self) -> Objective:
        """The likelihood with this model's settings."""
        return PlackettLuce(self.ties, self.link, self.normalize)
