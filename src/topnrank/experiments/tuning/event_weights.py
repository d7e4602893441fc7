"""`learn_event_weights`: what a view or a cart is worth beside a purchase, found on validation data."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from topnrank._checks import one_of, require_integer
from topnrank._typing import Int64Array
from topnrank.data.feedback.policies import ConversionRate, EventWeights, Unary
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DataError, ParameterError, TopNRankError
from topnrank.evaluation import Ranker, evaluate
from topnrank.evaluation.metrics import ACCURACY, parse_metrics
from topnrank.experiments.compare.competitors import Competitor, CompetitorRanker
from topnrank.experiments.tuning.search import Candidate, Outcome, Sampler, search
from topnrank.models.base import Model
from topnrank.rng import stream

MIN_WEIGHT, MAX_WEIGHT = 0.01, 2.0
"""Weights other than 0 are drawn between these, evenly by logarithm."""
ZERO_PROBABILITY = 0.2
"""The probability that a type is tried with weight 0."""

Weights = dict[str, float]


@dataclass(frozen=True)
class LearnedWeights:
    """The result of a search: the best weights, ready to be a model's `feedback`, and their value on validation data.

    The value is the best of many, so a little too good; measure on test data. Each trial is a record with number, weights,
    value (None where the model failed, with the error) and seconds.
    """

    feedback: EventWeights
    value: float
    metric: str
    trials: list[dict[str, Any]]


@dataclass(frozen=True)
class WeightPlan:
    """What is searched, and how weights are measured."""

    model: Model | Competitor
    train: Interactions
    held_out: Interactions
    """One target row of each user who has another item, with weight 1"""
    target: str
    types: tuple[str, ...]
    """Those whose weights are searched"""
    negative: tuple[str, ...]
    metric: str
    combine: str
    seed: int

    def policy(self, weights: Weights) -> EventWeights:
        """The weights with the target's."""
        return EventWeights({self.target: 1.0, **weights}, self.combine)

    def measure(self, weights: Weights) -> float:
        """The metric over the whole catalog, fitted with `weights`."""
        model = _with_feedback(self.model, self.policy(weights))
        ranker: Ranker
        ranker = model.fit(self.train) if isinstance(model, Model) else CompetitorRanker.fit(model, self.train)
        result = evaluate(ranker, self.held_out, protocol="catalog", metrics=[self.metric], relevant=None)
        return result[self.metric]

    def propose(self, trials: int) -> Sampler:
        """Simple weights first, then random ones, in the second half steps away from the best: one type at a time."""
        best: Weights | None = None
        best_value = -math.inf
        simple = self.simple_weights()
        for trial in range(trials):
            random = stream(self.seed, "event weights", trial)
            if trial < len(simple):
                weights = simple[trial]
            elif best is None or 2 * trial < trials:
                weights = {name: self._draw(name, random) for name in self.types}
            else:
                name = self.types[trial % len(self.types)]
                weights = {**best, name: self._step(name, best[name], random)}
            outcome = yield Candidate(weights)
            if outcome.value is not None and outcome.value > best_value:
                best, best_value = weights, outcome.value

    def simple_weights(self) -> list[Weights]:
        """All types alike; the target alone; where train has the target, shares of the pairs that also have it."""
        alike = {name: -1.0 if name in self.negative else 1.0 for name in self.types}
        alone = dict.fromkeys(self.types, 0.0)
        assert self.train.types is not None
        if not np.any(self.train.types == self.train.type_names.index(self.target)):
            return [alike, alone]
        rates = ConversionRate(self.target).event_weights(self.train).weights
        return [alike, alone, {name: alike[name] * rates[name] for name in self.types}]

    def _draw(self, name: str, random: np.random.Generator) -> float:
        size = math.exp(random.uniform(math.log(MIN_WEIGHT), math.log(MAX_WEIGHT)))
        size = 0.0 if random.random() < ZERO_PROBABILITY else size
        return -size if name in self.negative else size

    def _step(self, name: str, weight: float, random: np.random.Generator) -> float:
        """Some times more or less; from 0 anywhere, and never beyond the largest."""
        if weight == 0.0:
            return self._draw(name, random)
        factor = math.exp(random.normal(0.0, 0.7))
        return weight * factor if abs(weight * factor) <= MAX_WEIGHT else weight / factor


