"""Checks of arguments that comparing, searching and the statistics share."""

from numbers import Integral
from typing import Any

from topnrank.errors import ParameterError


def check_integer(name: str, value: Any, minimum: int = 1) -> int:
    """`value` if it is an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ParameterError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return int(value)


def check_fraction(name: str, value: Any) -> None:
    """`value` lies between 0 and 1, both excluded."""
    if not (isinstance(value, int | float) and 0.0 < value < 1.0):
        raise ParameterError(f"{name} must be a fraction between 0 and 1, both excluded, got {value!r}")
