"""`topnrank recommend`."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank.cli.files import read_lines, read_titles, require_writable, table_format, write_batches, write_table
from topnrank.cli.options import Printing, with_options
from topnrank.cli.output import Output, list_table
from topnrank.cli.values import parse_history, split_list
from topnrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model
    from topnrank._typing import IdArray


@dataclass(frozen=True)
class Audience:
    """For whom."""

    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="A user id; may be repeated.")] = None
    users_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A text file with one user id on each line.")
    ] = None
    all: Annotated[bool, typer.Option("--all", help="All users of the model; needs --output.")] = False
    history: Annotated[
        str | None,
        typer.Option(metavar="ITEM=RATING,...", help="A user never seen, by items and ratings (or items alone)."),
    ] = None

    def check(self) -> None:
        """Exactly one way to say for whom."""
        given = [bool(self.user), self.users_file is not None, self.all, self.history is not None]
        if sum(given) != 1:
            raise ParameterError(
                f"give exactly one of --user, --users-file, --all and --history, got {sum(given)}; see --help"
            )

    def ids(self, model: "Model", unknown: str, output: Output) -> "IdArray | None":
        """The users' ids, None for all; tells what happens to users the model does not know."""
        if self.all:
            return None
        asked = self.user or read_lines(str(self.users_file))
        if not asked:
            raise DataError(f"{self.users_file}: holds no user ids; write one on each line")
        numbers = model.user_map.index(asked)
        strangers = [name for name, number in zip(asked, numbers, strict=True) if number < 0]
        if strangers and unknown in _FATES:
            more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
            output.note(f"users unknown to the model {_FATES[unknown]}: {', '.join(strangers[:5])}{more}")
        if strangers and unknown != "skip":
            return _typed(asked, integers=model.user_map.is_integer)
        return model.user_ids_[numbers[numbers >= 0]]


_FATES = {"skip": "are left out", "popular": "get the items with most training rows"}
"""What happens to users the model does not know."""


def _typed(ids: list[str], *, integers: bool) -> "IdArray":
    """Ids as the model's type where all of them can be that, else as text."""
    import numpy as np

    try:
        return np.array([int(text) for text in ids], np.int64) if integers else np.array(ids, object)
    except (ValueError, OverflowError):
        return np.array(ids, object)


@dataclass(frozen=True)
class Wishes:
    """Which items, how many, and where to."""

    n: Annotated[int, typer.Option("-n", "--n", help="Items for each user.")] = 10
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write .parquet, .csv or .jsonl.", show_default="print a table"
        ),
    ] = None
    titles: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="CSV, TSV or Parquet with the columns item and title (or these first); adds titles to the lists.",
        ),
    ] = None
    allow: Annotated[
        list[str] | None, typer.Option(metavar="ITEM,...", help="Only these items.", show_default="all")
    ] = None
    exclude: Annotated[list[str] | None, typer.Option(metavar="ITEM,...", help="Never these items.")] = None
    keep_seen: Annotated[bool, typer.Option("--keep-seen", help="Also recommend items the user was trained on.")] = (
        False
    )
    unknown: Annotated[
        str,
        typer.Option(help="Users the model does not know: error, popular (items with most training rows) or skip."),
    ] = "error"

    def arguments(self) -> dict[str, Any]:
        """As `Model.recommend` names them."""
        return {
            "n": self.n,
            "exclude_seen": not self.keep_seen,
            "items": split_list(self.allow) if self.allow else None,
            "exclude": split_list(self.exclude) if self.exclude else None,
            "unknown": self.unknown,
        }


