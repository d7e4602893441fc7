"""Options that several commands share, as dataclasses, and the decorator that shows their fields to Typer."""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from topnrank.cli.output import Output
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.data import Feedback, Interactions


# ----------------------------------------------------------------------------------------------------
# Values written on the command line: hyper-parameters, feedback policies, histories, lists of ids.


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
    from topnrank.data.feedback.by_name import feedback_named

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


Command = Callable[..., None]


def with_options(command: Command) -> Command:
    """Replaces each parameter of `command` that is a dataclass by the fields of it, so that each becomes an option."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
    hints = {name: hint for name, hint in get_type_hints(command, include_extras=True).items() if name in defaults}
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, hint in hints.items():
        parameters += _fields(hint) if name in groups else [_parameter(name, hint, defaults[name])]

    def run(**values: Any) -> None:
        made = {name: group(**{f.name: values.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**values, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(f.name, hints[f.name], f.default) for f in fields(group)]


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def share(value: float | None) -> float | None:
    """A share of rows, checked here because only here the option's name is known."""
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must be a share between 0 and 1, both excluded, such as 0.5, got {value}")
    return value


def _column(what: str) -> Any:
    return typer.Option(help=f"Column with {what}: its name, or its position from 0.", show_default="by usual names")


@dataclass(frozen=True)
class Reading:
    """How to read a file of interactions."""

    user: Annotated[str | None, _column("user ids")] = None
    item: Annotated[str | None, _column("item ids")] = None
    rating: Annotated[str | None, _column("ratings")] = None
    type: Annotated[str | None, _column("feedback types such as view or buy")] = None
    weight: Annotated[str | None, _column("weights or counts")] = None
    timestamp: Annotated[str | None, _column("times")] = None
    format: Annotated[
        str | None,
        typer.Option(help="csv, tsv, dat, jsonl or parquet.", show_default="by name and content"),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between columns of a text file, such as ';', '::' or '\\t'.",
            show_default="told from the file",
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a text file names the columns.",
            show_default="told from the file",
        ),
    ] = None
    duplicates: Annotated[
        str,
        typer.Option(help="Rows of one user and item: error, last (by time), sum or max."),
    ] = "error"

    def read(self, path: str, output: Output) -> "Interactions":
        """The interactions at `path`, or those of the public data set of that name; tells what was merged."""
        import topnrank as tnr
        from topnrank.data.datasets.registry import DATASETS

        if path in DATASETS and not Path(path).exists():
            return tnr.load_dataset(path, progress=not output.quiet)
        data = tnr.read(path, **asdict(self) | {"separator": self.plain_separator()})
        if data.merged_rows:
            self.tell_merged(path, data.merged_rows, output)
        return data

    def plain_separator(self) -> str | None:
        """The separator; a tab may be written as shells let people write it."""
        return None if self.separator is None else self.separator.replace("\\t", "\t")

    def tell_merged(self, path: str, rows: int, output: Output) -> None:
        """What the rule about duplicates did."""
        output.note(f"{path}: {rows} duplicate rows were merged by the rule {self.duplicates!r}")


@dataclass(frozen=True)
class Printing:
    """How to print."""

    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else there.")
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No progress bar, notes or reports of what was done; answers and errors only."
        ),
    ] = False

    def output(self) -> Output:
        """Where the command prints."""
        return Output(as_json=self.json, quiet=self.quiet)


def filtered(data: "Interactions", min_user_items: int, min_item_users: int, output: Output) -> "Interactions":
    """Without rare items and users; tells how many went."""
    if not (min_user_items or min_item_users):
        return data
    kept = data.filter(min_user_items=min_user_items, min_item_users=min_item_users)
    gone = f"{data.n_users - kept.n_users} users, {data.n_items - kept.n_items} items, {len(data) - len(kept)} rows"
    output.note(f"the filter left out {gone}")
    return kept
