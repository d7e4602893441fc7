"""Settings of TopNRank for the catalog that are chosen on held-out rows, inside `fit`.

The score is a sum of parts: neighbors in closed form, factors that are trained beside them, and the popularity of items. Of
some users rows are held out, as the data themselves were split (`Interactions.split`); what ranks these best decides, part
by part:

1. the number of neighbors and lambda, by the neighbors alone (`models/linear/choice.py`);
2. what popularity weighs beside them: of all rows, or that of late where rows have times. The largest weight leaves little
   else;
3. the rounds of training and what the factors weigh beside both. Factors learn far more of the rows they are trained
   on than of others, the neighbors less, so that at their own weight they spoil the sum on sparse data. A weight of 0
   leaves them out.

Then the neighbors are fitted to all rows, and the factors stay as they were best: histories hold all rows, and a training
begun anew would cost as much again and be no better. What the user has set is not touched.

Whole data do not tell what will be asked: what else their users like, or what comes next. Rows at random decide, and where
there are times the latest fifth of all rows, ranked by what was before, may raise the weight of popularity as long as the
rows at random do not suffer (docs/decisions/training.md).
"""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.data.feedback.by_name import feedback_from, fitted_feedback
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine, State, make_engine, on_one_machine
from topnrank.errors import DivergenceError
from topnrank.evaluation.held_out import FEWEST_USERS, JUDGED_BY, HeldOut
from topnrank.evaluation.splits import hold_out
from topnrank.kernels.jit import threads
from topnrank.models.factor.fitted import fitted_arrays
from topnrank.models.factor.prepare import Prepared, add_neighbors, like_sessions, likes_of, prepare
from topnrank.models.factor.recipe import Recipe, Start
from topnrank.models.linear.choice import SIZES, ChosenRidge, choose_ridge
from topnrank.models.linear.neighbors import CoOccurrences, NeighborTerm, Ridge
from topnrank.models.parameters import AUTO
from topnrank.models.recent_popularity import best_half_life, item_popularity
from topnrank.scorers import Neighbors
from topnrank.scorers.neighbors import SCALE
from topnrank.training import Round, train

FEW_USERS = 1000
"""Held-out users by whom the rounds of training are compared; all of them judge whether a part is worth it."""
ROUNDS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)
"""After these rounds of the trial training it is measured, and after the last it ends."""
WEIGHTS = (0.1, 0.25, 0.5, 1.0)
"""Weights of the factors that are tried after each of them."""
PATIENCE, PROGRESS = 2, 1.001
"""The trial ends when so many of these measurements did not improve by this factor."""
MOST_BESIDE = 5e9
"""Factors are tried beside more than the least neighbors where n_items T^3 is no more: what neighbors say of their own users
is costly to leave out. More neighbors are tried afterwards."""
WORTH = 1.002
"""A part must improve the metric by this factor, or it is left out."""
SURE = 2.0
"""The factors must also improve it by so many standard errors: what is no better is not worth a training."""
POPULARITY_WORTH = 1.01
"""On rows held out at random the least weight of popularity is taken that is within this factor of the best."""
POPULARITIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Weights of popularity that are tried; the first only decides between items of equal scores, and ranks for strangers."""
LATER_POPULARITIES: tuple[float, ...] = (*POPULARITIES, 30.0, 100.0, 1000.0)
"""Those that are tried where the days to come are asked for; the last leaves nothing else but the order of equal scores."""
BEARABLE = 0.998
"""What popularity may leave of the metric on rows held out at random, where the latest rows ask for more of it."""
CACHE_BYTES = 2**28
"""The neighbors' scores of held-out users are kept where they take no more."""

Scores = Callable[[Int64Array], Float32Array]
"""(len(users), n_items) scores of users."""


