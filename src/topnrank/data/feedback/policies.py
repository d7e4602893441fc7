"""Feedback policies: how ratings, events or counts become the weight w of a (user, item) pair.

A policy takes Interactions and returns Interactions with `weights`, one row for each pair, without types. Ratings and
timestamps are kept. Weights above zero mean liked, below zero disliked. Several types of feedback on one pair are
combined by a rule:

    max     the row of the largest absolute weight; ties: the latest, then the last type by name
    sum     weights and ratings add up, with the latest timestamp
    last    the row with the latest timestamp; ties: the last type by name
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from topnrank._checks import one_of, require_number
from topnrank._typing import Float64Array
from topnrank.data.duplicates import totals, winners
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

LIKED_FROM = 4.0
"""The lowest rating that counts as liked, unless a caller says otherwise: four stars of five."""
COMBINE_RULES = ("max", "sum", "last")
"""How several types of feedback on one pair become one row."""

_Present = TypeVar("_Present")


@runtime_checkable
class Feedback(Protocol):
    """How rows become weights."""

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights, each (user, item) pair once, without types."""

    def to_dict(self) -> dict[str, Any]:
        """What `feedback_from_dict` reads; holds JSON values only."""


class Policy:
    """A policy whose settings are the fields of a dataclass."""

    kind: ClassVar[str]
    """The name of the policy in files and on the command line."""

    def to_dict(self) -> dict[str, Any]:
        """The kind and the settings, as JSON values."""
        found: dict[str, Any] = {"kind": self.kind}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if isinstance(value, Feedback):
                value = value.to_dict()
            found[one.name] = value.item() if isinstance(value, np.number) else value
        return found


@final
@dataclass(frozen=True)
class Threshold(Policy):
    """+1 for ratings of at least `at`, -1 below (the paper); of several types the latest, else the largest rating."""

    kind: ClassVar[str] = "threshold"

    at: float = LIKED_FROM

    def __post_init__(self) -> None:
        require_number("Threshold.at", self.at)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights +1 and -1."""
        data, ratings = rated_pairs(data, "Threshold")
        liked = ratings.astype(np.float32) >= np.float32(self.at)  # .7 as a rating is not quite .7 as a 64-bit number
        return data.with_weights(np.where(liked, np.float32(1), np.float32(-1)))


@final
@dataclass(frozen=True)
class Amounts(Policy):
    """+1 for a rating above 0, -1 below, however large: counts and hours say that something is liked, not how much.

    Without ratings the same of the weights. Several types of a pair are combined as by `Threshold` and `WeightColumn`. The
    amounts themselves are left out.
    """

    kind: ClassVar[str] = "amounts"

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights +1, 0 and -1."""
        if data.ratings is not None:
            data, amounts = rated_pairs(data, "Amounts")
        else:
            data = _combined(data.with_weights(_needed(data.weights, "Amounts", "ratings or weights")), "max")
            amounts = _needed(data.weights, "Amounts", "weights").astype(np.float64)
        return replace(data, ratings=None).with_weights(np.sign(amounts).astype(np.float32))


@final
@dataclass(frozen=True)
class Centered(Policy):
    """The rating minus the mean rating of the user, in units of the scale; of several types the latest, else the largest.

    A unit is as much as one star of five (`RatingCounts.unit`), so that weights are the same on every scale.
    """

    kind: ClassVar[str] = "centered"

    unit: float | None = None
    """What the differences are divided by; None for what the spread of the training ratings says."""

    def __post_init__(self) -> None:
        if self.unit is not None:
            require_number("Centered.unit", self.unit, above=0)

    def fitted_to(self, data: Interactions) -> "Centered":
        """The policy with the unit of the ratings of `data`."""
        return self if self.unit is not None or data.rating_counts is None else Centered(data.rating_counts.unit)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights that sum to zero for each user."""
        unit = self.fitted_to(data).unit
        data, ratings = rated_pairs(data, "Centered")
        counts = np.maximum(np.diff(data.indptr), 1)
        means = np.bincount(data.user_index, weights=ratings, minlength=data.n_users) / counts
        return data.with_weights(((ratings - means[data.user_index]) / (unit or 1.0)).astype(np.float32))


@final
@dataclass(frozen=True)
class EventWeights(Policy):
    """A weight for each type, such as {"buy": 1, "view": 0.1, "dislike": -1}; several types of a pair by `combine`."""

    kind: ClassVar[str] = "events"

    weights: Mapping[str, float]
    combine: str = "max"

    def __post_init__(self) -> None:
        one_of("EventWeights.combine", self.combine, COMBINE_RULES)
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise ParameterError(f"EventWeights.weights must map types to numbers, got {self.weights!r}")
        for name, weight in self.weights.items():
            require_number(f"EventWeights.weights[{name!r}]", weight)
        # a copy, since the policy must not change with the caller's mapping
        object.__setattr__(self, "weights", {name: float(weight) for name, weight in self.weights.items()})

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with the weights of its types; a type without a weight is an error."""
        types = _needed(data.types, "EventWeights", "feedback types")
        used = [data.type_names[code] for code in np.unique(types)]
        if unknown := [name for name in used if name not in self.weights]:
            raise DataError(
                f"EventWeights has no weight for the feedback types {', '.join(map(repr, unknown))} of the data;"
                " add them, with weight 0 if they mean nothing"
            )
        table = np.array([self.weights.get(name, 0.0) for name in data.type_names], dtype=np.float32)
        return _combined(data.with_weights(table[types]), self.combine)


