"""Checks of parameters and arguments: errors of one sentence with name, rule and value."""

import math
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from topnrank.errors import ParameterError


def require_integer(name: str, value: Any, at_least: int = 0) -> int:
    """`value` as an int; a ParameterError unless it is an integer (not a bool) of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ParameterError(f"{name} must be an integer of at least {at_least}, got {value!r}")
    return int(value)


def require_number(name: str, value: Any, *, at_least: float | None = None, above: float | None = None) -> float:
    """`value` as a float; a ParameterError unless it is a finite number (not a bool) within the bounds."""
    rule = "a finite number"
    if at_least is not None:
        rule += f" of at least {at_least:g}"
    if above is not None:
        rule += f" above {above:g}"
    if not is_number(value) or (at_least is not None and value < at_least) or (above is not None and value <= above):
        raise ParameterError(f"{name} must be {rule}, got {value!r}")
    return float(value)


def require_fraction(name: str, value: Any) -> float:
    """`value` as a float; a ParameterError unless it is a number between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise ParameterError(f"{name} must be a fraction between 0 and 1, both excluded, got {value!r}")
    return float(value)


def is_number(value: object) -> bool:
    """Whether `value` is a number that a float can hold, finite and no bool."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def one_of(name: str, value: object, options: tuple[str, ...]) -> str:
    """`value`; unless it is one of `options`, a ParameterError that lists them and suggests the nearest."""
    if isinstance(value, str) and value in options:
        return value
    near = get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ParameterError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{hint}")
