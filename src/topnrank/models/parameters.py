"""Hyper-parameters: the rule that each field keeps, one validator for all of them, and search spaces for tuning.

A rule is data on the field:

    factors: int = param(50, Integer(1))

`check_parameters` holds every field of a model against its rule. Rules between fields belong to the models.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar

from topnrank._checks import one_of
from topnrank.errors import ParameterError

T = TypeVar("T")

AUTO = "auto"
"""The value of a field that the model sets by its task and the data."""


class Rule(Protocol):
    """What the values of a hyper-parameter must be."""

    def check(self, owner: str, name: str, value: Any) -> None:
        """Raises ParameterError if `value` of `owner.name` breaks the rule."""
        ...


def param(default: T, rule: Rule) -> T:
    """A dataclass field with a default and the rule that its values keep."""
    made: T = field(default=default, metadata={"rule": rule})
    return made


def check_parameters(owner: object) -> None:
    """Checks every field of the dataclass `owner` that has a rule; ParameterError names the first that breaks it."""
    for one in dataclasses.fields(owner):  # type: ignore[arg-type]
        if "rule" in one.metadata:
            one.metadata["rule"].check(type(owner).__name__, one.name, getattr(owner, one.name))


def require(holds: bool, what: str, rule: str, value: Any) -> None:
    """ParameterError "`what` must be `rule`, got `value`" unless the rule `holds`."""
    if not holds:
        raise ParameterError(f"{what} must be {rule}, got {value!r}")


def require_integer(what: str, value: Any, at_least: int) -> None:
    """ParameterError unless the value is an integer of at least `at_least`."""
    if not (is_number(value) and isinstance(value, Integral) and int(value) >= at_least):
        raise ParameterError(f"{what} must be an integer of at least {at_least}, got {value!r}")


def is_number(value: Any) -> bool:
    """Whether the value is a finite number; True and False are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


@dataclass(frozen=True)
class Integer:
    """An integer of at least `at_least`."""

    at_least: int = 1

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        require_integer(f"{owner}.{name}", value, self.at_least)


@dataclass(frozen=True)
class Number:
    """A finite number: not negative, or above zero, and at most `at_most`."""

    above_zero: bool = False
    at_most: float = math.inf

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        holds = is_number(value) and 0 <= value <= self.at_most and not (self.above_zero and value == 0)
        rule = "a finite number above 0" if self.above_zero else "a finite number of at least 0"
        if self.at_most < math.inf:
            rule = f"a number from 0 to {self.at_most:g}"
        require(holds, f"{owner}.{name}", rule, value)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        require(isinstance(value, bool), f"{owner}.{name}", "True or False", value)


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    options: tuple[str, ...]

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        one_of(name, value, self.options)


@dataclass(frozen=True)
class Unless:
    """A rule for all values but one, such as None or "auto"."""

    value: Any
    rule: Rule

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        if value is not self.value and not (isinstance(self.value, str) and value == self.value):
            self.rule.check(owner, name, value)


@dataclass(frozen=True)
class BatchSize:
    """A number of users (int), a fraction of them (float in (0, 1]), or "auto"."""

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        fraction = isinstance(value, float) and 0.0 < value <= 1.0
        count = is_number(value) and isinstance(value, Integral) and int(value) >= 1
        rule = 'a number of users (1, 2, ...), a fraction of them (a float above 0, at most 1.0) or "auto"'
        require(fraction or count or value == AUTO, f"{owner}.{name}", rule, value)


@dataclass(frozen=True)
class By:
    """A rule in a function of the value, which raises ParameterError."""

    function: Callable[[Any], object]

    def check(self, owner: str, name: str, value: Any) -> None:
        """See the class."""
        self.function(value)


# -- search spaces ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False
    """Evenly spread by logarithm"""
    whole: bool = False
    """Integers only"""

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', by logarithm' if self.log else ''}"


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Space = Mapping[str, Range | Choice]
"""Values worth trying when a model is tuned, by the name of the hyper-parameter."""
