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
    number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not number or (at_least is not None and value < at_least) or (above is not None and value <= above):
        raise ParameterError(f"{name} must be {rule}, got {value!r}")
    return float(value)


def one_of(name: str, value: object, options: tuple[str, ...]) -> str:
    """`value`; unless it is one of `options`, a ParameterError that lists them and suggests the nearest."""
    if isinstance(value, str) and value in options:
        return value
    near = get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ParameterError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{hint}")


def check_n(method: str, n: Any) -> int:
    """The length of a list that `method` is asked for."""
    return require_integer(f"{method}: n", n, 1)


def check_count(owner: object, *names: str, least: int = 1) -> None:
    """The named parameters of `owner` are integers of at least `least`."""
    for name in names:
        require_integer(f"{type(owner).__name__}.{name}", getattr(owner, name), least)


def check_number(owner: object, *names: str, above_zero: bool = False) -> None:
    """The named parameters of `owner` are finite numbers, not negative (or above zero)."""
    bound: dict[str, float] = {"above": 0} if above_zero else {"at_least": 0}
    for name in names:
        require_number(f"{type(owner).__name__}.{name}", getattr(owner, name), **bound)


def check_flag(owner: object, *names: str) -> None:
    """The named parameters of `owner` are True or False."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, bool):
            raise ParameterError(f"{type(owner).__name__}.{name} must be True or False, got {value!r}")


def check_batch(owner: object, name: str) -> None:
    """A number of users (int), a fraction of them (float in (0, 1]), or "auto"."""
    value: Any = getattr(owner, name)
    fraction = isinstance(value, float) and 0.0 < value <= 1.0
    count = not isinstance(value, bool) and isinstance(value, Integral) and value >= 1  # type: ignore[operator]
    if not (fraction or count or value == "auto"):
        rule = 'a number of users (1, 2, ...), a fraction of them (a float above 0, at most 1.0) or "auto"'
        raise ParameterError(f"{type(owner).__name__}.{name} must be {rule}, got {value!r}")
