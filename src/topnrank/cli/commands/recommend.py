"""`topnrank recommend`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank.cli.commands.recommend_options import ItemFilters, OutputOptions, TargetUsers
from topnrank.cli.files import require_writable, table_format, titled, titles_of, write_batches, write_table
from topnrank.cli.options import Printing, parse_history, with_options
from topnrank.cli.output import Output, list_table
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model


@with_options
def recommend(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'topnrank train' saved.")],
    audience: TargetUsers,
    wishes: OutputOptions,
    limits: ItemFilters,
    printing: Printing,
) -> None:
    """Print or write the N best items for users.

    For some users, for all users, or for users never seen. Items a user was trained on are left out unless --keep-seen
    is given. Scores can be compared within a user only.

    \b
    Examples:
      topnrank recommend movies.safetensors --user 42 --titles movies.csv
      topnrank recommend movies.safetensors --history "318=5,858=4,4896=1"
      topnrank recommend movies.safetensors --histories new_users.csv -o new.parquet
      topnrank recommend movies.safetensors --all -n 20 -o top20.parquet
      topnrank recommend movies.safetensors --all --groups genres.csv --max-per-group 3 -o mixed.parquet
    """
    import topnrank as tnr

    output = printing.output()
    audience.check()
    _check_target(audience, wishes)
    model = tnr.load(model_file)
    titles = titles_of(wishes.titles, model)
    arguments = {**wishes.arguments(), **limits.arguments()}
    if audience.history is not None:
        table = model.recommend(history=parse_history(audience.history), **arguments)
        _deliver(titled(table, titles), wishes, output)
        return
    if audience.histories is not None:
        arguments["histories"] = tnr.read(audience.histories)
        _tell_skipped(model, arguments, output)
    users = audience.ids(model, wishes.unknown, output)
    same_type = users is None or users.dtype == model.user_ids_.dtype
    if wishes.output is not None and same_type:
        _told(_stream(model, users, titles, wishes.output, arguments), wishes.output, output)
    else:  # to the terminal, or with an id that is none of the model's type, which a streamed file has no column for
        _deliver(titled(model.recommend(users, **arguments), titles), wishes, output)


def _tell_skipped(model: "Model", arguments: dict[str, Any], output: Output) -> None:
    """Rows of histories that are left out are never left out silently."""
    data = arguments["histories"]
    strange = model.item_map.index(data.items.ids) < 0
    if arguments["unknown_items"] == "skip" and strange.any():
        rows = int(strange[data.indices].sum())
        names = ", ".join(map(str, data.items.ids[strange][:5]))
        output.note(
            f"{rows} of {len(data)} rows of the histories are of items the model does not know, such as {names}"
        )


def _check_target(audience: TargetUsers, wishes: OutputOptions) -> None:
    if wishes.output is not None:
        table_format(wishes.output)
        require_writable(wishes.output)
    elif audience.all:
        raise ParameterError("--all writes to a file: add --output FILE.parquet (or .csv, .jsonl)")


def _stream(model: "Model", users: Any, titles: dict[str, str] | None, path: str, arguments: dict[str, Any]) -> int:
    """Writes block by block; formats other than Parquet, and titles, are made from a Parquet file beside the target."""
    from topnrank.io.paths import parse_path

    if table_format(path) == ".parquet" and titles is None:
        return model.recommend_to(path, users, **arguments)
    target = parse_path(path)
    beside = target.parent if isinstance(target, Path) else None
    with tempfile.TemporaryDirectory(prefix=".topnrank-", dir=beside) as folder:
        raw = Path(folder) / "all.parquet"
        rows = model.recommend_to(raw, users, **arguments)
        batches = _batches(raw, titles)
        write_batches(path, next(batches).schema, batches)
    return rows


def _batches(path: Path, titles: dict[str, str] | None) -> "Iterator[pa.RecordBatch]":
    """An empty batch that tells the schema, then those of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        empty = titled(file.schema_arrow.empty_table(), titles)
        yield pa.RecordBatch.from_pylist([], schema=empty.schema)
        for batch in file.iter_batches():
            yield from titled(pa.table(batch), titles).to_batches()


def _deliver(table: "pa.Table", wishes: OutputOptions, output: Output) -> None:
    """A table that fits in memory: to the file, or one list for each user."""
    if wishes.output is not None:
        write_table(wishes.output, table)
        _told(table.num_rows, wishes.output, output)
        return
    rows = table.to_pylist()
    lists: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        lists.setdefault(row.get("user"), []).append(row)
    for user, chosen in lists.items():
        names = [name for name in ("rank", "item", "title", "score") if name in chosen[0]]
        cells = [[f"{row[name]:.4f}" if name == "score" else str(row[name]) for name in names] for row in chosen]
        output.show(list_table(names, cells, title="for this history" if user is None else f"user {user}"))
    if not rows:
        output.note(
            "there is nothing to recommend: no user is left, or every item is excluded, seen or below the score"
        )
    output.result({"recommendations": rows})


def _told(rows: int, path: str, output: Output) -> None:
    output.report(f"{rows:,} rows written to {path}")
    output.result({"file": path, "rows": rows})