@final
@dataclass(frozen=True)
class ConversionRate(Policy):
    """The weight of a type is the fraction of its (user, item) pairs that also have the `target` type, which has 1.

    Several types of a pair are combined by `combine`.
    """

    kind: ClassVar[str] = "conversion"

    target: str = "buy"
    combine: str = "max"

    def __post_init__(self) -> None:
        one_of("ConversionRate.combine", self.combine, COMBINE_RULES)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with the conversion rates of its types."""
        return self.event_weights(data)(data)

    def event_weights(self, data: Interactions) -> EventWeights:
        """The rates found in `data`, as a policy that can be applied to other data."""
        types = _needed(data.types, "ConversionRate", "feedback types")
        target = data.type_names.index(self.target) if self.target in data.type_names else -1
        if not np.any(types == target):
            raise DataError(
                f"ConversionRate.target must be a feedback type of the data, one of"
                f" {', '.join(map(repr, data.type_names))}, got {self.target!r}; set target to one of them"
            )
        pair = np.cumsum(data.pair_starts) - 1
        converted = np.bincount(pair, weights=types == target)[pair]
        names = len(data.type_names)
        rates = np.bincount(types, weights=converted, minlength=names) / np.maximum(
            np.bincount(types, minlength=names), 1
        )
        return EventWeights(dict(zip(data.type_names, rates.tolist(), strict=True)), self.combine)


@final
@dataclass(frozen=True)
class WeightColumn(Policy):
    """The weights given with the data; several types of a pair by `combine`."""

    kind: ClassVar[str] = "weights"

    combine: str = "max"

    def __post_init__(self) -> None:
        one_of("WeightColumn.combine", self.combine, COMBINE_RULES)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with its own weights."""
        _needed(data.weights, "WeightColumn", "weights")
        return _combined(data, self.combine)


@final
@dataclass(frozen=True)
class Unary(Policy):
    """Weight 1 for every pair; of several types the latest, else the last by name."""

    kind: ClassVar[str] = "unary"

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with weights of 1."""
        return _combined(data.with_weights(np.ones(len(data), dtype=np.float32)), "max")


@final
@dataclass(frozen=True)
class ItemCount(Policy):
    """The weights of `base` times |I_u| ** `power`, the number of the user's items (suggested in the paper)."""

    kind: ClassVar[str] = "item-count"

    base: Feedback = field(default_factory=Threshold)
    power: float = 1.0

    def __post_init__(self) -> None:
        require_number("ItemCount.power", self.power)

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with the weights of `base`, scaled for each user."""
        data = self.base(data)
        weights = _needed(data.weights, "ItemCount", "weights")
        # float64, so that a scale beyond float32 is seen as infinite by `with_weights`, not as a warning here
        counts = np.maximum(np.diff(data.indptr), 1).astype(np.float64)
        with np.errstate(over="ignore"):
            return data.with_weights((weights * (counts**self.power)[data.user_index]).astype(np.float32))


def _needed(column: _Present | None, policy: str, what: str) -> _Present:
    if column is None:
        raise DataError(f"{policy} needs {what} and the data has none; name that column or choose another feedback")
    return column


def rated_pairs(data: Interactions, policy: str) -> tuple[Interactions, Float64Array]:
    """One row for each pair, the latest or else the one of the largest rating; and its ratings."""
    ratings = _needed(data.ratings, policy, "ratings")
    if data.types is not None:
        data = _winning(data, ratings if data.timestamps is None else data.timestamps)
    return data, _needed(data.ratings, policy, "ratings").astype(np.float64)


def _combined(data: Interactions, rule: str) -> Interactions:
    """Weighted `data` with one row for each pair."""
    weights = _needed(data.weights, "combining types", "weights")
    if data.types is None:
        return data
    if rule == "sum":
        return _summed(data)
    if rule == "max":
        clock = [] if data.timestamps is None else [data.timestamps]
        return _winning(data, np.abs(weights), *clock)
    if data.timestamps is None:
        raise DataError("combine='last' needs timestamps and the data has none; use combine='max' or 'sum'")
    return _winning(data, data.timestamps)


def _winning(data: Interactions, *criteria: NDArray[Any]) -> Interactions:
    starts = np.flatnonzero(data.pair_starts)
    return replace(data.take(winners(starts, len(data), criteria)), types=None, type_names=())


def _summed(data: Interactions) -> Interactions:
    starts = np.flatnonzero(data.pair_starts)
    return replace(data.take(starts), types=None, type_names=(), **totals(data, starts))
