"""Options that several commands share, the values typed in them, and the decorator that shows them to Typer.

A group of options is a dataclass whose fields are made by `option` and `argument`; a command takes groups as parameters:

    @with_options
    def info(file: Annotated[str, typer.Argument(...)], reading: ReadOptions, output: Output) -> None: ...
"""

import dataclasses
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.cli.output import Output
    from topnrank.data import Feedback, Interactions
    from topnrank.models.base import Model

Command = Callable[..., None]

STYLE: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,  # plain help: the same with every version of Typer, and it can be piped
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 110},
}
"""How all commands and groups look, for `typer.Typer`."""


def option(default: Any, text: str, *names: str, **attributes: Any) -> Any:
    """A dataclass field that is an option with the help `text`, required if the default is `...`; see `typer.Option`."""
    info = typer.Option(default, *names, help=text, **attributes)
    return dataclasses.field(default=dataclasses.MISSING if default is ... else default, metadata={"typer": info})


def argument(text: str, metavar: str) -> Any:
    """A dataclass field that is a required positional argument."""
    return dataclasses.field(metadata={"typer": typer.Argument(..., help=text, metavar=metavar)})


def fraction(default: float | None, text: str) -> Any:
    """An option that is a fraction of rows, between 0 and 1."""

    def check(value: float | None) -> float | None:  # as a callback, so that the error names the option
        if value is not None and not 0.0 < value < 1.0:
            raise typer.BadParameter(f"must be a fraction between 0 and 1, both excluded, such as 0.5, got {value}")
        return value

    return option(default, text, callback=check, metavar="FRACTION")


def with_options(command: Command) -> Command:
    """The command with each parameter that is a dataclass replaced by the fields of it, one option each."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, list[str]] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        given = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        if not dataclasses.is_dataclass(hints[name]):
            parameters.append(given)
            continue
        options = [field for field in dataclasses.fields(hints[name]) if field.init]
        groups[name], types = [field.name for field in options], get_type_hints(hints[name])
        for field in options:
            parameters.append(
                given.replace(name=field.name, default=field.metadata["typer"], annotation=types[field.name])
            )

    def run(**values: Any) -> None:
        made = {name: hints[name](**{each: values.pop(each) for each in names}) for name, names in groups.items()}
        command(**values, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


# ----------------------------------------------------------------------------------------------------
# Groups of options.


HISTORY = "A user never seen, by items and ratings (or items alone)."
TITLES = "CSV, TSV or Parquet with the columns item and title (or these first); adds titles to the lists."
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'topnrank train' saved.")]


def _column(what: str) -> Any:
    return option(None, f"Column with {what}: its name, or its position from 0.", show_default="by usual names")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file of interactions."""

    user: str | None = _column("user ids")
    item: str | None = _column("item ids")
    rating: str | None = _column("ratings")
    type: str | None = _column("feedback types such as view or buy")
    weight: str | None = _column("weights or counts")
    timestamp: str | None = _column("times")
    format: str | None = option(None, "csv, tsv, dat, jsonl or parquet.", show_default="by name and content")
    separator: str | None = option(
        None, "What separates the columns of a text file, such as ';', '::' or '\\t'.", show_default="found in the file"
    )
    header: bool | None = option(
        None,
        "Whether the first line of a text file names the columns.",
        "--header/--no-header",
        show_default="found in the file",
    )
    duplicates: str = option("error", "Rows of one user and item: error, last (by time), sum or max.")

    def read(self, path: str, output: "Output") -> "Interactions":
        """The interactions at `path`, or those of the public data set of that name; notes how many rows were merged."""
        import topnrank as tnr
        from topnrank.data.datasets.registry import DATASETS

        if path in DATASETS and not Path(path).exists():
            return tnr.load_dataset(path, progress=not output.quiet)
        data = tnr.read(path, **asdict(self) | {"separator": self.plain_separator()})
        if data.merged_rows:
            self.note_merged(path, data.merged_rows, output)
        return data

    def plain_separator(self) -> str | None:
        """The separator; a tab may be written as backslash and t."""
        return None if self.separator is None else self.separator.replace("\\t", "\t")

    def note_merged(self, path: str, rows: int, output: "Output") -> None:
        """Notes how many rows the rule about duplicates merged."""
        output.note(f"{path}: {rows} duplicate rows were merged by the rule {self.duplicates!r}")


@dataclass(frozen=True)
class Filters:
    """Which users and items to leave out."""

    min_user_items: int = option(0, "Leave out users with fewer items.")
    min_item_users: int = option(0, "Leave out items with fewer users; done before the users.")

    def apply(self, data: "Interactions", output: "Output") -> "Interactions":
        """The data without rare items and users; notes how many were left out."""
        if not (self.min_user_items or self.min_item_users):
            return data
        kept = data.filter(min_user_items=self.min_user_items, min_item_users=self.min_item_users)
        gone = f"{data.n_users - kept.n_users} users, {data.n_items - kept.n_items} items, {len(data) - len(kept)} rows"
        output.note(f"the filter left out {gone}")
        return kept


ALL_ROWS = "all"
"""The value of --relevant when every row, or every row with a positive weight, is relevant."""


@dataclass(frozen=True)
class MetricOptions:
    """What to measure, and which rows are relevant."""

    metrics: str = option(
        "ndcg@1,ndcg@3,ndcg@5,ndcg@10,ndcg@20",
        "Separated by commas: ndcg, ndcg_graded, map, mrr, err, precision, recall, hit, auc, coverage, novelty, "
        "popularity; '@k' cuts.",
        "--metrics",
        "--metric",
    )
    relevant: str = option(
        "4", f"Lowest rating of a relevant item; '{ALL_ROWS}': every row, or weight > 0 with weights."
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments `metrics` and `relevant` of `evaluate` and `compare`."""
        relevant = None if self.relevant == ALL_ROWS else number("--relevant", self.relevant)
        return {"metrics": split_list([self.metrics]), "relevant": relevant}


@dataclass(frozen=True)
class ExecutionOptions:
    """Where finished parts of an experiment are kept, and how many run at a time."""

    folder: str | None = option(
        None, "Keep finished parts there; after a kill the same command goes on.", metavar="FOLDER"
    )
    jobs: int = option(1, "Parts at a time, each on one thread; the result does not depend on it.")


# ----------------------------------------------------------------------------------------------------
# Values typed on the command line: hyper-parameters, feedback policies, histories, lists of ids.


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
        except ValueError:
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
    return name


def parse_history(text: str) -> list[tuple[str, float] | str]:
    """`"i1=5,i2=2"` as pairs of item and rating, `"i1,i2"` as items; an id that has an equals sign stays whole."""
    history: list[tuple[str, float] | str] = []
    for part in split_list([text]):
        item, equals, rating = part.rpartition("=")
        try:
            history.append((item, float(rating)) if equals else part)
        except ValueError:
            history.append(part)
    return history


def split_list(texts: Sequence[str]) -> list[str]:
    """The parts between commas of all `texts`, without blank ones."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def number(what: str, text: str) -> float:
    """`text` as a number; the error says what it is for."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{what} must be a number, got {text!r}") from None