@with_options
def recommend(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'topnrank train' saved.")],
    audience: Audience,
    wishes: Wishes,
    printing: Printing,
) -> None:
    """Print or write the N best items for users.

    For some users, for all users, or for a user never seen. Items a user was trained on are left out unless --keep-seen
    is given. Scores can be compared within a user only.

    \b
    Examples:
      topnrank recommend movies.safetensors --user 42 --titles movies.csv
      topnrank recommend movies.safetensors --history "318=5,858=4,4896=1"
      topnrank recommend movies.safetensors --all -n 20 -o top20.parquet
    """
    import topnrank as tnr

    output = printing.output()
    audience.check()
    _check_target(audience, wishes)
    model = tnr.load(model_file)
    titles = _titles(wishes.titles, model)
    if audience.history is not None:
        table = model.recommend(history=parse_history(audience.history), **wishes.arguments())
        _deliver(_titled(table, titles), wishes, output)
        return
    users = audience.ids(model, wishes.unknown, output)
    same_type = users is None or users.dtype == model.user_ids_.dtype
    if wishes.output is not None and same_type:
        _told(_stream(model, users, titles, wishes), wishes.output, output)
    else:  # to the terminal, or with an id that is none of the model's type, which a streamed file has no column for
        _deliver(_titled(model.recommend(users, **wishes.arguments()), titles), wishes, output)


def _check_target(audience: Audience, wishes: Wishes) -> None:
    if wishes.output is not None:
        table_format(wishes.output)
        require_writable(wishes.output)
    elif audience.all:
        raise ParameterError("--all writes to a file: add --output FILE.parquet (or .csv, .jsonl)")


def _titles(path: str | None, model: "Model") -> dict[str, str] | None:
    """Titles by item id; an error when they are those of other items."""
    if path is None:
        return None
    titles = read_titles(path)
    if not any(str(item) in titles for item in model.item_ids_):
        raise DataError(
            f"{path}: has no title for any item of the model, whose items are such as {model.item_ids_[0]!r}; "
            "give the titles of the items it was trained on"
        )
    return titles


def _titled(table: "pa.Table", titles: dict[str, str] | None) -> "pa.Table":
    """With a column title; empty where there is none."""
    import pyarrow as pa

    if titles is None:
        return table
    column = pa.array([titles.get(str(item), "") for item in table["item"].to_pylist()], pa.string())
    return table.append_column("title", column)


def _stream(model: "Model", users: Any, titles: dict[str, str] | None, wishes: Wishes) -> int:
    """Writes block by block; formats other than Parquet, and titles, are made from a Parquet file beside the target."""
    path = str(wishes.output)
    if table_format(path) == ".parquet" and titles is None:
        return model.recommend_to(path, users, **wishes.arguments())
    with tempfile.TemporaryDirectory(prefix=".topnrank-", dir=Path(path).expanduser().parent) as folder:
        raw = Path(folder) / "all.parquet"
        rows = model.recommend_to(raw, users, **wishes.arguments())
        batches = _batches(raw, titles)
        write_batches(path, next(batches).schema, batches)
    return rows


def _batches(path: Path, titles: dict[str, str] | None) -> "Iterator[pa.RecordBatch]":
    """An empty batch that tells the schema, then those of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        empty = _titled(file.schema_arrow.empty_table(), titles)
        yield pa.RecordBatch.from_pylist([], schema=empty.schema)
        for batch in file.iter_batches():
            yield from _titled(pa.table(batch), titles).to_batches()


def _deliver(table: "pa.Table", wishes: Wishes, output: Output) -> None:
    """A table that fits in memory: to the file, or one list for each user."""
    if wishes.output is not None:
        write_table(wishes.output, table)
        _told(table.num_rows, wishes.output, output)
        return
    rows = table.to_pylist()
    for user in dict.fromkeys(row.get("user") for row in rows):
        chosen = [row for row in rows if row.get("user") == user]
        names = [name for name in ("rank", "item", "title", "score") if name in chosen[0]]
        cells = [[f"{row[name]:.4f}" if name == "score" else str(row[name]) for name in names] for row in chosen]
        output.show(list_table(names, cells, title="for this history" if user is None else f"user {user}"))
    if not rows:
        output.note("there is nothing to recommend: no user is left, or every allowed item is excluded or seen")
    output.result({"recommendations": rows})


def _told(rows: int, path: str, output: Output) -> None:
    output.report(f"{rows:,} rows written to {path}")
    output.result({"file": path, "rows": rows})
