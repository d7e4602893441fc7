"""Models that are trained by gradient steps: the shared hyper-parameters, fit, and scores of a fitted model."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from topnrank._checks import one_of, require_integer
from topnrank._memory import SMALL
from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict
from topnrank.data.feedback.liked import LikedRule, Relevant, rule_for
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.engines import ENGINES
from topnrank.errors import ParameterError
from topnrank.kernels.top_items import pair_scores, scores_of
from topnrank.losses.base import Objective
from topnrank.models.base import Fitted, Model
from topnrank.models.factor.new_users import score_histories
from topnrank.models.factor.partial_fit import add_rows
from topnrank.models.factor.prepare import Selection
from topnrank.models.factor.recipe import GROUPS, Recipe, Task
from topnrank.models.factor.run import RunOptions, fit_model
from topnrank.models.linear.neighbors import neighbor_term
from topnrank.models.parameters import (
    AUTO,
    BATCH_SIZE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    Choice,
    Range,
    Space,
    by,
    integer,
    one_word,
    param,
    require,
)
from topnrank.models.presentation import TrainingHistory
from topnrank.models.sequence.links import NEXT_BIAS
from topnrank.models.serving.explain import Contributions, OneHistory, history_contributions
from topnrank.models.serving.similar import Cosine, alike
from topnrank.scorers import Factors, History, Scorer
from topnrank.training import Callback, Optimizer, make_optimizer

USER_REPRESENTATIONS = ("history", "factors")
HISTORY_PENALTY = 5.0
"""History vectors are summed over a whole list, so a plain number penalizes them this many times as much."""


def _check_penalties(value: Any) -> bool:
    """A number of at least 0, or a mapping from groups of parameters to such numbers."""
    if not isinstance(value, Mapping):
        return NOT_NEGATIVE.holds(value)
    for group, number in value.items():
        one_of("regularization: a group", group, tuple(dict.fromkeys(GROUPS.values())))
        rule = "a finite number of at least 0"
        require(NOT_NEGATIVE.holds(number), f"regularization of {group!r}", rule, number)
    return True


PENALTIES = replace(NOT_NEGATIVE, holds=_check_penalties)
START_VALUES = replace(POSITIVE, sentence='a finite number above 0, or "paper"', also=("paper",))


@dataclass(eq=False, kw_only=True)
class FactorModel(Model):
    """Base of the trained models; its fields are the hyper-parameters they share."""

    user_representation: str = param("history", one_word(*USER_REPRESENTATIONS))
    """How users are represented: "history" (a sum over the user's items, also for new users) or "factors" (the paper)."""
    factors: int = param(50, integer())
    """Length k of the vectors."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; None chooses by the data: ratings minus the user's mean, or the weights given."""
    bias: bool = param(True, FLAG)
    """Whether items have a bias."""
    init: float | str = param(0.03, START_VALUES)
    """Standard deviation of the start values, or "paper" for U(0, 2/(7k)^(1/4)) with user_representation="factors"."""
    optimizer: str | Optimizer = param("adagrad", by(make_optimizer))
    """"adagrad", "sgd", or an object of these kinds."""
    learning_rate: float = param(0.07, POSITIVE)
    """Step size."""
    regularization: float | Mapping[str, float] = param(0.0125, PENALTIES)
    """lambda of lambda ||theta||^2, felt at each visit (gradient 2 lambda theta): one number, or one for each of "user",
    "item", "history", "bias". With one number, history vectors get five times it."""
    batch_size: int | float | str = param(AUTO, BATCH_SIZE)
    """Users per batch: a count (int), a fraction of all users (float), or "auto": 100, or a thirtieth of the users if
    more."""
    epochs: int | None = param(20, integer().unless(None))
    """Passes over all users; None to count `iterations` instead."""
    iterations: int | None = param(None, integer().unless(None))
    """Batches, each drawn anew from all users, as in the paper; needs epochs=None."""
    tolerance: float = param(0.0, NOT_NEGATIVE)
    """The paper's epsilon: stop when the parameters moved less than this in a round (squared distance)."""
    seed: int = param(0, integer(0))
    """Start values and batches; the same seed gives the same bits for any number of threads."""
    history_power: float = param(0.6, NOT_NEGATIVE)
    """h of user_representation="history": the sum over a history of m items is divided by m^h."""
    num_threads: int = param(0, integer(0))
    """Threads; 0 for all cores."""
    engine: str = param("cpu", one_word(*ENGINES))
    """"cpu" (Numba), "spark" (a cluster: docs/cluster.md) or "reference" (plain NumPy, slow)."""

    default_feedback: ClassVar[str | None] = None
    """The feedback used when none is given; None for the natural one of the data."""
    likes_only: ClassVar[bool] = False
    """Whether only liked items enter the lists."""

    # -- what a subclass says ------------------------------------------------------------------------------------------

    @abstractmethod
    def objective(self) -> Objective:
        """The loss on one list."""

    def selection(self) -> Selection:
        """Which rows enter the lists, and how many unobserved items beside them."""
        return Selection(self.user_representation, relevant_only=self.likes_only)

    def check(self) -> None:
        """Every field keeps its rule, and the fields go together."""
        super().check()
        if self.init == "paper" and self.user_representation == "history":
            raise ParameterError(
                "init='paper' goes with user_representation='factors'; with user_representation='history' give a number"
            )
        if (self.epochs is None) == (self.iterations is None):
            raise ParameterError(
                f"{type(self).__name__}: give epochs or iterations (the other one None), "
                f"got epochs={self.epochs!r} and iterations={self.iterations!r}"
            )

    # -- training ------------------------------------------------------------------------------------------------------

    def resolve(self, data: Interactions | None = None) -> Recipe:
        """The recipe for training on `data`, with all settings checked and no "auto" left.

        Without data: what the model was fitted with, or would do by its parameters alone.
        """
        self.check()
        selection = self.selection()
        return self._recipe("catalog" if selection.negatives else "rated", {}, self.objective(), selection)

    def choose(self, recipe: Recipe, data: Interactions) -> Recipe:
        """`recipe` with the settings that are chosen by ranking rows held out of `data`, where the model has such."""
        return recipe

    def completed(self, fitted: Fitted, data: Interactions) -> Fitted:
        """The fitted state with what is learned beside the recipe, where the model has such; `data` have weights."""
        return fitted

    def _recipe(self, task: Task, chosen: Mapping[str, Any], objective: Objective, selection: Selection) -> Recipe:
        """The recipe with the values `chosen` in place of the fields of those names."""
        settings = {**self.get_params(), **chosen}
        given = settings["regularization"]
        if isinstance(given, Mapping):
            penalties = {group: float(given.get(group, 0.0)) for group in set(GROUPS.values())}
        else:
            penalties = {"user": given, "item": given, "history": HISTORY_PENALTY * given, "bias": given}
        scorer: Scorer = Factors(self.factors, self.init)
        if self.user_representation == "history":
            scorer = History(self.factors, self.init, float(settings["history_power"]))
        return Recipe(
            task=task,
            scorer=scorer,
            objective=objective,
            selection=selection,
            feedback=self.default_feedback if settings["feedback"] is None else settings["feedback"],
            optimizer=make_optimizer(settings["optimizer"]),
            learning_rate=settings["learning_rate"],
            penalties=penalties,
            bias=settings["bias"],
            batch_size=self.batch_size,
            epochs=settings["epochs"],
            iterations=self.iterations,
            tolerance=self.tolerance,
            seed=self.seed,
            engine=self.engine,
            num_threads=self.num_threads,
            settings=settings,
            shared_penalty=chosen.get("task") == "catalog",
            factor_weight=settings.get("factor_weight", 1.0),
            popularity=settings.get("popularity", 0.0),
        )

    def fit(
        self,
        data: Interactions,
        *,
        validation: Interactions | float | None = None,
        metric: str = "ndcg@10",
        patience: int = 10,
        relevant: Relevant = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Trains on `data`.

        Parameters
        ----------
        validation : held-out rows, or the fraction of each user's rows to hold out of `data`. The metric is measured
            after each round (ranking the held-out rows) and the best round is kept; training stops after `patience`
            rounds without a better one. Rows held out as a fraction teach nothing, but they count as seen and belong to
            the users' histories afterwards.
        relevant : the lowest rating that counts as liked, for `validation`, for `evaluate` later on, and where the model
            learns from likes and has no `feedback`, for that; "auto": the upper fifth of the ratings' scale; None: all.
        checkpoint : a folder. A run that was killed resumes from it when the same call is made again, and ends with the
            same bits as an uninterrupted one; a finished one is not trained again.
        progress : show a progress bar on the terminal.
        callbacks : further watchers (`topnrank.training.Callback`).
        """
        recipe = self.resolve(data)
        if 12 * (data.n_users + data.n_items) * recipe.settings.get("factors", 0) > SMALL:
            recipe.require_memory(data.n_users, data.n_items)
        if relevant != "auto" and data.ratings is not None:
            rule = rule_for(relevant, None, data.rating_counts) or LikedRule(float(data.ratings.min()), "every rating")
            recipe = recipe.with_liked(rule, learn=self.feedback is None and recipe.task == "catalog")
        options = RunOptions(checkpoint, progress, callbacks)
        self._fitted = fit_model(self, recipe, data, validation, metric, patience, options)
        return self

    def partial_fit(self, data: Interactions, *, epochs: int = 5) -> Self:
        """Takes in new rows, of known and new users and items, without training anew (`models/factor/partial_fit.py`).

        With user_representation="history" new events and new users count at once; new items are trained for `epochs`
        passes over the users who have them. What was trained before stays.
        """
        require_integer("partial_fit: epochs", epochs, 0)
        self._fitted = add_rows(self, self.recipe_, data, epochs)
        return self

    @property
    def recipe_(self) -> Recipe:
        """The recipe that the model was fitted by, with vectors as long as they are: `set_params` may say otherwise."""
        return self.fitted.cached(Recipe, self._recipe_of_fitted)

    def _recipe_of_fitted(self) -> Recipe:
        return self.resolve().with_factors(self.item_factors_.shape[1])

    def weigh(self, data: Interactions) -> Interactions:
        """Other rows, weighted as the training rows were; what has no feedback types stays as it is."""
        if data.types is None or data.ratings is not None:
            return data
        known = self.fitted.info.feedback
        return (feedback_from(self.recipe_.feedback, data) if known is None else feedback_from_dict(known))(data)

    @classmethod
    def search_space(cls) -> Space:
        """Values worth trying when the model is tuned, by the name of the hyper-parameter."""
        shared: Space = {
            "user_representation": Choice(USER_REPRESENTATIONS),
            "factors": Choice((10, 20, 50, 100)),
            "learning_rate": Range(0.01, 1.0, log=True),
            "regularization": Range(0.001, 0.1, log=True),
            "epochs": Range(5, 60, log=True, whole=True),
        }
        return {**shared, **cls.own_space}

    # -- scores -------------------------------------------------------------------------------------------------------

    @property
    def user_factors_(self) -> Float32Array:
        """(n_users, factors) user vectors; with user_representation="history" the history sums."""
        return self.array("user_factors")

    @property
    def item_factors_(self) -> Float32Array:
        """(n_items, factors) item vectors."""
        return self.array("item_factors")

    @property
    def item_bias_(self) -> Float32Array:
        """(n_items,) item biases; zeros when bias=False."""
        return self.array("item_bias")

    @property
    def task_(self) -> Task:
        """The task the model was fitted for: "rated" or "catalog"."""
        return self.fitted.info.task or "rated"

    @property
    def history_(self) -> TrainingHistory:
        """One record per round of training: objective, effective N, validation metric; `history_.plot()` draws them."""
        return TrainingHistory(self.fitted.info.history)

    @property
    def best_round_(self) -> int:
        """The round that is kept: the best on validation data, else the last."""
        return int(self.fitted.info.best_round or 0)

    def score_block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) U V' + b, plus the neighbors' part; or scores of what comes next, where there are such."""
        arrays = self.fitted.arrays
        if NEXT_BIAS in arrays:
            return self.next_block(users)
        factors, items, bias = arrays["user_factors"][users], arrays["item_factors"], arrays["item_bias"]
        block = scores_of(*(part.astype(np.float32, copy=False) for part in (factors, items, bias)))
        if (neighbors := neighbor_term(self.fitted)) is not None:
            neighbors.add_to(block, users)
        return block

    def next_block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) scores of what comes next, for models that have such."""
        raise NotImplementedError

    def next_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """(len(users),) scores of what comes next, for models that have such."""
        raise NotImplementedError

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """<u, v> + b of pairs. An item of the user's own history is scored like any other, its own part included."""
        if NEXT_BIAS in self.fitted.arrays:
            return self.next_pairs(users, items)
        scores, arrays = np.empty(len(users), np.float32), self.fitted.arrays
        blocks = (arrays[name].astype(np.float32, copy=False) for name in ("user_factors", "item_factors", "item_bias"))
        pairs = np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64)
        pair_scores(*blocks, *pairs, scores)
        if (neighbors := neighbor_term(self.fitted)) is not None:
            scores += neighbors.of_pairs(*pairs)
        return scores

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Scores for a user never seen."""
        return np.asarray(self.score_histories(np.array([0, items.size]), items, values)[0])

    def score_histories(self, indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Scores for users never seen: the history sum, or a vector fitted under the model's own objective."""
        return score_histories(self, indptr, items, values)

    def item_similarity(self, items: Int64Array) -> Float32Array | None:
        """Of items with the same users, neighbor weights and cosines of vectors; None without neighbors."""
        if (neighbors := neighbor_term(self.fitted)) is None:
            return None
        return alike(self.fitted, items, neighbors.of_items(items), Cosine(self.item_factors_)(items))

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """What each item of a history gives to the scores of other items; exact, for user_representation="history"."""
        return history_contributions(self, history, targets)

    def array(self, name: str) -> Float32Array:
        """A fitted block of parameters by its name."""
        return self.fitted.arrays[name].astype(np.float32, copy=False)
