"""Settings of TopNRank for the catalog that are chosen on held-out rows, inside `fit`.

The score is a sum of parts: neighbors in closed form, factors that are trained beside them, and the popularity of items. Of
some users a fifth of the rows is held out at random; what ranks these best decides, part by part:

1. the number of neighbors and lambda, by the neighbors alone (`models/linear/choice.py`);
2. the rounds of training and what the factors weigh beside the neighbors. The factors learn far more of the rows they are
   trained on than of others, the neighbors less, so that at their own weight they spoil the sum on sparse data. A weight of
   0 leaves them out;
3. what popularity weighs. Where rows have times it is that of late, and the latest fifth of all rows, ranked by what was
   before, may raise its weight, as long as the rows held out at random do not suffer.

Then the model is trained on all rows with these settings. What the user has set is not touched.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.data.feedback.by_name import feedback_from, fitted_feedback
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine, make_engine, on_one_machine
from topnrank.errors import DataError, DivergenceError
from topnrank.evaluation.held_out import FEWEST_USERS, JUDGED_BY, HeldOut
from topnrank.evaluation.splits import hold_out, split_time
from topnrank.kernels.jit import threads
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import fitted_arrays
from topnrank.models.factor.prepare import Prepared, add_neighbors, like_sessions, likes_of, prepare
from topnrank.models.factor.recipe import Recipe
from topnrank.models.linear.choice import SIZES, choose_ridge
from topnrank.models.linear.neighbors import CoOccurrences, Ridge, neighbor_arrays, neighbor_term
from topnrank.models.recent_popularity import item_popularity
from topnrank.scorers import Neighbors
from topnrank.scorers.neighbors import SCALE
from topnrank.training import Round, train

MOST_ROUNDS = 20
"""No more rounds of training than this are tried."""
WEIGHTS = (0.1, 0.25, 0.5, 1.0)
"""Weights of the factors that are tried after each round."""
PATIENCE, PROGRESS = 4, 1.001
"""The trial ends when so many rounds did not improve by this factor."""
WORTH = 1.002
"""A part must improve the metric by this factor, or it is left out."""
POPULARITIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Weights of popularity that are tried; the first only decides between items of equal scores, and ranks for strangers."""
BEARABLE = 0.998
"""What popularity may leave of the metric on rows held out at random, where the latest rows ask for more of it."""


@dataclass(frozen=True)
class _Trial:
    """Held-out rows and the training rows beside them."""

    data: Interactions
    policy: Feedback
    held_out: HeldOut

    @classmethod
    def of(cls, train_rows: Interactions, rest: Interactions, policy: Feedback) -> "_Trial":
        """`rest` is ranked by what `train_rows` teach."""
        asked = policy(rest)
        assert asked.weights is not None
        return cls(train_rows, policy, HeldOut.of(train_rows, asked, (asked.weights > 0).astype(np.float64), JUDGED_BY))

    def prepare(self, recipe: Recipe) -> Prepared:
        """The training lists, without neighbors."""
        return prepare(self.data, self.policy, recipe.selection._replace(ridge=None), strict=False)

    def co_occurrences(self, prepared: Prepared, ridge: Ridge, most: int) -> CoOccurrences:
        """Of the likes in the training lists."""
        sessions = like_sessions(prepared.data, prepared.rows.gains > 0, ridge)
        return CoOccurrences.of(likes_of(prepared.rows, self.data.n_items, sessions), ridge, most)


@dataclass(frozen=True)
class _Parts:
    """What the parts of a model give to the scores of some users."""

    neighbors: Float32Array
    factors: Float32Array


@dataclass(frozen=True)
class _Scores:
    """A model whose parts are weighed anew."""

    fitted: Fitted

    def of(self, users: Int64Array) -> _Parts:
        """(len(users), n_items) scores of both parts; the bias belongs to the factors."""
        arrays = self.fitted.arrays
        block = np.zeros((users.size, len(self.fitted.items)), np.float32)
        if (term := neighbor_term(self.fitted)) is not None:
            term.add_to(block, users)
        if "user_factors" not in arrays:
            return _Parts(block, np.zeros_like(block))
        factors = arrays["user_factors"][users].astype(np.float32) @ arrays["item_factors"].astype(np.float32).T
        factors += arrays["item_bias"].astype(np.float32)
        return _Parts(block, factors)


