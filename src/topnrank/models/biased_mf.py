"""BiasedMF: the point-wise control."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective, Squared
from topnrank.training import Optimizer


@final
@dataclass(eq=False, kw_only=True)
class BiasedMF(FactorModel):
    """Matrix factorisation with biases under squared loss (Koren, Bell, Volinsky 2009): strong where ratings are ranked.

    f = b_i + <u, v_i>; the user's bias is solved for in closed form inside the loss, so it needs no parameter and plays no
    part in the ranking. A control: a list-wise model should beat it before anything is claimed for its objective.
    """

    users: str = "factors"
    factors: int = 100
    init: float | str = 0.003
    optimizer: str | Optimizer = "sgd"
    learning_rate: float = 0.01
    regularization: float | Mapping[str, float] = 0.0425
    batch_size: int | float = 50
    epochs: int | None = 36

    own_space: ClassVar[Space] = {
        "init": Range(0.001, 0.1, log=True),
        "learning_rate": Range(0.002, 0.05, log=True),
        "regularization": Range(0.01, 0.2, log=True),
    }

    name: ClassVar[str] = "biased-mf"
    summary: ClassVar[str] = "control: matrix factorisation with biases under squared loss (point-wise)"

    def objective(self) -> Objective:
        """Squared error of centred scores."""
        return Squared()
