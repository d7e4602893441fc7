"""TopNRank: the library's model."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, final

from topnrank._checks import check_count, check_flag, check_number, one_of
from topnrank.data.feedback.policies import Threshold
from topnrank.data.interactions import Interactions
from topnrank.engines import Problem
from topnrank.errors import ParameterError
from topnrank.losses.base import Objective
from topnrank.losses.steps import StepFunction, make_step
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.models.factor.model import FactorModel
from topnrank.models.factor.prepare import NO_FROZEN_TERMS, FrozenTerms, Selection
from topnrank.models.linear.neighbors import Ridge
from topnrank.models.persistence import Missing
from topnrank.models.search_space import Range, Space
from topnrank.models.topnrank.recipe import (
    AUTO,
    CATALOG_ACCUMULATOR,
    CATALOG_BALANCE,
    CATALOG_SHARES,
    CATALOG_SPACE,
    CATALOG_STEEPNESS,
    SETTINGS,
    TASKS,
    natural_task,
)
from topnrank.scorers import Scorer, TrainingLists
from topnrank.training import AdaGrad

TRUNCATED: dict[str, Callable[..., Objective]] = {"mrr": TruncatedMRR, "map": TruncatedMAP, "auc": TruncatedAUC}
METRICS = ("dcg", *TRUNCATED)
DISCOUNTS = {"dcg": 2.0, "log": 0.0}
"""Names of powers p of the discount's slope 1 / ((R+2) ln^p(R+2))."""
GRADIENTS = ("paper", "exact")
SAMPLINGS = ("popularity", "uniform")
DISLIKES = ("history", "list")
PAPER_RATES = {("relu", True): 1e-3, ("relu", False): 1e-2, ("sigmoid", True): 3e-2, ("sigmoid", False): 3e-2}
"""Learning rates for the paper's four variants, which the paper does not give. They suit some thousand users: a batch's
gradients are summed, so more users in a batch want a smaller rate. Tune them on validation data."""