class _Rounds:
    """A callback of the trial training: keeps the best round and weight of the factors."""

    def __init__(self, recipe: Recipe, prepared: Prepared, held_out: HeldOut, weights: tuple[float, ...]) -> None:
        self.recipe, self.prepared, self.held_out, self.weights = recipe, prepared, held_out, weights
        self.round, self.weight, self.value = 0, 0.0, 0.0
        self.scores: _Scores | None = None
        self._leader, self._last_progress = 0.0, 0

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Measures; True when there was no progress for some rounds."""
        scores = _Scores(_fitted(self.recipe, engine, self.prepared))
        self._keep(round_.number, scores, self.weights)
        if self.value > PROGRESS * self._leader:
            self._leader, self._last_progress = self.value, round_.number
        return round_.number - self._last_progress >= PATIENCE

    def _keep(self, number: int, scores: _Scores, weights: tuple[float, ...]) -> None:
        """Measures these weights of a round, and keeps the best."""

        def candidates(users: Int64Array) -> Iterator[Float32Array]:
            parts = scores.of(users)
            for weight in weights:
                yield parts.neighbors + np.float32(weight) * parts.factors

        for weight, value in zip(weights, self.held_out.means(candidates), strict=True):
            if value > self.value:
                self.round, self.weight, self.value, self.scores = number, weight, float(value), scores

    def refine(self) -> None:
        """Half a step to both sides of the best weight."""
        if self.scores is not None and len(self.weights) > 1:
            self._keep(self.round, self.scores, (self.weight / 2**0.5, self.weight * 2**0.5))


def choose(recipe: Recipe, data: Interactions) -> Recipe:
    """`recipe` with the open settings chosen by `data`; as it is where rows are too few to choose by."""
    policy = fitted_feedback(feedback_from(recipe.feedback, data), data)
    split = hold_out(data)
    if split is None:
        return recipe
    trial = _Trial.of(*split, policy)
    if trial.held_out.n_users < FEWEST_USERS:
        return recipe
    with threads(recipe.num_threads):
        return _choose(recipe, trial, data)


def _choose(recipe: Recipe, trial: _Trial, data: Interactions) -> Recipe:
    """Part by part."""
    is_open = recipe.open_settings
    prepared = trial.prepare(recipe)
    ridge, best = recipe.selection.ridge, 0.0
    if ridge is not None:
        sizes = SIZES[:2] if "neighbors" in is_open else (ridge.neighbors,)
        together = trial.co_occurrences(prepared, ridge, max(sizes))
        penalty = None if "neighbor_penalty" in is_open else ridge.penalty
        found = choose_ridge(together, trial.held_out, sizes=sizes, penalty=penalty)
        ridge, best = replace(ridge, neighbors=found.neighbors, penalty=found.penalty), found.value
        prepared = add_neighbors(prepared, together.solve_left_out(ridge.neighbors, ridge.penalty))
        recipe = replace(recipe, selection=recipe.selection._replace(ridge=ridge))
    scores, neighbors = None, prepared.frozen.neighbors
    if neighbors is None or recipe.factor_weight > 0.0:
        rounds = _try_factors(recipe, prepared, trial.held_out, best)
        scores = rounds.scores
    if scores is None and neighbors is not None and ("factor_weight" in is_open or recipe.factor_weight == 0.0):
        scale = prepared.frozen.scale
        scores = _neighbors_alone(prepared, neighbors, scale)
        recipe = replace(recipe, epochs=0, iterations=None, factor_weight=0.0, neighbor_scale=scale)
    elif scores is None:  # nothing was learned; the training on all rows may say why
        return _told(replace(recipe, open_settings=is_open & {"neighbors", "neighbor_penalty"}))
    else:
        epochs = rounds.round if "epochs" in is_open else recipe.epochs
        recipe = replace(recipe, factor_weight=rounds.weight, epochs=epochs)
    if "popularity" in is_open:
        recipe = replace(recipe, popularity=_choose_popularity(recipe, trial, scores, data))
    return _told(recipe)


def _told(recipe: Recipe) -> Recipe:
    """The recipe with what was chosen among its settings."""
    ridge = recipe.selection.ridge
    values: Mapping[str, float | None] = {
        "neighbors": None if ridge is None else ridge.neighbors,
        "neighbor_penalty": None if ridge is None else ridge.penalty,
        "epochs": recipe.epochs,
        "factor_weight": recipe.factor_weight,
        "popularity": recipe.popularity,
    }
    dropped = {"epochs"} if recipe.factor_weight == 0.0 else set()
    chosen = {
        name: value for name, value in values.items() if name in recipe.open_settings | dropped and value is not None
    }
    return replace(recipe, chosen=chosen, settings={**recipe.settings, **chosen}, open_settings=frozenset())


def _neighbors_alone(prepared: Prepared, neighbors: Neighbors, scale: float) -> _Scores:
    """The model without factors."""
    arrays: dict[str, Any] = {SCALE: np.array([scale], np.float32)}
    arrays |= neighbor_arrays(neighbors, prepared.rows.gains > 0)
    return _Scores(Fitted.of(prepared.data, arrays, prepared.info))


def _try_factors(recipe: Recipe, prepared: Prepared, held_out: HeldOut, best: float) -> _Rounds:
    """The best round and weight of a training on the rows that are left; no scores where the factors do not help."""
    is_open = recipe.open_settings
    weights = WEIGHTS if "factor_weight" in is_open else (recipe.factor_weight,)
    rounds = _Rounds(recipe, prepared, held_out, weights)
    schedule = recipe.schedule(prepared.rows)
    if "epochs" in is_open:
        schedule = replace(schedule, rounds=MOST_ROUNDS, whole=True)
    state = recipe.start_state(len(prepared.data.users), len(prepared.data.items), prepared.frozen)
    problem = recipe.problem(prepared.rows, prepared.frozen)
    engine = make_engine(on_one_machine(recipe.engine), problem, state, recipe.num_threads)
    with contextlib.suppress(DivergenceError):  # what is good until then may be used
        train(engine, schedule, [rounds] if "epochs" in is_open else [_LastRound(rounds)])
    rounds.refine()
    if "factor_weight" in is_open and rounds.value <= WORTH * best:
        rounds.scores = None
    return rounds


@dataclass(frozen=True)
class _LastRound:
    """A callback that looks at the end of a training only, whose length the user has set."""

    rounds: _Rounds

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Measures the last round."""
        is_last = round_.number == self.rounds.recipe.schedule(self.rounds.prepared.rows).rounds
        return is_last and self.rounds.after_round(engine, round_)