@dataclass(frozen=True)
class _Trial:
    """Held-out rows and the training rows beside them."""

    data: Interactions
    policy: Feedback
    held_out: HeldOut
    few: HeldOut
    """Of `FEW_USERS`"""
    by: str
    """How the rows were held out"""
    half_life: float
    """Days after which a row counts half in what is popular of late, by all rows; inf for never"""

    @classmethod
    def of(cls, data: Interactions, policy: Feedback, by: str, half_life: float) -> Self | None:
        """Rows of `data` held out `by` a split; None where they are too few to choose by."""
        if (split := hold_out(data, by=by)) is None:
            return None
        train_rows, rest = split
        asked = policy(rest)
        assert asked.weights is not None
        liked = (asked.weights > 0).astype(np.float64)
        held_out = HeldOut.of(train_rows, asked, liked, JUDGED_BY)
        return (
            cls(train_rows, policy, held_out, held_out.some(FEW_USERS), by, half_life)
            if held_out.n_users >= FEWEST_USERS
            else None
        )

    def prepare(self, recipe: Recipe) -> Prepared:
        """The training lists, without neighbors."""
        return prepare(self.data, self.policy, recipe.selection._replace(ridge=None), strict=False)

    def co_occurrences(self, prepared: Prepared, ridge: Ridge, most: int) -> CoOccurrences:
        """Of the likes in the training lists."""
        sessions = like_sessions(prepared.data, prepared.rows.gains > 0, ridge)
        return CoOccurrences.of(likes_of(prepared.rows, self.data.n_items, sessions), ridge, most)

    def values(self, base: Scores, part: Scores, weights: Sequence[float], *, few: bool = False) -> Float64Array:
        """(n_weights,) the metric of `base` with a further part at each weight, on all held-out rows or those of a `few`."""
        return np.asarray(np.nanmean(self.of_users(base, part, weights, few=few), axis=1), np.float64)

    def of_users(self, base: Scores, part: Scores, weights: Sequence[float], *, few: bool = False) -> Float64Array:
        """(n_weights, n_users) the same, user by user."""

        def candidates(users: Int64Array) -> Iterator[Float32Array]:
            known, more = base(users), part(users)
            for weight in weights:
                yield known + np.float32(weight) * more

        return (self.few if few else self.held_out).of_users(candidates)


@dataclass(frozen=True)
class _NeighborScores:
    """What the neighbors give to the scores of held-out users, computed once."""

    term: NeighborTerm | None
    n_items: int
    n_users: int
    _blocks: dict[bytes, Float32Array] = field(default_factory=dict)

    @classmethod
    def of(cls, trial: _Trial, prepared: Prepared, neighbors: Neighbors | None) -> Self:
        """Of the neighbors that a trial found."""
        term = None
        if neighbors is not None:
            term = NeighborTerm.of(neighbors, likes_of(prepared.rows, trial.data.n_items))
        return cls(term, trial.data.n_items, trial.held_out.n_users)

    def at(self, scale: float) -> Scores:
        """The scores at a scale."""
        return lambda users: np.float32(scale) * self._block(users)

    def _block(self, users: Int64Array) -> Float32Array:
        key = users.tobytes()
        if key in self._blocks:
            return self._blocks[key]
        block = np.zeros((users.size, self.n_items), np.float32)
        if self.term is not None:
            self.term.add_to(block, users)
        if 4 * self.n_users * self.n_items <= CACHE_BYTES:
            self._blocks[key] = block
        return block


@dataclass(frozen=True)
class _Model:
    """A round of the trial training: its state, and what scoring needs of it."""

    number: int
    state: State
    arrays: Mapping[str, Any]

    @classmethod
    def of(cls, number: int, recipe: Recipe, state: State, prepared: Prepared) -> Self:
        """As it is now, the factors at their own weight."""
        bare = replace(prepared, frozen=prepared.frozen._replace(neighbors=None))
        own = replace(recipe, factor_weight=1.0, popularity=0.0)
        return cls(number, copy.deepcopy(state), fitted_arrays(own, state.parameters, bare))

    @property
    def scale(self) -> float:
        """That of the neighbors."""
        return float(self.arrays[SCALE][0]) if SCALE in self.arrays else 0.0

    def factors(self, users: Int64Array) -> Float32Array:
        """(len(users), n_items) what factors and bias give."""
        vectors = self.arrays["user_factors"][users].astype(np.float32, copy=False)
        return np.asarray(vectors @ self.arrays["item_factors"].T + self.arrays["item_bias"], np.float32)


