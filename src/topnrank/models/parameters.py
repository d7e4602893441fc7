"""Hyper-parameters: the rule that each field keeps, and search spaces for tuning.

A rule is data on the field:

    factors: int = param(50, integer())

`Model.check` holds every field against its rule. Rules between fields belong to the models.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, TypeVar

from topnrank._checks import is_number
from topnrank.errors import ParameterError

T = TypeVar("T")

AUTO = "auto"
"""The value of a field that the model sets by its task and the data."""


@dataclass(frozen=True)
class Rule:
    """What the values of a hyper-parameter must be."""

    sentence: str
    """Ends "`Model.field` must be ..." """
    holds: Callable[[Any], bool]
    words: tuple[str, ...] = ()
    """For a choice of words: a wrong one is answered by the nearest"""
    also: tuple[Any, ...] = ()
    """Values allowed besides, such as None or "auto" """

    def unless(self, *values: Any) -> "Rule":
        """The same rule for all values but these."""
        return replace(self, also=(*self.also, *values))


def param(default: T, rule: Rule) -> T:
    """A dataclass field with a default and the rule that its values keep."""
    made: T = field(default=default, metadata={"rule": rule})
    return made


def require(holds: bool, what: str, rule: str, value: Any) -> None:
    """ParameterError "`what` must be `rule`, got `value`" unless the rule `holds`."""
    if not holds:
        raise ParameterError(f"{what} must be {rule}, got {value!r}")


def integer(at_least: int = 1) -> Rule:
    """An integer of at least `at_least`."""
    rule = f"an integer of at least {at_least}"
    return Rule(rule, lambda value: is_number(value) and isinstance(value, Integral) and int(value) >= at_least)


def one_word(*words: str) -> Rule:
    """One of a few words."""
    return Rule(f"one of {', '.join(map(repr, words))}", lambda value: isinstance(value, str) and value in words, words)


def by(function: Callable[[Any], object]) -> Rule:
    """A rule in a function of the value, which raises ParameterError."""
    return Rule("", lambda value: function(value) is not None)


NOT_NEGATIVE = Rule("a finite number of at least 0", lambda value: is_number(value) and value >= 0)
POSITIVE = Rule("a finite number above 0", lambda value: is_number(value) and value > 0)
FRACTION = Rule("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
FLAG = Rule("True or False", lambda value: isinstance(value, bool))
BATCH_SIZE = Rule(
    'a number of users (1, 2, ...), a fraction of them (a float above 0, at most 1.0) or "auto"',
    lambda value: (
        (isinstance(value, float) and 0.0 < value <= 1.0)
        or (is_number(value) and isinstance(value, Integral) and int(value) >= 1)
    ),
    also=(AUTO,),
)


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