def _fitted(recipe: Recipe, engine: Engine, prepared: Prepared) -> Fitted:
    """The model as it is now, its factors at their own weight."""
    arrays = fitted_arrays(replace(recipe, factor_weight=1.0, popularity=0.0), engine.state.parameters, prepared)
    return Fitted.of(prepared.data, arrays, prepared.info)


def _choose_popularity(recipe: Recipe, trial: _Trial, scores: _Scores, data: Interactions) -> float:
    """The weight of popularity: the best one on rows held out at random, or more if the latest rows say so."""
    weights = (0.0, *POPULARITIES)
    popular = item_popularity(trial.data).scores

    def blocks(users: Int64Array) -> Iterable[Float32Array]:
        parts = scores.of(users)
        return _with_popularity(parts.neighbors + np.float32(recipe.factor_weight) * parts.factors, popular, weights)

    values = trial.held_out.means(blocks)
    # The least weight decides between equal scores and serves strangers, at no price.
    lowest = int(np.argmax(values)) if values.max() > WORTH * values[1] else 1
    if data.timestamps is None or recipe.selection.ridge is None:
        return weights[lowest]
    later = _values_of_latest(recipe, float(scores.fitted.arrays[SCALE][0]), trial.policy, data, weights)
    if later is None:
        return weights[lowest]
    bearable = values >= BEARABLE * values.max()
    bearable[:lowest] = False
    bearable[lowest] = True
    places = np.flatnonzero(bearable)
    best = int(places[np.argmax(later[places])])
    return weights[best if later[best] > WORTH * later[lowest] else lowest]


def _with_popularity(block: Float32Array, popular: Float32Array, weights: tuple[float, ...]) -> Iterator[Float32Array]:
    """The scores with each weight of popularity."""
    for weight in weights:
        yield block + np.float32(weight) * popular


def _values_of_latest(
    recipe: Recipe, scale: float, policy: Feedback, data: Interactions, weights: tuple[float, ...]
) -> Float64Array | None:
    """The metric of each weight on the latest fifth of the rows, by the neighbors of those before; None for few users."""
    assert data.timestamps is not None
    try:
        trial = _Trial.of(*split_time(data, test=0.2), policy)
    except DataError:  # most rows are of one moment
        return None
    if trial.held_out.n_users < FEWEST_USERS:
        return None
    prepared, ridge = trial.prepare(recipe), recipe.selection.ridge
    assert ridge is not None
    together = trial.co_occurrences(prepared, ridge, ridge.neighbors)
    (neighbors,) = together.solve(ridge.neighbors, [ridge.penalty])
    scores, popular = _neighbors_alone(prepared, neighbors, scale), item_popularity(trial.data).scores
    return trial.held_out.means(lambda users: _with_popularity(scores.of(users).neighbors, popular, weights))
