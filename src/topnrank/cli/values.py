"""Values typed on the command line: hyper-parameters, feedback policies, histories, lists of ids."""

import dataclasses
import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.data import Feedback
    from topnrank.data.ids import IdMap
    from topnrank.models.base import Model

FEEDBACKS = ("centered", "threshold", "grades", "relevance", "amounts", "weights", "unary", "item-count", "conversion")
"""Names that --feedback takes alone."""
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""Numbers that JSON does not accept: .1, 1., +2 and the like."""


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`["factors=20", "smoothing=relu"]` as names and values; a value is JSON, a number such as .1 or 1e-3, else text."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ParameterError(f"--set needs NAME=VALUE, such as factors=20, got {setting!r}")
        if name in parsed:
            raise ParameterError(f"--set {name} is given twice, {parsed[name]!r} and {value!r}; give it once")
        try:
            parsed[name] = _PYTHON_WORDS[value] if value in _PYTHON_WORDS else json.loads(value)
        except (ValueError, RecursionError):
            parsed[name] = float(value) if _NUMBER.fullmatch(value) else value
    return parsed


def make_model(kind: "type[Model]", params: dict[str, Any]) -> "Model":
    """A model with these hyper-parameters, which are validated once; an unknown name is an error."""
    if params.keys() <= {field.name for field in dataclasses.fields(kind)}:  # type: ignore[arg-type]
        return kind(**params)
    return kind().set_params(**params)  # raises the error that lists the known names


def parse_feedback(text: str) -> "Feedback | str":
    """`threshold=4`, `conversion=buy`, `events:buy=1,view=.1`, or the name of a policy without settings.

    `recency=30:` before any of them halves the weights every 30 days.
    """
    import topnrank as tnr
    from topnrank.data.feedback.by_name import feedback_named

    name, _, setting = re.sub("[:=]", ":", text, count=1).partition(":")
    if name == "events":
        pairs = [pair.partition("=") for pair in split_list([setting])]
        return tnr.EventWeights({kind.strip(): number("a weight of --feedback events", w) for kind, _, w in pairs})
    if name == "threshold" and setting:
        return tnr.Threshold(number("the rating of --feedback threshold", setting))
    if name == "conversion" and setting:
        return tnr.ConversionRate(setting)
    if name == "recency":
        days, _, base = setting.partition(":")
        if not base:
            raise ParameterError(
                f"--feedback recency needs days and a feedback, such as recency=30:unary, got {setting!r}"
            )
        policy = parse_feedback(base)
        half_life = number("the days of --feedback recency", days)
        return tnr.Recency(feedback_named(policy) if isinstance(policy, str) else policy, half_life)
    if setting:
        raise ParameterError(
            f"--feedback {text!r}: only threshold=RATING, conversion=TYPE, events:TYPE=WEIGHT,... and "
            "recency=DAYS:FEEDBACK take a setting"
        )
    if name not in FEEDBACKS:
        near = get_close_matches(name, FEEDBACKS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"--feedback must be one of {', '.join(FEEDBACKS)}, events:TYPE=WEIGHT,..., conversion=TYPE or "
            f"recency=DAYS:FEEDBACK, got {name!r}{hint}"
        )
    return name


def parse_history(text: str, known: "IdMap | None" = None) -> list[tuple[str, float] | str]:
    """`"i1=5,i2=2"` as pairs of item and rating, `"i1,i2"` as items; an id that has an equals sign stays whole.

    With the items that are `known`, what is no number behind an equals sign is an error, unless the whole is an item.
    """
    history: list[tuple[str, float] | str] = []
    for part in split_list([text]):
        item, equals, rating = part.rpartition("=")
        try:
            history.append((item, float(rating)) if equals else part)
        except ValueError:
            if known is not None and known.index([part])[0] < 0 <= known.index([item])[0]:
                raise ParameterError(
                    f"--history {part}: the rating of item {item} must be a number, got {rating!r}; give one such as "
                    f"{item}=5, or the item alone"
                ) from None
            history.append(part)
    return history


ALL_ROWS = "all"
"""The value of --relevant when every row, or every row with a positive weight, is relevant."""
RELEVANT = "Lowest rating that counts as liked"


def relevant_of(text: str) -> Any:
    """The argument `relevant` of the library for a value of --relevant."""
    if text in (ALL_ROWS, "auto"):
        return None if text == ALL_ROWS else text
    return number("--relevant", text)


def split_list(texts: Sequence[str]) -> list[str]:
    """The parts between commas of all `texts`, without blank ones."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def number(what: str, text: str) -> float:
    """`text` as a number; the error says what it is for."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{what} must be a number, got {text!r}") from None
