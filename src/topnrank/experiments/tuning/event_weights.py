"""`learn_event_weights`: what a view or a cart is worth beside a purchase, found on validation data."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict, Unpack, cast

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Int64Array
from topnrank.data.feedback.policies import ConversionRate, EventWeights, Unary
from topnrank.data.interactions import Interactions, check_interactions
from topnrank.errors import DataError, ParameterError, TopNRankError
from topnrank.evaluation import Ranker, evaluate
from topnrank.evaluation.metrics import ACCURACY, parse_metrics
from topnrank.experiments.compare.competitors import Competitor, CompetitorRanker
from topnrank.models.base import Model
from topnrank.rng import stream

LEAST, MOST = 0.01, 2.0
"""Weights other than 0 are drawn between these, evenly by logarithm."""
NO_FROZEN_TERMS = 0.2
"""The chance that a type is tried with weight 0."""

Weights = dict[str, float]


class WeightOptions(TypedDict, total=False):
    """Options of `learn_event_weights`, explained there."""

    metric: str
    combine: str
    negative: Sequence[str]
    seed: int


@dataclass(frozen=True)
class LearnedWeights:
    """What a search found."""

    feedback: EventWeights
    """The best weights, ready to be a model's `feedback`"""
    value: float
    """Their metric on validation data: the best of many, so a little too good; measure on test data"""
    metric: str
    trials: list[dict[str, Any]]
    """One record for each trial: number, weights, value (None where the model failed, with the error), seconds"""


@dataclass(frozen=True)
class Search:
    """What is searched, and how weights are judged."""

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
        ranker = _fitted(_with_feedback(self.model, self.policy(weights)), self.train)
        result = evaluate(ranker, self.held_out, protocol="catalog", metrics=[self.metric], relevant=None)
        return result[self.metric]

    def propose(self, trial: int, best: Weights | None, trials: int) -> Weights:
        """Simple weights first, then random ones, in the second half steps away from the best: one type at a time."""
        if trial < len(self.simple):
            return self.simple[trial]
        random = stream(self.seed, "event weights", trial)
        if best is None or 2 * trial < trials:
            return {name: self._draw(name, random) for name in self.types}
        name = self.types[trial % len(self.types)]
        return {**best, name: self._step(name, best[name], random)}

    @cached_property
    def simple(self) -> list[Weights]:
        """All types alike; the target alone; where train has the target, shares of the pairs that also have it."""
        alike = {name: -1.0 if name in self.negative else 1.0 for name in self.types}
        alone = dict.fromkeys(self.types, 0.0)
        assert self.train.types is not None
        if not np.any(self.train.types == self.train.type_names.index(self.target)):
            return [alike, alone]
        rates = ConversionRate(self.target).event_weights(self.train).weights
        return [alike, alone, {name: alike[name] * rates[name] for name in self.types}]

    def _draw(self, name: str, random: np.random.Generator) -> float:
        size = math.exp(random.uniform(math.log(LEAST), math.log(MOST)))
        size = 0.0 if random.random() < NO_FROZEN_TERMS else size
        return -size if name in self.negative else size

    def _step(self, name: str, weight: float, random: np.random.Generator) -> float:
        """Some times more or less; from 0 anywhere, and never beyond the largest."""
        if weight == 0.0:
            return self._draw(name, random)
        factor = math.exp(random.normal(0.0, 0.7))
        return weight * factor if abs(weight * factor) <= MOST else weight / factor


def learn_event_weights(
    model: Model | Competitor,
    data: Interactions,
    *,
    target: str,
    trials: int = 20,
    progress: bool = False,
    **options: Unpack[WeightOptions],
) -> LearnedWeights:
    """Searches the weights of the other feedback types, where an event of the type `target` has weight 1.

    Of each user's items with a `target` event one is held out, with all its events: the latest where there are timestamps,
    else one at random. `model` is fitted on the rest with each trial's weights, and judged by where the held-out items
    stand among all items. The first trials are all types alike, the target alone, and conversion rates, so the search
    never ends below these; then come random weights, in the second half steps from the best ones.

    Parameters
    ----------
    model : a model with a parameter `feedback`, or an adapter such as `ImplicitModel`; it is not changed.
    data : an event log. Rows for testing must not be among them.
    target : the type of feedback that matters, such as "buy".
    trials : how many weights to try.
    progress : show a progress bar on the terminal.
    metric : what to maximize ("ndcg@10").
    combine : how several types of one pair become one weight ("max"), as in `EventWeights`.
    negative : types that push down, such as ["dislike"]: their weights are searched below 0.
    seed : of the held-out rows and of the search (0).
    """
    search = _search(model, data, target, options)
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ParameterError(f"learn_event_weights: trials must be a whole number of at least 1, got {trials!r}")
    records: list[dict[str, Any]] = []
    with _bar(progress, trials, search.metric) as show:
        while len(records) < trials:
            best = _best(records)
            weights = search.propose(len(records), None if best is None else best["weights"], trials)
            records.append(_tried(search, weights, len(records)))
            show(_best(records))
    best = _best(records)
    if best is None:
        raise DataError(
            f"learn_event_weights: the model failed with all weights; the first time: {records[0].get('error')}"
        )
    return LearnedWeights(search.policy(best["weights"]), best["value"], search.metric, records)


def _tried(search: Search, weights: Weights, number: int) -> dict[str, Any]:
    """The record of a trial; weights with which a model cannot be fitted are no reason to stop."""
    started = time.perf_counter()
    record: dict[str, Any] = {"trial": number, "weights": weights, "value": None, "seconds": 0.0}
    try:
        record["value"] = search.measure(weights)
    except TopNRankError as error:
        record["error"] = str(error)
    return record | {"seconds": time.perf_counter() - started}


def _best(records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The best record so far, the earliest of equals."""
    measured = [record for record in records if record["value"] is not None and not math.isnan(record["value"])]
    return max(measured, key=lambda record: record["value"], default=None)


def _search(model: Any, data: Interactions, target: str, options: WeightOptions) -> Search:
    """Checks the arguments and splits the data."""
    for name in options:
        one_of("learn_event_weights: an option", name, tuple(WeightOptions.__annotations__))
    check_interactions(data)
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
    for name in options.get("negative", ()):
        one_of("learn_event_weights: a negative type", name, types)
    metric, combine, seed = options.get("metric", "ndcg@10"), options.get("combine", "max"), options.get("seed", 0)
    one_of("learn_event_weights: the metric before '@'", parse_metrics(metric)[0].kind, ACCURACY)
    train, held_out = _parts(data, target, seed)
    _with_feedback(model, EventWeights(dict.fromkeys(used, 1.0), combine))  # refuses what has none before any work
    return Search(model, train, held_out, target, types, tuple(options.get("negative", ())), metric, combine, seed)


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


def _fitted(model: Model | Competitor, train: Interactions) -> Ranker:
    return model.fit(train) if isinstance(model, Model) else CompetitorRanker.fit(model, train)


@contextmanager
def _bar(wanted: bool, trials: int, metric: str) -> Iterator[Callable[[dict[str, Any] | None], None]]:
    """A bar with trials done, the best value so far and the time left; without it, a function that shows nothing."""
    if not wanted:
        yield lambda best: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    texts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[best]}"))
    with Progress(*texts, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("Learning weights", total=trials, best="")

        def show(best: dict[str, Any] | None) -> None:
            bar.update(task, advance=1, best="" if best is None else f"best {metric} {best['value']:.4f}")

        yield show
