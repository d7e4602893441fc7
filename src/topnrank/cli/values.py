"""Values written on the command line: hyper-parameters, feedback policies, histories, lists of ids."""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.data import Feedback

_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""Numbers that JSON does not take: .1, 1., +2 and the like."""


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`["factors=20", "smoothing=relu"]` as names and values; a value is JSON, a number such as .1 or 1e-3, else text."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ParameterError(f"--set needs NAME=VALUE, such as factors=20, got {setting!r}")
        if name in parsed:
            raise ParameterError(f"--set {name} is given twice, {parsed[name]!r} and {value!r}; give it once")
        parsed[name] = _value(value)
    return parsed


def _value(text: str) -> Any:
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if _NUMBER.fullmatch(text) else text


def parse_feedback(text: str) -> "Feedback | str":
    """`threshold=4`, `conversion=buy`, `events:buy=1,view=.1`, or the name of a policy without settings.

    `recency=30:` before any of them lets it fade with a half-life of 30 days.
    """
    import topnrank as tnr

    name, _, setting = re.sub("[:=]", ":", text, count=1).partition(":")
    if name == "events":
        pairs = [pair.partition("=") for pair in split_list([setting])]
        return tnr.EventWeights({kind.strip(): number("a weight of --feedback events", w) for kind, _, w in pairs})
    if name == "threshold" and setting:
        return tnr.Threshold(number("the rating of --feedback threshold", setting))
    if name == "conversion" and setting:
        return tnr.ConversionRate(setting)
    if name == "recency":
        return _recency(setting)
    if setting:
        raise ParameterError(
            f"--feedback {text!r}: only threshold=RATING, conversion=TYPE, events:TYPE=WEIGHT,... and "
            "recency=DAYS:FEEDBACK take a setting"
        )
    return name


def _recency(setting: str) -> "Feedback":
    """`30:events:buy=1,view=.1` as a policy that fades."""
    import topnrank as tnr
    from topnrank.data.policies import feedback_named

    days, _, base = setting.partition(":")
    if not base:
        raise ParameterError(f"--feedback recency needs days and what fades, such as recency=30:unary, got {setting!r}")
    policy = parse_feedback(base)
    half_life = number("the days of --feedback recency", days)
    return tnr.Recency(feedback_named(policy) if isinstance(policy, str) else policy, half_life)


def parse_history(text: str) -> list[tuple[str, float] | str]:
    """`"i1=5,i2=2"` as pairs of item and rating, `"i1,i2"` as items."""
    return [_entry(part) for part in split_list([text])]


def _entry(part: str) -> tuple[str, float] | str:
    item, equals, rating = part.rpartition("=")
    try:
        return (item, float(rating)) if equals else part
    except ValueError:
        return part  # an item whose id has an equals sign


def split_list(texts: Sequence[str]) -> list[str]:
    """The parts between commas of all `texts`, without those that are blank."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def number(what: str, text: str) -> float:
    """`text` as a number; an error that says what it is for."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{what} must be a number, got {text!r}") from None
