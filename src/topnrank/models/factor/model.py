"""Models that the training loop trains: a scorer, an objective, and everything else written once."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from topnrank._checks import check_batch, check_count, check_flag, check_number, one_of
from topnrank._typing import Float32Array, FloatArray, IntArray
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions, check_interactions
from topnrank.engines import ENGINES, Problem, State
from topnrank.errors import DivergenceError, ParameterError
from topnrank.kernels.top_items import pair_scores
from topnrank.losses.base import Objective
from topnrank.models.base import Fitted, Model
from topnrank.models.factor.fitted import fitted_arrays, score_users
from topnrank.models.factor.new_users import score_histories
from topnrank.models.factor.partial_fit import add_rows
from topnrank.models.factor.prepare import NO_FROZEN_TERMS, FrozenTerms, Selection, prepare
from topnrank.models.factor.run import Run, ValidationOptions
from topnrank.models.linear.neighbors import neighbor_term
from topnrank.models.search_space import Choice, Range, Space
from topnrank.models.serving.explain import Contributions, OneHistory, history_contributions
from topnrank.scorers import Factors, History, Scorer, TrainingLists, UpdateRule
from topnrank.scorers.neighbors import SCALE
from topnrank.training import AdaGrad, Callback, Optimizer, Schedule, make_optimizer, start_state
from topnrank.training.schedule import batch_count

USER_REPRESENTATIONS = ("history", "factors")
_GROUPS = {
    "user_factors": "user",
    "item_factors": "item",
    "history_factors": "history",
    "rating_factors": "history",
    "item_bias": "bias",
}
"""Which group of `regularization` each block of parameters belongs to."""
SCALE_ACCUMULATOR, SCALE_RATE = 1e-3, 0.05
"""Where the AdaGrad accumulator of the neighbors' scale begins, and its rate as a share of the scale's start."""
HISTORY_PENALTY = 5.0
"""History vectors are summed over a whole list, so a plain number penalizes them this many times as much."""


@dataclass(eq=False, kw_only=True)
class FactorModel(Model):
    """Base of the trained models; its fields are the hyper-parameters they share."""

    user_representation: str = "history"
    """How users are represented: "history" (a sum over the user's items, also for new users) or "factors" (the paper)."""
    factors: int = 50
    """Length k of the vectors."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; None chooses by the data: ratings minus the user's mean, or the weights given."""
    bias: bool = True
    """Whether items have a bias."""
    init: float | str = 0.03
    """Standard deviation of the start values, or "paper" for U(0, 2/(7k)^(1/4)) with user_representation="factors"."""
    optimizer: str | Optimizer = "adagrad"
    """"adagrad", "sgd", or an object of these kinds."""
    learning_rate: float = 0.07
    """Step size."""
    regularization: float | Mapping[str, float] = 0.0125
    """lambda of lambda ||theta||^2, felt at each visit (gradient 2 lambda theta): one number, or one for each of "user",
    "item", "history", "bias". With one number, history vectors get five times it."""
    batch_size: int | float | str = "auto"
    """Users per batch: a count (int), a share of all users (float), or "auto": 100, or a thirtieth of the users if more."""
    epochs: int | None = 20
    """Passes over all users; None to count `iterations` instead."""
    iterations: int | None = None
    """Batches, each drawn anew from all users, as in the paper; needs epochs=None."""
    tolerance: float = 0.0
    """The paper's epsilon: stop when the parameters moved less than this in a round (squared distance)."""
    seed: int = 0
    """Start values and batches; the same seed gives the same bits for any number of threads."""
    history_power: float = 0.6
    """h of user_representation="history": the sum over a history of m items is divided by m^h."""
    num_threads: int = 0
    """Threads; 0 for all cores."""
    engine: str = "cpu"
    """"cpu" (Numba), "spark" (a cluster: docs/cluster.md) or "reference" (plain NumPy, slow)."""

    default_feedback: ClassVar[str | None] = None
    """The feedback used when none is given; None for the natural one of the data."""
    own_space: ClassVar[Space] = {}
    """Values worth trying of the model's own hyper-parameters, or instead of the shared ones."""

    @abstractmethod
    def objective(self) -> Objective:
        """The loss on one list."""

    def check(self) -> None:
        """Every shared hyper-parameter keeps its rule."""
        one_of("user_representation", self.user_representation, USER_REPRESENTATIONS)
        one_of("engine", self.engine, ENGINES)
        check_count(self, "factors")
        check_count(self, "seed", "num_threads", least=0)
        check_number(self, "learning_rate", above_zero=True)
        check_number(self, "tolerance", "history_power")
        check_flag(self, "bias")
        check_batch(self, "batch_size")
        self._check_optimizer()
        self._check_init()
        self._check_length()
        self._penalties()

    def fit(
        self,
        data: Interactions,
        *,
        validation: Interactions | float | None = None,
        metric: str = "ndcg@10",
        patience: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Trains on `data`.

        Parameters
        ----------
        validation : held-out rows, or the share of each user's rows to hold out of `data`. The metric is measured after
            each round (ranking the held-out rows) and the best round is kept; training stops after `patience` rounds
            without a better one. Rows held out as a share teach nothing, but they count as seen and belong to the
            users' histories afterwards.
        checkpoint : a folder. A run that was killed resumes from it when the same call is made again, and ends with the
            same bits as an uninterrupted one; a finished one is not trained again.
        progress : show a progress bar on the terminal.
        callbacks : further watchers (`topnrank.training.Callback`).
        """
        self.check()
        check_interactions(data)
        model = self.settled(data)
        options = ValidationOptions.of(data, validation, metric, patience)
        prepared = prepare(options.train, model.policy(), model.selection())
        run = Run(model, prepared, options, checkpoint=checkpoint, extra=callbacks)
        with ExitStack() as stack:
            try:
                outcome = run.go(stack if progress else None)
            except DivergenceError as error:
                kept = f"; the last good checkpoint is in {checkpoint}" if run.has_checkpoint() else ""
                raise DivergenceError(
                    f"{type(self).__name__}: {error}, with learning_rate={model.learning_rate}{kept}; "
                    "try a smaller learning_rate"
                ) from None
        if options.train is not data:  # rows held out by us are the user's all the same: seen, and part of the history
            prepared = prepare(data, model.policy(), model.selection(), strict=False, earlier=prepared)
        learned = fitted_arrays(model, outcome.parameters, prepared)
        self._fitted = Fitted.of(prepared.data, learned, task=model._task(), **prepared.facts, **outcome.facts)
        return self

    def partial_fit(self, data: Interactions, *, epochs: int = 5) -> Self:
        """Takes in new rows, of known and new users and items, without training anew (`models/factor/partial_fit.py` has the rules).

        With user_representation="history" new events and new users count at once; new items are trained for `epochs` passes over the
        users who have them. What was trained before stays.
        """
        check_interactions(data)
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 0:
            raise ParameterError(f"partial_fit: epochs must be a whole number of at least 0, got {epochs!r}")
        self._fitted = add_rows(self.settled(), data, epochs)
        return self

    def weigh(self, data: Interactions) -> Interactions:
        """Other rows, weighted as the training rows were; what has no feedback types stays as it is."""
        if data.types is None or data.ratings is not None:
            return data
        known = self.fitted.facts.get("feedback")
        return (feedback_from(self.settled().policy(), data) if known is None else feedback_from_dict(known))(data)

    # -- the parts of a run -------------------------------------------------------------------------------------------

    def settled(self, data: Interactions | None = None) -> Self:
        """The model with all settings given: those that depend on the task are filled in, by `data` or as it was fitted."""
        return self

    def _task(self) -> Literal["rated", "catalog"]:
        """What the model is trained for: to rank the items a user has rated ("rated") or all items ("catalog")."""
        return "rated"

    def scorer(self, channels: int = 1) -> Scorer:
        """How parameters become scores; `channels` of what histories know beside an item."""
        if self.user_representation == "history":
            return History(self.factors, self.init, self.history_power, channels)
        return Factors(self.factors, self.init)

    def policy(self) -> Feedback | str | None:
        """The feedback given, or else the model's own."""
        return self.default_feedback if self.feedback is None else self.feedback

    def relevant_only(self) -> bool:
        """Whether only rows with a weight above 0 enter the lists; the others stay in the users' histories."""
        return False

    def selection(self) -> Selection:
        """Which rows enter the lists, and how many unobserved items beside them."""
        return Selection(self.user_representation, self.relevant_only(), int(getattr(self, "negatives", 0)))

    def problem(self, rows: TrainingLists, frozen: FrozenTerms = NO_FROZEN_TERMS) -> Problem:
        """Scorer, objective, rows and rules as the engines want them."""
        optimizer, penalties = make_optimizer(self.optimizer), self._penalties()
        adagrad = isinstance(optimizer, AdaGrad)
        rules = {
            block: UpdateRule(
                adagrad, self.learning_rate if self.bias or group != "bias" else 0.0, 2.0 * penalties[group]
            )
            for block, group in _GROUPS.items()
        }
        rules[SCALE] = UpdateRule(True, SCALE_RATE * frozen.scale, 0.0)
        negatives = self.selection().negatives
        problem = Problem(
            self.scorer(frozen.channels), self.objective(), rows, rules, negatives, self.seed
        )
        return replace(problem, neighbors=frozen.neighbors, sampling_weights=frozen.sampling_weights)

    def start_state(self, n_users: int, n_items: int, frozen: FrozenTerms = NO_FROZEN_TERMS) -> State:
        """Start values and fresh accumulators."""
        parameters = self.scorer(frozen.channels).initialize(n_users, n_items, self.seed)
        if frozen.neighbors is None:
            return start_state(parameters, make_optimizer(self.optimizer))
        parameters[SCALE] = np.array([frozen.scale], np.float32)
        state = start_state(parameters, make_optimizer(self.optimizer))
        state.accumulators[SCALE][:] = SCALE_ACCUMULATOR
        return state

    def schedule(self, rows: TrainingLists) -> Schedule:
        """Which users are visited when.

        A list of one item cannot be ranked, so its user is not visited, unless the model learns from likes alone.
        """
        sizes = np.diff(rows.indptr)
        if rows.listed.size:
            sizes = np.bincount(np.repeat(np.arange(sizes.size), sizes)[rows.listed], minlength=sizes.size)
        users = np.flatnonzero(sizes >= (1 if self.relevant_only() else 2))
        return Schedule(users, batch_count(self.batch_size, users.size), self.seed, self.epochs, self.iterations)

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
    def task_(self) -> str:
        """The task the model was fitted for: "rated" or "catalog"."""
        return str(self.fitted.facts.get("task", "rated"))

    @property
    def history_(self) -> list[dict[str, float]]:
        """One record per round of training: objective, effective N, validation metric."""
        records: list[dict[str, float]] = self.fitted.facts["history"]
        return records

    @property
    def best_round_(self) -> int:
        """The round that is kept: the best on validation data, else the last."""
        return int(self.fitted.facts["best_round"])

    def score_block(self, users: IntArray) -> Float32Array:
        """U V' + b for some users, plus the neighbors' part."""
        return score_users(self, users)

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """<u, v> + b of pairs. An item of the user's own history is scored like any other, its own part included."""
        scores = np.empty(len(users), np.float32)
        arrays = (self.user_factors_, self.item_factors_, self.item_bias_)
        pairs = np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64)
        pair_scores(*arrays, *pairs, scores)
        if (neighbor_scores := neighbor_term(self.fitted)) is not None:
            scores += neighbor_scores.of_pairs(*pairs)
        return scores

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Scores for a user never seen."""
        return np.asarray(self.score_histories(np.array([0, items.size]), items, values)[0])

    def score_histories(self, indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
        """Scores for users never seen: the history sum, or a vector fitted under the model's own objective."""
        return score_histories(self.settled(), indptr, items, values)

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """What each item of a history gives to the scores of other items; exact, for user_representation="history"."""
        return history_contributions(self.settled(), history, targets)

    def visits_per_user(self) -> int:
        """About how often training visited a user."""
        if self.epochs is not None:
            return self.epochs
        users = len(self.user_map)
        return max(1, round((self.iterations or 0) * batch_count(self.batch_size, users) / users))

    # -- checks -------------------------------------------------------------------------------------------------------

    def array(self, name: str) -> Float32Array:
        """A learned block by its name."""
        return self.fitted.arrays[name].astype(np.float32, copy=False)

    def _check_optimizer(self) -> None:
        make_optimizer(self.optimizer)

    def _check_init(self) -> None:
        if isinstance(self.init, str):
            one_of("init", self.init, ("paper",))
            if self.user_representation == "history":
                raise ParameterError(
                    "init='paper' goes with user_representation='factors'; with user_representation='history' give a number"
                )
        else:
            check_number(self, "init", above_zero=True)

    def _check_length(self) -> None:
        """Exactly one of epochs and iterations says how long to train."""
        if (self.epochs is None) == (self.iterations is None):
            raise ParameterError(
                f"{type(self).__name__}: give epochs or iterations (the other one None), "
                f"got epochs={self.epochs!r} and iterations={self.iterations!r}"
            )
        check_count(self, "iterations" if self.epochs is None else "epochs")

    def _penalties(self) -> dict[str, float]:
        """lambda of each group."""
        given = self.regularization
        if not isinstance(given, Mapping):
            check_number(self, "regularization")
            return {"user": given, "item": given, "history": HISTORY_PENALTY * given, "bias": given}
        for group, value in given.items():
            one_of("regularization: a group", group, tuple(dict.fromkeys(_GROUPS.values())))
            if not (isinstance(value, int | float) and value >= 0.0 and np.isfinite(value)):
                raise ParameterError(
                    f"regularization of {group!r} must be a finite number of at least 0, got {value!r}"
                )
        return {group: float(given.get(group, 0.0)) for group in set(_GROUPS.values())}
