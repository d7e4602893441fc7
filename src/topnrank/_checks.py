"""Checks of hyper-parameters: one sentence with class, name, rule and value."""

import math
from numbers import Integral, Real
from typing import Any

from topnrank.errors import ParameterError


def _fail(owner: object, name: str, rule: str, value: Any) -> ParameterError:
    return ParameterError(f"{type(owner).__name__}.{name} must be {rule}, got {value!r}")


def _is_number(value: Any) -> bool:
    """A finite number; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def check_n(method: str, n: Any) -> int:
    """The length of a list that `method` is asked for."""
    if not _is_number(n) or not isinstance(n, Integral) or n < 1:
        raise ParameterError(f"{method}: n must be a whole number of at least 1, got {n!r}")
    return int(n)


def check_count(owner: object, *names: str, least: int = 1) -> None:
    """The named parameters are integers of at least `least`."""
    for name in names:
        value: Any = getattr(owner, name)
        if not _is_number(value) or not isinstance(value, Integral) or value < least:
            raise _fail(owner, name, f"a whole number of at least {least}", value)


def check_number(owner: object, *names: str, above_zero: bool = False) -> None:
    """The named parameters are finite numbers, not negative (or above zero)."""
    for name in names:
        value = getattr(owner, name)
        if not _is_number(value) or value < 0 or (above_zero and value == 0):
            raise _fail(
                owner, name, "a finite number above 0" if above_zero else "a finite number of at least 0", value
            )


def check_flag(owner: object, *names: str) -> None:
    """The named parameters are True or False."""
    for name in names:
        if not isinstance(getattr(owner, name), bool):
            raise _fail(owner, name, "True or False", getattr(owner, name))


def check_batch(owner: object, name: str) -> None:
    """A count of users (int), a share of them (float in (0, 1]), or "auto"."""
    value: Any = getattr(owner, name)
    share = isinstance(value, float) and 0.0 < value <= 1.0
    count = _is_number(value) and isinstance(value, Integral) and value >= 1  # type: ignore[operator]
    if not (share or count or value == "auto"):
        rule = 'a number of users (1, 2, ...), a share of them (a float above 0, at most 1.0) or "auto"'
        raise _fail(owner, name, rule, value)


def one_of(name: str, value: object, options: tuple[str, ...]) -> str:
    """`value` if it is one of `options`; else a ParameterError that lists them and guesses what was meant."""
    from difflib import get_close_matches

    if isinstance(value, str) and value in options:
        return value
    near = get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ParameterError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{hint}")
