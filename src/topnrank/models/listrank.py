"""ListRank: cross entropy of top-one probabilities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

from topnrank.errors import one_of
from topnrank.models.checks import check_flag, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Choice, Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.links import LINKS
from topnrank.objectives.listrank import TopOneCrossEntropy


@final
@dataclass(eq=False, kw_only=True)
class ListRank(FactorModel):
    """Minimises - sum_j p^r_j ln p^s_j, p^r = softmax(grades), p^s = softmax(g(f)) (Shi, Larson, Hanjalic 2010).

    Use it for ratings on a few levels when a list-wise model of linear cost without a sort is wanted: its target is how
    much better an item is, not only that it is better. Do not use it where only one level is observed (likes,
    purchases): then every target is uniform and nothing is learnt about order. The top of the list weighs little more
    than the rest.
    """

    learning_rate: float = 1.8
    regularization: float | Mapping[str, float] = 0.001
    epochs: int | None = 25
    link: str = "sigmoid"
    """What the softmax is taken of: "sigmoid" (the logistic of the score, the paper) or "identity" (the score)."""
    per_item: bool = True
    """Loss times the length of the list, so that an item's gradient does not shrink with it; False is the paper's."""
    scale: float = 1.0
    """Multiplies the loss: its weight against the regularisation, and the size of the first steps."""

    name: ClassVar[str] = "list-rank"
    summary: ClassVar[str] = "list-wise: cross entropy of top-one probabilities of grades and scores"
    default_feedback: ClassVar[str | None] = "grades"
    own_space: ClassVar[Space] = {"learning_rate": Range(0.1, 3.0, log=True), "link": Choice(LINKS)}

    @classmethod
    def authors(cls, **changes: Any) -> Self:
        """As in the authors' program: full-batch descent whose step doubles and halves itself; `changes` override.

        Free vectors of 5 factors, no item bias, the loss without `per_item`, at most 250 iterations. Departs from it: start
        values are normal with deviation 0.1, not uniform in (0, 0.1); lambda counts at each visit instead of once for each
        vector, so that 0.0001 here is about the usual 0.01 there; it stops when nothing moves any more, where the program
        stops at a relative decrease of 1e-6.
        """
        settings: dict[str, Any] = {
            "users": "factors",
            "factors": 5,
            "bias": False,
            "init": 0.1,
            "optimizer": "adaptive",
            "learning_rate": 1.0,
            "regularization": 1e-4,
            "batch_size": 1.0,
            "epochs": 250,
            "tolerance": 1e-9,
            "per_item": False,
        }
        return cls(**(settings | changes))

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        one_of("link", self.link, LINKS)
        check_flag(self, "per_item")
        check_number(self, "scale", above_zero=True)

    def objective(self) -> Objective:
        """The cross entropy with this model's settings."""
        return TopOneCrossEntropy(self.link, self.per_item, float(self.scale))
