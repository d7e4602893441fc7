"""TFMAP: average precision from liked items alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from topnrank.models.factor_model import FactorModel
from topnrank.models.search import Range, Space
from topnrank.objectives import Objective
from topnrank.objectives.tfmap import SmoothAP


@final
@dataclass(eq=False, kw_only=True)
class TFMAP(FactorModel):
    """Maximises 1/|P| sum_{i in P} g(f_i) sum_{j in P} g(f_j - f_i) over the liked items P of each user.

    Shi, Karatzoglou, Baltrunas, Larson, Hanjalic, Oliver 2012: "TFMAP: optimizing MAP for top-n context-aware
    recommendation"; here without context. Liked are rows with a weight above 0: ratings above the user's mean unless
    `feedback` says otherwise; "threshold" (four stars and more) is the usual reading.

    Use it where only likes are known and as a baseline from the literature. Do not use it to order items that a user
    has rated: nothing pushes disliked items down, and the pair terms pull liked ones together.
    """

    learning_rate: float = 0.13
    regularization: float | Mapping[str, float] = 0.08
    epochs: int | None = 8
    own_space: ClassVar[Space] = {"regularization": Range(0.01, 0.3, log=True)}

    name: ClassVar[str] = "tfmap"
    summary: ClassVar[str] = "list-wise: TFMAP without context, smoothed average precision of liked items alone"

    def relevant_only(self) -> bool:
        """Only liked items enter the lists."""
        return True

    def objective(self) -> Objective:
        """Smoothed average precision."""
        return SmoothAP()
