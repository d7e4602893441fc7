"""TopNRank: the library's model."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.data.feedback.policies import LIKED_FROM, Threshold
from topnrank.data.interactions import Interactions
from topnrank.losses import Objective, StepFunction, make_step
from topnrank.models.base import Fitted
from topnrank.models.factor.model import PENALTIES, FactorModel
from topnrank.models.factor.new_users import liked_part
from topnrank.models.factor.prepare import Selection
from topnrank.models.factor.recipe import Recipe
from topnrank.models.linear.neighbors import Ridge
from topnrank.models.parameters import (
    AUTO,
    FLAG,
    FRACTION,
    NOT_NEGATIVE,
    POSITIVE,
    Range,
    Space,
    by,
    integer,
    one_word,
    param,
)
from topnrank.models.sequence.links import NEXT_BIAS
from topnrank.models.serving.explain import Contributions, OneHistory
from topnrank.models.topnrank.choice import choose
from topnrank.models.topnrank.next_items import ORDERS, add_next, are_next, next_scores, without_next
from topnrank.models.topnrank.recipe import (
    CATALOG_LENGTH_POWER,
    CATALOG_SPACE,
    CHOSEN,
    LOSSES,
    OPEN_TASK,
    SETTINGS,
    TASKS,
    check_combinations,
    discount_power,
    feedback_of_fitted,
    requested_task,
    resolve_settings,
)

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

    task: str | None = param(None, one_word(*TASKS).unless(None))
    """The task: "catalog" (rank all items), "rated" (rank the items a user has rated, the paper), or None: the catalog,
    unless other fields know rated items only. Fields set to "auto" follow."""
    n: int = param(20, integer())
    """N: the length of the list that matters. In the paper the cut of wDCG@N; with `gradient_budget` the
    size of the gradient."""
    metric: str = param("dcg", one_word(*LOSSES))
    """What is smoothed: "dcg" (the paper), "mrr" (the first liked item), "map" (all liked items) or "auc" (liked first)."""
    smoothing: str | StepFunction = "laplace"
    """Step function of the ranks: "relu", "sigmoid", "laplace", "ramp", or an object with h(x) and dh(x) (then O(m^2))."""
    steepness: float | None = param(None, POSITIVE.unless(None))
    """C of sigmoid, laplace and ramp; None for the usual 7, 3 (catalog: 2) and 1."""
    truncate: bool = param(False, FLAG)
    """The gate H(N - R) of eq. 8, or (N - R)_+/N with another metric than "dcg": items beyond N do not count."""
    anneal_n: float = param(0.0, FRACTION)
    """With `truncate`: share of the training in which the gate's N shrinks from the length of the list to N; 0 for never."""
    gradient: str = param(AUTO, one_word(*GRADIENTS).unless(AUTO))
    """"paper": items follow the paper's partial gradient; "exact": the true gradient of eq. 8, which the catalog needs.
    Only metric="dcg" knows the partial one; the other metrics always use their exact gradient, whatever stands here."""
    discount: str | float = param(AUTO, by(discount_power).unless(AUTO))
    """"dcg" (1/ln(R+2)), "log" (-ln(R+2)), or the power p of the slope 1/((R+2) ln^p(R+2)): 2 is DCG, 0 is log. Of
    metric="dcg"; the other metrics have no discount and ignore it."""
    gradient_budget: float | str | None = param(AUTO, POSITIVE.unless(AUTO, None))
    """Each user's list-wise gradient is scaled to mass gradient_budget * min(list length, N); None leaves it (the paper)."""
    squared_weight: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """Weight of the squared term that ties centered scores to centered weights; 0 for none (the paper)."""
    negatives: int | str = param(AUTO, integer(0).unless(AUTO))
    """S: unobserved items sampled into each list at each visit, with replacement; 0 for none (the paper)."""
    sampling: str = param("popularity", one_word(*SAMPLINGS))
    """"popularity" (chances proportional to the square root of an item's users) or "uniform"; unused without negatives."""
    neighbors: int | str = param(AUTO, integer(0).unless(AUTO))
    """T: nearest items whose regression weights stand beside the factors (`NeighborRidge`); 0 for none."""
    neighbor_penalty: float | str = param(AUTO, POSITIVE.unless(AUTO))
    """lambda of the neighbors' regressions, in users."""
    factor_weight: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """For the catalog: what the trained factors weigh beside the neighbors; 1 as they were trained, 0 leaves them out."""
    popularity: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """For the catalog: what the popularity of items weighs, that of late where rows have times; 0 for nothing. A liked item
    has a score of about 1, popularity a standard deviation of 1. For users without rows it alone decides."""
    held_out: str = param(AUTO, one_word("per-user", "last", "time").unless(AUTO))
    """For the catalog: the rows by which open settings are chosen. "per-user": some of each user at random, right for what
    else users like; "last": the last item of each; "time": the latest rows of all, right for lists of the days to come.
    Auto: as the data were split (`split_per_user`, `split_last`, `split_time`), whole data by "per-user"."""
    sessions: float | None = param(None, POSITIVE.unless(None))
    """Seconds without an event that end a session of a user: neighbors are then found by the sessions that items share,
    not by users (`NeighborRidge`). None: by users. Needs timestamps. For logs of visits."""
    type_vectors: bool = param(False, FLAG)
    """With user_representation="history" and weights by type (`EventWeights`, `ConversionRate`): each type has a history
    vector of its own, beside the one that all events share. A row counts as the type whose weight is nearest to its own."""
    recency: float | None = param(None, POSITIVE.unless(None))
    """For the catalog: after so many later items of the user an item counts half in the history; None: always fully.
    Needs timestamps. For data where the next items are wanted."""
    order: str = param(AUTO, one_word(*ORDERS))
    """For the catalog, where rows have times, a second score for what comes next: "counts" (`Transitions`), "ridge"
    (`NextItemRidge`, better and slower), each with neighbors whose likes fade and what is popular of late beside it, or
    "none". "auto": counts, where they rank held-out last items better than neighbors without order, unless `recency` or
    `sessions` say how order counts. `recommend` asks for what comes next, `evaluate` by the times of the test rows."""
    dislikes: str = param(AUTO, one_word(*DISLIKES).unless(AUTO))
    """For the catalog, where rows with a weight below 0 go: "history" (they say what the user knows) or "list" (they are
    pushed down, too). Auto: ratings to the history, weights below 0 that you gave to the list."""
    learning_rate: float | str = param(AUTO, POSITIVE.unless(AUTO))  # type: ignore[assignment]
    regularization: float | Mapping[str, float] | str = param(  # type: ignore[assignment]
        AUTO, PENALTIES.unless(AUTO)
    )
    """lambda, as for all models; for the catalog a plain number is that of the items, history vectors get a quarter of it,
    user vectors ten times as much, biases none. Sparse data want far more than dense data: tune it."""
    history_power: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))  # type: ignore[assignment]
    bias: bool | str = param(AUTO, FLAG.unless(AUTO))  # type: ignore[assignment]
    """Whether items have a trained bias; "auto": for the catalog none, which has `popularity`."""
    epochs: int | str | None = param(AUTO, integer().unless(AUTO, None))  # type: ignore[assignment]
    """Passes over all users; "auto": 20, for the catalog as many as help; None to count `iterations` instead."""

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
        """Every field keeps its rule, and the fields go together in the task."""
        super().check()
        task = requested_task(self) or OPEN_TASK
        check_combinations(self, task, resolve_settings(self, task, rated=True))

    def resolve(self, data: Interactions | None = None) -> Recipe:
        """The recipe for training on `data`, with the task chosen and all settings of that task filled in.

        Without data: what the model was fitted with, or would do by its parameters alone (an open task is "catalog").
        """
        super().check()
        task, rated = requested_task(self), True
        if data is not None:
            rated = data.ratings is not None
        elif self._fitted is not None:
            task, rated = task or self._fitted.info.task, self._fitted.info.value == "ratings"
        task = task or OPEN_TASK
        settings = resolve_settings(self, task, rated, data)
        if data is None and self._fitted is not None:
            settings |= self._fitted.info.chosen or {}
            if task == "catalog" and self.feedback is None:
                settings["feedback"] = feedback_of_fitted(self._fitted.info)
        check_combinations(self, task, settings)
        shared: dict[str, Any] = {
            "step": make_step(self.smoothing, settings.get("steepness", self.steepness)),
            "n": self.n,
            "truncate": self.truncate,
            "gradient_budget": float(settings["gradient_budget"] or 0.0),
            "squared_weight": float(settings["squared_weight"]),
            "anneal_n": self.anneal_n,
        }
        if self.metric == "dcg":
            shared["exact"], shared["discount"] = settings["gradient"] == "exact", discount_power(settings["discount"])
            shared["length_power"] = CATALOG_LENGTH_POWER if task == "catalog" else 0.0
        objective = LOSSES[self.metric](**shared)
        if task == "rated":  # all rows, as the paper
            selection = Selection(self.user_representation, by_type=self.type_vectors)
        else:  # likes and sampled items; what else the user rated stays in the history
            neighbors = int(settings["neighbors"])
            selection = Selection(
                self.user_representation,
                relevant_only=True,
                negatives=int(settings["negatives"]),
                disliked=settings["dislikes"] == "list",
                popular=self.sampling == "popularity",
                ridge=Ridge(neighbors, settings["neighbor_penalty"], sessions=self.sessions) if neighbors else None,
                by_type=self.type_vectors,
                recency=self.recency,
            )
        recipe = self._recipe(task, settings, objective, selection)
        is_open = {name for name in CHOSEN if isinstance(getattr(self, name), str)} if task == "catalog" else ()
        return replace(recipe, open_settings=frozenset(is_open))

    def choose(self, recipe: Recipe, data: Interactions) -> Recipe:
        """For the catalog: neighbors, factors and popularity as strong as rows held out of `data` are ranked best."""
        return choose(recipe, data)

    def completed(self, fitted: Fitted, data: Interactions) -> Fitted:
        """With the scores of what comes next."""
        return add_next(self, fitted, data)

    def for_rows(self, rows: Interactions) -> tuple[Self, str]:
        """The model that `evaluate` asks for these rows, and in words what it asks for.

        Test rows that come after their user's training rows are what comes next. Where more than a tenth of them do not, or
        nine tenths come after all training rows, they are rows of any time, for which order says less than all of the past.
        """
        if NEXT_BIAS not in self.fitted.arrays:
            return self, ""
        if are_next(self.fitted, rows):
            return self, "asked for what comes next"
        return self._at_any_time(), "asked for rows of any time"

    def _at_any_time(self) -> Self:
        """The model without the scores of what comes next."""
        other = copy.copy(self)
        other._fitted = without_next(self.fitted)
        return other

    def next_block(self, users: IntArray) -> Float32Array:
        """Scores of what comes next, for users with a past; for others those of any time."""
        following = next_scores(self)
        assert following is not None
        block, others = following.links.block(users), ~following.known[users]
        if others.any():
            block[others] = self._at_any_time().score_block(users[others])
        return block

    def next_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The same for pairs."""
        following = next_scores(self)
        assert following is not None
        users, items = np.asarray(users), np.asarray(items)
        scores, others = following.links.pairs(users, items), ~following.known[users]
        if others.any():
            scores[others] = self._at_any_time().score_pairs(users[others], items[others])
        return scores

    def score_histories(self, indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
        """The same for users never seen, whose histories are given from the oldest item to the latest."""
        following = next_scores(self)
        liked = None if following is None else liked_part(self, items, values)
        sizes = np.zeros(len(indptr) - 1) if liked is None else np.add.reduceat(liked, indptr[:-1], dtype=np.int64)
        if following is None or not sizes.any():
            return super().score_histories(indptr, items, values)
        assert liked is not None
        scores = super().score_histories(indptr, items, values) if not sizes.all() else None
        block = np.empty((len(sizes), len(self.item_map)), np.float32) if scores is None else scores
        for n in np.flatnonzero(sizes):
            own = slice(indptr[n], indptr[n + 1])
            block[n] = following.history(items[own], liked[own].astype(np.float64))
        return block

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """What each item of a history gives to the scores of other items; exact."""
        following = next_scores(self)
        if following is None:
            return super().contributions(history, targets)
        past = history.past
        if past is None:
            liked = liked_part(self, history.items, history.values)
            past = following.directed.past_of(liked.astype(np.float64))
        if not past.any():
            return super().contributions(history, targets)
        return following.directed.parts_of(following.links, history.items, past, targets)

    def objective(self) -> Objective:
        """The loss on one list, with all settings resolved."""
        return self.resolve().objective

    def selection(self) -> Selection:
        """Which rows enter the lists, with all settings resolved."""
        return self.resolve().selection

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """A model with task and values in place of None and "auto"; a plain lambda stays a number."""
        task = requested_task(self) or OPEN_TASK
        settings = {name: value for name, value in SETTINGS[task].items() if getattr(self, name) == AUTO}
        return type(self)(**self.get_params() | settings | {"task": task})

    def space(self) -> Space:
        """Values worth trying for the task that is asked for."""
        return self.search_space() if requested_task(self) == "rated" else dict(CATALOG_SPACE)

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
            "feedback": Threshold(LIKED_FROM),
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