@final
@dataclass(eq=False, kw_only=True)
class TopNRank(FactorModel):
    """Top-N-Rank: factorization that maximizes a smoothed, weighted DCG cut at N (Liang, Hu, Dong, Honavar 2018).

    The defaults are the best recipe known here for ranking items by ratings: users as histories, Laplace step, a gradient
    budget per user, a squared anchor. `TopNRank.paper()` gives the paper's own four variants and settings.

    Two tasks, two sets of defaults. Ranking the items that users rate (`task="rated"`): as the paper, lists hold the
    rated items. Ranking all items (`task="catalog"`): lists hold the liked items and a sample of unobserved ones
    that stands for all of them, dislikes are part of the history, and a neighbor ridge stands beside the factors. A
    model trained for one task is poor at the other; ItemMean, Popularity and EASE are the controls to compare with.

    `metric` puts MRR, MAP or AUC, smoothed and cut in the same manner, in the place of DCG (the paper's future work). They
    know positive weights and others only, not how large a weight is; the anchor still does.
    """

    task: str | None = None
    """The task: "rated" (rank the items a user has rated, the paper), "catalog" (rank all items), or None: by the data.
    Ratings, or weights that differ within a user: rated; events and likes alone: catalog. Fields set to "auto" follow."""
    n: int = 20
    """N: the length of the list that matters. In the paper the cut of wDCG@N; with `gradient_budget` the size of the gradient."""
    metric: str = "dcg"
    """What is smoothed: "dcg" (the paper), "mrr" (the first liked item), "map" (all liked items) or "auc" (liked first)."""
    smoothing: str | StepFunction = "laplace"
    """Step function of the ranks: "relu", "sigmoid", "laplace", "ramp", or an object with h(x) and dh(x) (then O(m^2))."""
    steepness: float | None = None
    """C of sigmoid, laplace and ramp; None for the usual 7, 3 (catalog: 2) and 1."""
    truncate: bool = False
    """The gate H(N - R) of eq. 8, or (N - R)_+/N with another metric than "dcg": items beyond N do not count."""
    anneal_n: float = 0.0
    """With `truncate`: share of the training in which the gate's N shrinks from the length of the list to N; 0 for never."""
    gradient: str = AUTO
    """"paper": items follow the paper's partial gradient; "exact": the true gradient of eq. 8, which the catalog needs.
    Only metric="dcg" knows the partial one; the other metrics always use their exact gradient, whatever stands here."""
    discount: str | float = AUTO
    """"dcg" (1/ln(R+2)), "log" (-ln(R+2)), or the power p of the slope 1/((R+2) ln^p(R+2)): 2 is DCG, 0 is log. Of
    metric="dcg"; the other metrics have no discount and ignore it."""
    gradient_budget: float | str | None = AUTO
    """Each user's list-wise gradient is scaled to mass gradient_budget * min(list length, N); None leaves it (the paper)."""
    squared_weight: float | str = AUTO
    """Weight of the squared term that ties centered scores to centered weights; 0 for none (the paper)."""
    negatives: int | str = AUTO
    """S: unobserved items sampled into each list at each visit, with replacement; 0 for none (the paper)."""
    sampling: str = "popularity"
    """"popularity" (chances proportional to the square root of an item's users) or "uniform"; unused without negatives."""
    neighbors: int | str = AUTO
    """T: nearest items whose regression weights stand beside the factors (`NeighborRidge`); 0 for none."""
    neighbor_penalty: float = 200.0
    """lambda of the neighbors' regressions, in users."""
    sessions: float | None = None
    """Seconds without an event that end a session of a user: neighbors are then found by the sessions that items share,
    not by users (`NeighborRidge`). None: by users. Needs timestamps. For logs of visits."""
    type_vectors: bool = False
    """With user_representation="history" and weights by type (`EventWeights`, `ConversionRate`): each type has a history vector of its
    own, beside the one that all events share. A row counts as the type whose weight is nearest to its own."""
    recency: float | None = None
    """For the catalog: after so many later items of the user an item counts half in the history; None: always fully.
    Needs timestamps. For data where the next items are wanted."""
    dislikes: str = AUTO
    """For the catalog, where rows with a weight below 0 go: "history" (they say what the user knows) or "list" (they are
    pushed down, too). Auto: ratings to the history, weights below 0 that you gave to the list."""
    learning_rate: float | str = AUTO  # type: ignore[assignment]
    regularization: float | Mapping[str, float] | str = AUTO  # type: ignore[assignment]
    """lambda, as for all models; for the catalog a plain number is that of the items, history vectors get a quarter of it,
    user vectors ten times as much, biases none. Sparse data want far more than dense data: tune it."""
    history_power: float | str = AUTO  # type: ignore[assignment]

    name: ClassVar[str] = "top-n-rank"
    summary: ClassVar[str] = "list-wise: weighted DCG cut at N, smoothed; the paper's method with our best settings"
    own_space: ClassVar[Space] = {
        "learning_rate": Range(0.01, 0.3, log=True),
        "n": Range(5, 50, log=True, whole=True),
        "steepness": Range(1.0, 10.0, log=True),
        "gradient_budget": Range(0.02, 1.0, log=True),
        "squared_weight": Range(0.1, 10.0, log=True),
    }

    def check(self) -> None:
        """Shared rules and those of the objective, with "auto" filled in."""
        if self.task is not None:
            one_of("task", self.task, TASKS)
        self._filled(self._asked_for() or "rated")._check_filled()

    def settled(self, data: Interactions | None = None) -> Self:
        """The model with "auto" filled in for its task: that of `task`, of `data`, or the one it was fitted for."""
        task = self._asked_for()
        if task is None and data is not None:
            task = natural_task(data)
        elif task is None and self._fitted is not None:
            task = str(self._fitted.facts.get("task", "rated"))
        filled = self._filled(task or "rated", data)
        filled._check_filled()
        return filled

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """A model with task and values in place of None and "auto"; a plain lambda stays a number."""
        task = self._asked_for() or natural_task(data)
        settings = {name: value for name, value in SETTINGS[task].items() if getattr(self, name) == AUTO}
        return type(self)(**self.get_params() | settings | {"task": task})

    def space(self) -> Space:
        """For the catalog a space of its own."""
        return dict(CATALOG_SPACE) if self._asked_for() == "catalog" else self.search_space()

    def _task(self) -> Literal["rated", "catalog"]:
        """The task; "rated" where it is still open."""
        return "catalog" if self.task == "catalog" else "rated"

    def _asked_for(self) -> str | None:
        """The task given; sampled items, neighbors, sessions and recency belong to the catalog."""
        settings = (self.negatives, self.neighbors, self.sessions, self.recency)
        wanted = any(value != AUTO and value is not None and value != 0 for value in settings)
        return self.task or ("catalog" if wanted else None)

    def _filled(self, task: str, data: Interactions | None = None) -> Self:
        """A copy with the task's values in place of "auto"."""
        filled = copy.copy(self)
        filled.task = task
        for name, value in SETTINGS[task].items():
            if isinstance(given := getattr(self, name), str) and given == AUTO:
                setattr(filled, name, value)
        if task == "catalog":
            self._fill_catalog(filled, data)
        return filled

    def _fill_catalog(self, filled: Self, data: Interactions | None) -> None:
        if self.steepness is None and self.smoothing == "laplace":
            filled.steepness = CATALOG_STEEPNESS
        if self.optimizer == "adagrad":
            filled.optimizer = AdaGrad(CATALOG_ACCUMULATOR)
        if isinstance(filled.regularization, int | float):
            filled.regularization = {group: share * filled.regularization for group, share in CATALOG_SHARES.items()}
        if self.dislikes == AUTO:
            rated = data.ratings is not None if data is not None else self._was_rated()
            filled.dislikes = "history" if rated else "list"
        if self.feedback is None and (data.ratings is not None if data is not None else self._was_rated()):
            filled.feedback = Threshold(4.0)

    def _was_rated(self) -> bool:
        return self._fitted is None or self._fitted.facts.get("value") == "ratings"

    def _check_filled(self) -> None:
        super().check()
        check_count(self, "n")
        check_count(self, "negatives", "neighbors", least=0)
        check_flag(self, "truncate", "type_vectors")
        check_number(self, "squared_weight", "anneal_n", "neighbor_penalty")
        one_of("gradient", self.gradient, GRADIENTS)
        one_of("metric", self.metric, METRICS)
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("dislikes", self.dislikes, DISLIKES)
        if self.anneal_n > 1.0:
            raise ParameterError(f"TopNRank.anneal_n must be a number from 0 to 1, got {self.anneal_n!r}")
        if self.steepness is not None:
            check_number(self, "steepness", above_zero=True)
        if self.gradient_budget is not None:
            check_number(self, "gradient_budget", above_zero=True)
        for name in ("sessions", "recency"):
            if getattr(self, name) is not None:
                check_number(self, name, above_zero=True)
        if not isinstance(self.smoothing, Missing):
            make_step(self.smoothing, self.steepness)
        if self.anneal_n > 0.0 and not self.truncate:
            raise ParameterError("TopNRank: anneal lets the cut at N come late; without truncate=True there is no cut")
        self._check_task()
        if self._power() < 1.0 and self.truncate and self.metric == "dcg":
            raise ParameterError(
                "TopNRank: truncate=True needs a discount that is positive and falls to 0, such as 'dcg'; "
                f"got discount={self.discount!r}"
            )

    def _check_task(self) -> None:
        """What the two tasks can and cannot do."""
        if self.type_vectors and self.user_representation != "history":
            raise ParameterError(
                "TopNRank: type_vectors are parts of histories; set user_representation='history', or leave them out"
            )
        if self.task == "rated":
            if self.negatives or self.neighbors or self.recency or self.sessions:
                raise ParameterError(
                    "TopNRank: negatives, neighbors, sessions and recency are for the whole catalog; "
                    "set task='catalog', or leave them out"
                )
            return
        if self.sessions is not None and not self.neighbors:
            raise ParameterError("TopNRank: sessions say how neighbors are found; set neighbors, or leave them out")
        if self.metric != "dcg":
            raise ParameterError(f"TopNRank: task='catalog' knows metric='dcg' only, got {self.metric!r}")
        if not self.negatives:
            raise ParameterError(
                "TopNRank: task='catalog' needs unobserved items to rank against: set negatives, such as 200"
            )

    def objective(self) -> Objective:
        """The smoothed metric with this model's settings."""
        if isinstance(self.smoothing, Missing):
            raise ParameterError(
                f"the smoothing {self.smoothing.name} is an object of your own that the file cannot hold; "
                "put it back with set_params(smoothing=...)"
            )
        filled = self.settled()
        shared: dict[str, Any] = {
            "step": make_step(filled.smoothing, filled.steepness),
            "n": filled.n,
            "truncate": filled.truncate,
            "gradient_budget": float(filled.gradient_budget or 0.0),
            "squared_weight": float(filled.squared_weight),
            "anneal_n": filled.anneal_n,
        }
        if filled.metric != "dcg":
            return TRUNCATED[filled.metric](**shared)
        length_power = CATALOG_BALANCE if filled.task == "catalog" else 0.0
        return WeightedDCG(
            exact=filled.gradient == "exact", discount=filled._power(), length_power=length_power, **shared
        )

    def scorer(self, channels: int = 1) -> Scorer:
        """How parameters become scores."""
        return FactorModel.scorer(self.settled(), channels)

    def relevant_only(self) -> bool:
        """For the catalog lists hold likes and sampled items; what else the user rated stays in the history."""
        return self.task == "catalog"

    def selection(self) -> Selection:
        """Which rows enter the lists, how many unobserved items beside them, and the neighbors' regressions."""
        if self.task != "catalog":
            return Selection(self.user_representation, by_type=self.type_vectors)
        ridge = None
        if self.neighbors:
            ridge = Ridge(int(self.neighbors), self.neighbor_penalty, sessions=self.sessions)
        return Selection(
            self.user_representation,
            relevant_only=True,
            negatives=int(self.negatives),
            disliked=self.dislikes == "list",
            popular=self.sampling == "popularity",
            ridge=ridge,
            by_type=self.type_vectors,
            recency=self.recency,
        )

    def problem(self, rows: TrainingLists, frozen: FrozenTerms = NO_FROZEN_TERMS) -> Problem:
        """As for all models; for the catalog the penalty does not grow with the number of sampled items."""
        filled = self.settled()
        return dataclasses.replace(FactorModel.problem(filled, rows, frozen), shared=filled.task == "catalog")

    @classmethod
    def paper(cls, *, smoothing: str = "relu", truncate: bool = True, **changes: Any) -> Self:
        """The paper's variants: smoothing "relu" or "sigmoid", with or without the top-N truncation (its Table 2).

        Section IV: k = 10, N = 20, C = 7, start values U(0, 2/(7k)^(1/4)), lambda = 0.1, batches of 10 % of the users, 30
        iterations or until the parameters move less than 0.1, weights +1 from four stars on and -1 below. The learning
        rate is not given there: ours is a start, to be tuned on validation data. `changes` override any parameter.
        """
        one_of("smoothing", smoothing, ("relu", "sigmoid"))
        settings: dict[str, Any] = {
            "task": "rated",
            "user_representation": "factors",
            "factors": 10,
            "n": 20,
            "metric": "dcg",
            "smoothing": smoothing,
            "truncate": truncate,
            "anneal_n": 0.0,
            "steepness": 7.0 if smoothing == "sigmoid" else None,
            "gradient": "paper",
            "discount": "dcg",
            "gradient_budget": None,
            "squared_weight": 0.0,
            "negatives": 0,
            "neighbors": 0,
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
