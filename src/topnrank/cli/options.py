"""Options that several commands share, as dataclasses, and the decorator that shows their fields to Typer."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from topnrank.cli.output import Output

if TYPE_CHECKING:
    from topnrank.data import Interactions

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
        from topnrank.data.registry import DATASETS

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
