"""TopNRank: the library's model."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

from topnrank.data.feedback import Threshold
from topnrank.errors import ParameterError, one_of
from topnrank.models.checks import check_count, check_flag, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.persistence import Missing
from topnrank.objectives import Objective, StepFunction, WeightedDCG, make_step

DISCOUNTS = {"dcg": 2.0, "log": 0.0}
"""Names of powers p of the discount's slope 1 / ((R+2) ln^p(R+2))."""
GRADIENTS = ("paper", "exact")
PAPER_RATES = {("relu", True): 1e-3, ("relu", False): 1e-2, ("sigmoid", True): 3e-2, ("sigmoid", False): 3e-2}
"""Learning rates for the paper's four variants, which the paper does not give. They suit some thousand users: a batch's
gradients are summed, so more users in a batch want a smaller rate. Tune them on validation data."""


@final
@dataclass(eq=False, kw_only=True)
class TopNRank(FactorModel):
    """Top-N-Rank: factorisation that maximises a smoothed, weighted DCG cut at N (Liang, Hu, Dong, Honavar 2018).

    The defaults are the best recipe known here for ranking items by ratings: users as histories, Laplace step, a gradient
    budget per user, a squared anchor. `TopNRank.paper()` gives the paper's own four variants and settings.

    Use it when users have rated (or liked and disliked) some dozens of items and the best of those they will rate are
    wanted. Do not expect it to rank the whole catalogue well: it learns from observed items only and never sees the
    others; ItemMean and Popularity are the controls to compare with.
    """

    n: int = 20
    """N: the length of the list that matters. In the paper the cut of wDCG@N; with `budget` the size of the gradient."""
    smoothing: str | StepFunction = "laplace"
    """Step function of the ranks: "relu", "sigmoid", "laplace", "ramp", or an object with h(x) and dh(x) (then O(m^2))."""
    steepness: float | None = None
    """C of sigmoid, laplace and ramp; None for the usual 7, 3 and 1."""
    truncate: bool = False
    """The gate H(N - R) of eq. 8: items beyond N do not count."""
    gradient: str = "paper"
    """"paper": items follow the paper's partial gradient; "exact": the true gradient of eq. 8."""
    discount: str | float = "dcg"
    """"dcg" (1/ln(R+2)), "log" (-ln(R+2)), or the power p of the slope 1/((R+2) ln^p(R+2)): 2 is DCG, 0 is log."""
    budget: float | None = 0.15
    """Each user's list-wise gradient is scaled to mass budget * min(list length, N); None leaves it (the paper)."""
    anchor: float = 1.0
    """Weight of the squared term that ties centred scores to centred weights; 0 for none (the paper)."""

    name: ClassVar[str] = "top-n-rank"
    summary: ClassVar[str] = "list-wise: weighted DCG cut at N, smoothed; the paper's method with our best settings"

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_count(self, "n")
        check_flag(self, "truncate")
        check_number(self, "anchor")
        one_of("gradient", self.gradient, GRADIENTS)
        if self.steepness is not None:
            check_number(self, "steepness", above_zero=True)
        if self.budget is not None:
            check_number(self, "budget", above_zero=True)
        if not isinstance(self.smoothing, Missing):
            make_step(self.smoothing, self.steepness)
        if self._power() < 1.0 and self.truncate:
            raise ParameterError(
                "TopNRank: truncate=True needs a discount that is positive and falls to 0, such as 'dcg'; "
                f"got discount={self.discount!r}"
            )

    def objective(self) -> Objective:
        """The smoothed wDCG@N with this model's settings."""
        if isinstance(self.smoothing, Missing):
            raise ParameterError(
                f"the smoothing {self.smoothing.name} is an object of your own that the file cannot hold; "
                "put it back with set_params(smoothing=...)"
            )
        return WeightedDCG(
            step=make_step(self.smoothing, self.steepness),
            n=self.n,
            truncate=self.truncate,
            exact=self.gradient == "exact",
            discount=self._power(),
            budget=self.budget or 0.0,
            anchor=self.anchor,
        )

    @classmethod
    def paper(cls, *, smoothing: str = "relu", truncate: bool = True, **changes: Any) -> Self:
        """The paper's variants: smoothing "relu" or "sigmoid", with or without the top-N truncation (its Table 2).

        Section IV: k = 10, N = 20, C = 7, start values U(0, 2/(7k)^(1/4)), lambda = 0.1, batches of 10 % of the users, 30
        iterations or until the parameters move less than 0.1, weights +1 from four stars on and -1 below. The learning
        rate is not given there: ours is a start, to be tuned on validation data. `changes` override any parameter.
        """
        one_of("smoothing", smoothing, ("relu", "sigmoid"))
        settings: dict[str, Any] = {
            "users": "factors",
            "factors": 10,
            "n": 20,
            "smoothing": smoothing,
            "truncate": truncate,
            "steepness": 7.0 if smoothing == "sigmoid" else None,
            "gradient": "paper",
            "discount": "dcg",
            "budget": None,
            "anchor": 0.0,
            "feedback": Threshold(4.0),
            "bias": False,
            "init": "paper",
            "optimizer": "sgd",
            "learning_rate": PAPER_RATES[smoothing, bool(truncate)],
            "regularization": 0.1,
            "batch_size": 0.1,
            "epochs": None,
            "iterations": 30,
            "tolerance": 0.1,
        }
        return cls(**(settings | changes))

    def _power(self) -> float:
        if isinstance(self.discount, str):
            return DISCOUNTS[one_of("discount", self.discount, tuple(DISCOUNTS))]
        number = isinstance(self.discount, int | float) and not isinstance(self.discount, bool)
        if not (number and -10.0 <= self.discount <= 10.0):
            raise ParameterError(
                f"TopNRank.discount must be 'dcg', 'log' or a power from -10 to 10, got {self.discount!r}"
            )
        return float(self.discount)
