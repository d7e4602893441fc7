"""TopNRank: the library's model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

from topnrank.data.feedback import Threshold
from topnrank.errors import ParameterError, one_of
from topnrank.models.checks import check_count, check_flag, check_number
from topnrank.models.factor_model import FactorModel
from topnrank.models.persistence import Missing
from topnrank.models.search import Range, Space
from topnrank.objectives import (
    Objective,
    StepFunction,
    TruncatedAUC,
    TruncatedMAP,
    TruncatedMRR,
    WeightedDCG,
    make_step,
)
from topnrank.training import AdaptiveDescent, make_optimizer

TRUNCATED: dict[str, Callable[..., Objective]] = {"mrr": TruncatedMRR, "map": TruncatedMAP, "auc": TruncatedAUC}
METRICS = ("dcg", *TRUNCATED)
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

    `metric` puts MRR, MAP or AUC, smoothed and cut in the same manner, in the place of DCG (the paper's future work). They
    know positive weights and others only, not how large a weight is; the anchor still does.
    """

    n: int = 20
    """N: the length of the list that matters. In the paper the cut of wDCG@N; with `budget` the size of the gradient."""
    metric: str = "dcg"
    """What is smoothed: "dcg" (the paper), "mrr" (the first liked item), "map" (all liked items) or "auc" (liked first)."""
    smoothing: str | StepFunction = "laplace"
    """Step function of the ranks: "relu", "sigmoid", "laplace", "ramp", or an object with h(x) and dh(x) (then O(m^2))."""
    steepness: float | None = None
    """C of sigmoid, laplace and ramp; None for the usual 7, 3 and 1."""
    truncate: bool = False
    """The gate H(N - R) of eq. 8, or (N - R)_+/N with another metric than "dcg": items beyond N do not count."""
    anneal: float = 0.0
    """With `truncate`: share of the training in which the gate's N shrinks from the length of the list to N; 0 for never."""
    gradient: str = "paper"
    """"paper": items follow the paper's partial gradient; "exact": the true gradient of eq. 8. Only metric="dcg" knows the
    partial one; the other metrics always use their exact gradient, whatever stands here."""
    discount: str | float = "dcg"
    """"dcg" (1/ln(R+2)), "log" (-ln(R+2)), or the power p of the slope 1/((R+2) ln^p(R+2)): 2 is DCG, 0 is log. Of
    metric="dcg"; the other metrics have no discount and ignore it."""
    budget: float | None = 0.15
    """Each user's list-wise gradient is scaled to mass budget * min(list length, N); None leaves it (the paper)."""
    anchor: float = 1.0
    """Weight of the squared term that ties centred scores to centred weights; 0 for none (the paper)."""

    name: ClassVar[str] = "top-n-rank"
    summary: ClassVar[str] = "list-wise: weighted DCG cut at N, smoothed; the paper's method with our best settings"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(0.01, 0.3, log=True),
        "n": Range(5, 50, log=True, whole=True),
        "steepness": Range(1.0, 10.0, log=True),
        "budget": Range(0.02, 1.0, log=True),
        "anchor": Range(0.1, 10.0, log=True),
    }

    def check(self) -> None:
        """Shared rules and those of the objective."""
        super().check()
        check_count(self, "n")
        check_flag(self, "truncate")
        check_number(self, "anchor", "anneal")
        one_of("gradient", self.gradient, GRADIENTS)
        one_of("metric", self.metric, METRICS)
        if self.anneal > 1.0:
            raise ParameterError(f"TopNRank.anneal must be a number from 0 to 1, got {self.anneal!r}")
        if self.steepness is not None:
            check_number(self, "steepness", above_zero=True)
        if self.budget is not None:
            check_number(self, "budget", above_zero=True)
        if not isinstance(self.smoothing, Missing):
            make_step(self.smoothing, self.steepness)
        if self.anneal > 0.0 and not self.truncate:
            raise ParameterError("TopNRank: anneal lets the cut at N come late; without truncate=True there is no cut")
        self._check_descends()
        if self._power() < 1.0 and self.truncate and self.metric == "dcg":
            raise ParameterError(
                "TopNRank: truncate=True needs a discount that is positive and falls to 0, such as 'dcg'; "
                f"got discount={self.discount!r}"
            )

    def _check_descends(self) -> None:
        """A step that adapts itself by the loss needs the gradient of that loss."""
        partial = self.metric == "dcg" and self.gradient == "paper"
        if isinstance(make_optimizer(self.optimizer), AdaptiveDescent) and (partial or self.budget is not None):
            raise ParameterError(
                "TopNRank: optimizer='adaptive' needs the gradient of the loss itself: set gradient='exact' and budget=None"
            )

    def objective(self) -> Objective:
        """The smoothed metric with this model's settings."""
        if isinstance(self.smoothing, Missing):
            raise ParameterError(
                f"the smoothing {self.smoothing.name} is an object of your own that the file cannot hold; "
                "put it back with set_params(smoothing=...)"
            )
        shared: dict[str, Any] = {
            "step": make_step(self.smoothing, self.steepness),
            "n": self.n,
            "truncate": self.truncate,
            "budget": self.budget or 0.0,
            "anchor": self.anchor,
            "anneal": self.anneal,
        }
        if self.metric != "dcg":
            return TRUNCATED[self.metric](**shared)
        return WeightedDCG(exact=self.gradient == "exact", discount=self._power(), **shared)

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
            "metric": "dcg",
            "smoothing": smoothing,
            "truncate": truncate,
            "anneal": 0.0,
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
