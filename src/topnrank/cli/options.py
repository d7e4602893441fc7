"""Options that several commands share, and the decorator that shows them to Typer.

A group of options is a dataclass whose fields are made by `option` and `argument`; a command takes groups as parameters:

    @with_options
    def info(file: Annotated[str, typer.Argument(...)], reading: ReadOptions, output: Output) -> None: ...
"""

import dataclasses
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from topnrank.cli.values import ALL_ROWS, RELEVANT, relevant_of, split_list

if TYPE_CHECKING:
    from topnrank.cli.output import Output
    from topnrank.data import Interactions
    from topnrank.data.readers.read import Reading

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


def argument(text: str, metavar: str, default: Any = ...) -> Any:
    """A dataclass field that is a positional argument, required unless it has a default."""
    info = typer.Argument(default, help=text, metavar=metavar)
    return dataclasses.field(default=dataclasses.MISSING if default is ... else default, metadata={"typer": info})


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
        with made["output"].warnings_noted() if "output" in made else nullcontext():
            command(**values, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


# ----------------------------------------------------------------------------------------------------
# Groups of options.


HISTORY = "A user never seen, by items and ratings (or items alone)."
TITLES = "A file with the columns item and title (or these first), text or Parquet; adds titles to the lists."
TITLE_COLUMNS = "The columns of --titles: names, or positions from 0."
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
        None,
        "What separates the columns of a text file, such as ';', '::' or '\\t'.",
        show_default="found in the file",
        callback=lambda value: value and value.replace("\\t", "\t"),  # a tab may be written as backslash and t
    )
    header: bool | None = option(
        None,
        "Whether the first line of a text file names the columns.",
        "--header/--no-header",
        show_default="found in the file",
    )
    duplicates: str = option(
        "error", "Rows of one user and item: error (events without values: last), last, sum, max or count."
    )
    keep_order: bool = option(
        False,
        "Take items of one moment in the order of the rows of the file; by default nobody knows which came first.",
        "--keep-order",
    )

    def read(self, path: str, output: "Output") -> "Interactions":
        """The interactions at `path`, or those of the public data set of that name; notes how many rows were merged."""
        return self.read_rows(path, output).data

    def read_rows(self, path: str, output: "Output") -> "Reading":
        """As `read`; it also tells which columns of the file were not used."""
        import topnrank as tnr
        from topnrank.data.datasets.registry import DATASETS
        from topnrank.data.readers.read import Reading, read_rows
        from topnrank.data.readers.request import Request

        if path in DATASETS and not Path(path).exists():
            return Reading(tnr.load_dataset(path, keep_order=self.keep_order, progress=not output.quiet), ())
        roles = {role: getattr(self, role) for role in ("user", "item", "rating", "type", "weight", "timestamp")}
        request = Request(roles, separator=self.separator, header=self.header)
        reading = read_rows(path, request, format=self.format, duplicates=self.duplicates, keep_order=self.keep_order)
        if reading.data.merged_rows:
            self.note_merged(path, reading.data.merged_rows, output)
        return reading

    def note_merged(self, path: str, rows: int, output: "Output") -> None:
        """Notes how many rows the rule about duplicates merged."""
        rule = "last" if self.duplicates == "error" else self.duplicates  # rows without values are merged anyway
        output.note(f"{path}: {rows} duplicate rows were merged by the rule {rule!r}")


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
        "auto", f"{RELEVANT}; 'auto': by the model, else by the scale; '{ALL_ROWS}': every row, or weight > 0."
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments `metrics` and `relevant` of `evaluate` and `compare`."""
        return {"metrics": split_list([self.metrics]), "relevant": relevant_of(self.relevant)}


@dataclass(frozen=True)
class ExecutionOptions:
    """Where finished parts of an experiment are kept, and how many run at a time."""

    folder: str | None = option(
        None, "Keep finished parts there; after a kill the same command goes on.", metavar="FOLDER"
    )
    jobs: int = option(1, "Parts at a time, each on one thread; the result does not depend on it.")