def learn_event_weights(
    model: Model | Competitor,
    data: Interactions,
    *,
    target: str,
    trials: int = 20,
    metric: str = "ndcg@10",
    combine: str = "max",
    negative: Sequence[str] = (),
    seed: int = 0,
    progress: bool = False,
) -> LearnedWeights:
    """Searches the weights of the other feedback types, where an event of the type `target` has weight 1.

    Of each user's items with a `target` event one is held out, with all its events: the latest where there are timestamps,
    else one at random. `model` is fitted on the rest with each trial's weights, and measured by the ranks of the held-out
    items among all items. The first trials are all types alike, the target alone, and conversion rates, so the search
    never ends below these; then come random weights, in the second half steps from the best ones.

    Parameters
    ----------
    model : a model with a parameter `feedback`, or an adapter such as `ImplicitModel`; it is not changed.
    data : an event log. Rows for testing must not be among them.
    target : the type of feedback that matters, such as "buy".
    trials : how many weights to try.
    metric : what to maximize.
    combine : how several types of one pair become one weight, as in `EventWeights`.
    negative : types that push down, such as ["dislike"]: their weights are searched below 0.
    seed : of the held-out rows and of the search.
    progress : show a progress bar on the terminal.
    """
    require_integer("learn_event_weights: trials", trials, 1)
    plan = _make_plan(model, data, target, metric, combine, tuple(negative), seed)
    tried = search(
        lambda candidate: Outcome("complete", plan.measure(candidate.settings)),
        plan.propose(trials),
        failures=TopNRankError,
        title="Learning weights",
        total=trials,
        progress=progress,
    )
    records: list[dict[str, Any]] = []
    for number, (candidate, outcome) in enumerate(tried):
        error = {"error": outcome.error} if outcome.error else {}
        record = {"trial": number, "weights": candidate.settings, "value": outcome.value, "seconds": outcome.seconds}
        records.append(record | error)
    measured = [record for record in records if record["value"] is not None and not math.isnan(record["value"])]
    if not measured:
        raise DataError(
            f"learn_event_weights: the model failed with all weights; the first time: {records[0].get('error')}"
        )
    best = max(measured, key=lambda record: record["value"])  # the earliest of equals
    return LearnedWeights(plan.policy(best["weights"]), best["value"], plan.metric, records)


def _make_plan(
    model: Any, data: Interactions, target: str, metric: str, combine: str, negative: tuple[str, ...], seed: int
) -> WeightPlan:
    """Checks the arguments and splits the data."""
    data = as_interactions(data, "learn_event_weights")
    if data.types is None:
        raise DataError(
            "learn_event_weights needs feedback types and the data has none; name that column (type=...) or use a model's "
            "own feedback"
        )
    used = tuple(data.type_names[code] for code in np.unique(data.types))
    one_of("learn_event_weights: target", target, used)
    types = tuple(name for name in used if name != target)
    if not types:
        raise DataError(f"learn_event_weights: {target!r} is the only type of the data; there are no weights to learn")
    for name in negative:
        one_of("learn_event_weights: a negative type", name, types)
    one_of("learn_event_weights: the metric before '@'", parse_metrics(metric)[0].kind, ACCURACY)
    train, held_out = _parts(data, target, seed)
    _with_feedback(model, EventWeights(dict.fromkeys(used, 1.0), combine))  # refuses what has none before any work
    return WeightPlan(model, train, held_out, target, types, negative, metric, combine, seed)


def _parts(data: Interactions, target: str, seed: int) -> tuple[Interactions, Interactions]:
    """Train rows, and one target row of each user who has other items as well."""
    assert data.types is not None
    code = data.type_names.index(target)
    pair = np.cumsum(data.pair_starts) - 1
    rows = np.flatnonzero(data.types == code)
    n_pairs = np.bincount(data.user_index[data.pair_starts], minlength=data.n_users)
    rows = rows[n_pairs[data.user_index[rows]] > 1]
    if rows.size == 0:
        raise DataError(f"learn_event_weights: no user has an item with {target!r} and another item; use more data")
    clock: Int64Array = (
        stream(seed, "held-out events").permutation(len(data)) if data.timestamps is None else data.timestamps
    )
    order = rows[np.lexsort((clock[rows], data.user_index[rows]))]
    last = order[np.append(np.diff(data.user_index[order]) > 0, True)]
    held = np.isin(pair, pair[last])
    return data.take(~held), Unary()(data.take(np.sort(last)))


def _with_feedback(model: Any, policy: EventWeights) -> Model | Competitor:
    """A fresh copy of `model` with this feedback."""
    if isinstance(model, Model) and "feedback" in model.get_params():
        return type(model)(**(model.get_params() | {"feedback": policy}))
    if not isinstance(model, type) and isinstance(model, Competitor) and hasattr(model, "feedback"):
        copied: Any = copy.deepcopy(model)
        copied.feedback = policy
        return cast(Competitor, copied)
    raise ParameterError(
        f"learn_event_weights needs a model with a parameter `feedback`, such as EASE(), got {model!r}; give one of those"
    )