@dataclass(frozen=True)
class _Popular:
    """Popularity as a part of the scores, at its weight."""

    weight: float
    half_life: float
    """Days after which a row counts half"""
    scores: Float32Array
    """(n_items,)"""
    value: float
    """What the sum reaches on the held-out rows"""

    def beside(self, base: Scores) -> Scores:
        """The sum."""
        return lambda users: base(users) + np.float32(self.weight) * self.scores


class _Rounds:
    """A callback of the trial training: keeps the best round and weight of the factors beside other parts."""

    def __init__(self, recipe: Recipe, trial: _Trial, prepared: Prepared, weights: tuple[float, ...]) -> None:
        self.recipe, self.trial, self.prepared, self.weights = recipe, trial, prepared, weights
        self.measured: tuple[int, ...] = ROUNDS
        self.others: Callable[[float], Scores] = _nothing
        """The other parts, at a scale of the neighbors"""
        self.model: _Model | None = None
        self.weight, self.value, self.enough = 0.0, 0.0, 0.0
        self._leader, self._without_progress = 0.0, 0

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Measures; True when there was no progress for some rounds, or none over the other parts at the start."""
        if round_.number not in self.measured:
            return False
        self._keep(_Model.of(round_.number, self.recipe, engine.state, self.prepared))
        self._without_progress += 1
        if self.value > PROGRESS * self._leader:
            self._leader, self._without_progress = self.value, 0
        hopeless = round_.number == self.measured[min(PATIENCE, len(self.measured)) - 1] and self.value <= self.enough
        return hopeless or self._without_progress >= PATIENCE

    def _is_hopeless(self) -> bool:
        """No gain over the other parts, or the less of it the more was learned."""
        if self.model is None or not self.enough:
            return False
        first = len(self.measured) > 1 and self.model.number == self.measured[0]
        return first or self.value <= self.enough

    def _keep(self, model: _Model) -> None:
        """Measures the weights of a round, and keeps the best."""
        values = self.trial.values(self.others(model.scale), model.factors, self.weights, few=True)
        best = int(np.argmax(values))
        if values[best] > self.value:
            self.model, self.weight, self.value = model, self.weights[best], float(values[best])

    def decide(self, *, required: bool) -> None:
        """The best weight of the best round, half a step to both sides tried too.

        The weight is that with the largest gain that is sure, the mean over users less its standard error, for at larger
        weights the gain is less even. No model where it is not clearly better than no factors, or was best before anything
        was learned, unless they are `required`.
        """
        if self.model is None or self._is_hopeless():
            self.model = None
            return
        weights = [self.weight]
        if len(self.weights) > 1:
            weights = [self.weight / 2**0.5, self.weight, self.weight * 2**0.5]
        values = self.trial.of_users(self.others(self.model.scale), self.model.factors, [0.0, *weights])
        gains = values[1:] - values[0]
        means = np.nanmean(gains, axis=1)
        errors = np.nanstd(gains, axis=1) / np.sqrt(np.isfinite(gains[0]).sum())
        best = int(np.argmax(means - errors))
        self.weight, self.value = weights[best], float(np.nanmean(values[1 + best]))
        if not required and means[best] <= max(SURE * errors[best], (WORTH - 1.0) * np.nanmean(values[0])):
            self.model = None


def choose(recipe: Recipe, data: Interactions) -> Recipe:
    """`recipe` with the open settings chosen by `data`; as it is where rows are too few to choose by."""
    policy = fitted_feedback(feedback_from(recipe.feedback, data), data)
    wanted = recipe.settings["held_out"]
    asked = data.split if wanted == AUTO else wanted
    half_life = best_half_life(data)
    with threads(recipe.num_threads):
        if data.timestamps is None:
            asked = "per-user"
        trial = None if asked is None else _Trial.of(data, policy, asked, half_life)
        if trial is None and asked != "per-user":
            trial = _Trial.of(data, policy, "per-user", half_life)
        if trial is None:
            return recipe
        latest = (
            _Trial.of(data, policy, "time", half_life)
            if asked is None and "popularity" in recipe.open_settings
            else None
        )
        return _choose(recipe, trial, latest)


def _choose(recipe: Recipe, trial: _Trial, latest: _Trial | None) -> Recipe:
    """Part by part; the rows of `latest` may raise the weight of popularity."""
    prepared, ridge, is_open = trial.prepare(recipe), recipe.selection.ridge, recipe.open_settings
    if ridge is not None:
        sizes = SIZES[:2] if "neighbors" in is_open else (ridge.neighbors,)
        together = trial.co_occurrences(prepared, ridge, max(sizes))
        penalty = None if "neighbor_penalty" in is_open else ridge.penalty
        beside = [size for size in sizes if size == sizes[0] or trial.data.n_items * size**3 <= MOST_BESIDE]
        found = choose_ridge(together, trial.held_out, sizes=beside, penalty=penalty)
        prepared = add_neighbors(prepared, together.solve_left_out(found.neighbors, found.penalty))
        recipe = _with_ridge(recipe, found)
    scale, neighbors = prepared.frozen.scale, _NeighborScores.of(trial, prepared, prepared.frozen.neighbors)
    popular = _choose_popularity(recipe, trial, neighbors.at(scale))
    rounds = None
    if ridge is None or recipe.factor_weight > 0.0:
        rounds = _try_factors(recipe, prepared, trial, neighbors, popular)
    base = neighbors.at(scale)
    if ridge is not None and len(beside) < len(sizes):
        found = choose_ridge(together, trial.held_out, sizes=sizes, penalty=penalty, best=found)
        recipe = _with_ridge(recipe, found)
        if latest is not None:
            neighbors = _NeighborScores.of(trial, prepared, together.solve(found.neighbors, [found.penalty])[0])
    if rounds is not None and rounds.model is not None:
        scale, recipe = rounds.model.scale, replace(recipe, factor_weight=rounds.weight)
        base = _sum(neighbors.at(scale), rounds.model.factors, rounds.weight)
        if "epochs" in is_open:
            start = Start(rounds.model.state, rounds.model.number)
            recipe = replace(recipe, epochs=start.rounds, start=start)
    elif ridge is not None and ("factor_weight" in is_open or recipe.factor_weight == 0.0):
        recipe = replace(recipe, epochs=0, iterations=None, factor_weight=0.0, neighbor_scale=scale)
        base = neighbors.at(scale)
    else:  # nothing was learned; the training on all rows may say why
        return _told(replace(recipe, open_settings=is_open & {"neighbors", "neighbor_penalty"}))
    if latest is not None and ridge is not None:
        popular = _for_latest(recipe, trial, base, latest, scale, popular)
    return _told(replace(recipe, popularity=popular.weight, half_life=popular.half_life))


def _with_ridge(recipe: Recipe, found: ChosenRidge) -> Recipe:
    """The recipe with the chosen regressions."""
    assert recipe.selection.ridge is not None
    ridge = replace(recipe.selection.ridge, neighbors=found.neighbors, penalty=found.penalty)
    return replace(recipe, selection=recipe.selection._replace(ridge=ridge))


def _sum(base: Scores, part: Scores, weight: float) -> Scores:
    """Scores with a further part at its weight."""
    return lambda users: base(users) + np.float32(weight) * part(users)


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


def _try_factors(
    recipe: Recipe,
    prepared: Prepared,
    trial: _Trial,
    neighbors: _NeighborScores,
    popular: _Popular,
) -> _Rounds:
    """The best round and weight of a training on the rows that are left; no model where the factors do not help."""
    is_open = recipe.open_settings
    weights = WEIGHTS if "factor_weight" in is_open else (recipe.factor_weight,)
    rounds = _Rounds(recipe, trial, prepared, weights)
    schedule = recipe.schedule(prepared.rows)
    if "epochs" in is_open:
        schedule = replace(schedule, rounds=ROUNDS[-1], whole=True)
    else:
        rounds.measured = (schedule.rounds,)
    rounds.others = lambda scale: popular.beside(neighbors.at(scale))
    required = "factor_weight" not in is_open or recipe.selection.ridge is None
    if not required:
        nothing = trial.values(
            rounds.others(prepared.frozen.scale), lambda _: np.zeros((1, 1), np.float32), (0.0,), few=True
        )
        rounds.enough = WORTH * float(nothing[0])
    state = recipe.start_state(len(prepared.data.users), len(prepared.data.items), prepared.frozen)
    problem = recipe.problem(prepared.rows, prepared.frozen)
    engine = make_engine(on_one_machine(recipe.engine), problem, state, recipe.num_threads)
    with contextlib.suppress(DivergenceError):  # what is good until then may be used
        train(engine, schedule, [rounds])
    rounds.decide(required=required)
    return rounds


def _choose_popularity(recipe: Recipe, trial: _Trial, base: Scores) -> _Popular:
    """The best weight of popularity on the rows held out, of all rows or that of late.

    Of the weights that are about as good the least, where rows are held out at random. Where the days to come are asked
    for it is the largest within a standard error, since what is popular of late is the surest guess as the rows drift.
    """
    kinds = dict.fromkeys([math.inf, trial.half_life] if trial.by == "per-user" else [trial.half_life])
    weights = LATER_POPULARITIES if trial.by == "time" else POPULARITIES
    if "popularity" not in recipe.open_settings:
        weights = (recipe.popularity,)
    found = list[_Popular]()
    for half_life in kinds:
        scores = item_popularity(trial.data, half_life).scores
        values = trial.of_users(base, _alike(scores), (0.0, *weights))
        means = np.nanmean(values, axis=1)
        best = int(np.argmax(means))
        if trial.by == "per-user":
            best = int(np.argmax(POPULARITY_WORTH * means >= means.max()))
        elif trial.by == "time":
            behind = values[best] - values
            errors = np.nanstd(behind, axis=1) / np.sqrt(np.isfinite(behind[0]).sum())
            best = int(np.flatnonzero(np.nanmean(behind, axis=1) <= errors)[-1])
        best = max(1, best)  # the first at least: it decides between equal scores, and for users without rows
        found.append(_Popular(weights[best - 1], half_life, scores, float(means[best])))
    return max(
        found, key=lambda one: one.value if one.weight > POPULARITIES[0] else float(one is found[-1]) * one.value
    )


def _for_latest(
    recipe: Recipe, trial: _Trial, base: Scores, latest: _Trial, scale: float, popular: _Popular
) -> _Popular:
    """The weight of popularity of late that ranks the latest rows best and leaves nearly all of the metric of other rows."""
    weights = [weight for weight in POPULARITIES if weight >= popular.weight]
    values = trial.values(base, _alike(popular.scores), weights)
    prepared, ridge = latest.prepare(recipe), recipe.selection.ridge
    assert ridge is not None
    (neighbors,) = latest.co_occurrences(prepared, ridge, ridge.neighbors).solve(ridge.neighbors, [ridge.penalty])
    of_late = _alike(item_popularity(latest.data, latest.half_life).scores)
    later = latest.values(_NeighborScores.of(latest, prepared, neighbors).at(scale), of_late, weights)
    places = np.flatnonzero(values >= BEARABLE * values[0])
    best = int(places[np.argmax(later[places])])
    return replace(popular, weight=weights[best]) if later[best] > WORTH * later[0] else popular


def _nothing(_: float) -> Scores:
    """No scores, at any scale."""
    return lambda users: np.zeros((users.size, 1), np.float32)


def _alike(scores: Float32Array) -> Scores:
    """The same scores for all users."""
    return lambda users: np.broadcast_to(scores, (users.size, scores.size))
