"""BiasedMF: the point-wise control."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.losses.base import Objective
from topnrank.losses.squared import Squared
from topnrank.models.factor.model import PENALTIES, START_VALUES, USER_REPRESENTATIONS, FactorModel
from topnrank.models.parameters import BATCH_SIZE, POSITIVE, Range, Space, by, integer, one_word, param
from topnrank.training import Optimizer, make_optimizer


@final
@dataclass(eq=False, kw_only=True)
class BiasedMF(FactorModel):
    """Matrix factorization with biases under squared loss (Koren, Bell, Volinsky 2009): strong where ratings are ranked.

    f = b_i + <u, v_i>; the user's bias is solved for in closed form inside the loss, so it needs no parameter and plays no
    part in the ranking. A control: a list-wise model should beat it before anything is claimed for its objective.
    """

    user_representation: str = param("factors", one_word(*USER_REPRESENTATIONS))
    factors: int = param(100, integer())
    init: float | str = param(0.003, START_VALUES)
    optimizer: str | Optimizer = param("sgd", by(make_optimizer))
    learning_rate: float = param(0.01, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.0425, PENALTIES)
    batch_size: int | float | str = param(50, BATCH_SIZE)
    epochs: int | None = param(36, integer().unless(None))

    own_space: ClassVar[Space] = {
        "init": Range(0.001, 0.1, log=True),
        "learning_rate": Range(0.002, 0.05, log=True),
        "regularization": Range(0.01, 0.2, log=True),
    }

    name: ClassVar[str] = "biased-mf"
    summary: ClassVar[str] = "control: matrix factorization with biases under squared loss (point-wise)"

    def objective(self) -> Objective:
        """Squared error of centered scores."""
        return Squared()
