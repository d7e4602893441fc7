"""Tables written to files, atomically, and the small files that commands read beside the data."""

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import DataError, OutputError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model

    Batches = Iterable[pa.RecordBatch]
    Writer = Callable[[Path, pa.Schema, Batches], None]


# ----------------------------------------------------------------------------------------------------
# Titles of items beside their ids.


def titles_of(path: str | None, model: "Model") -> dict[str, str] | None:
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


def titled(table: "pa.Table", titles: dict[str, str] | None, of: str = "item") -> "pa.Table":
    """With a column title of the items in the column `of`; empty where there is none."""
    import pyarrow as pa

    if titles is None:
        return table
    column = pa.array([titles.get(str(item), "") for item in table[of].to_pylist()], pa.string())
    return table.append_column("title", column)


FORMATS = (".parquet", ".csv", ".jsonl")
"""What tables can be written as, told by the end of the file's name."""
TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq")
"""Small files that have columns; others are lines of text."""


def table_format(path: str) -> str:
    """The format of the file to write; an error when its name does not tell."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OutputError(f"{path}: the name must end in {', '.join(FORMATS)}, which tells the format; rename it")
    return suffix


def require_writable(path: str) -> None:
    """Fails now rather than after the work when no file can be made at `path`."""
    from topnrank.io.paths import RemotePath, parse_path

    target = parse_path(path)
    if isinstance(target, RemotePath):
        target.require_writable()
        return
    if target.is_dir():
        raise OutputError(f"{path}: is a folder; give the name of a file")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            return
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); create its folder or choose another place"
        ) from None


def write_table(path: str, table: "pa.Table") -> None:
    """Writes a table in the format that the name of the file tells."""
    write_batches(path, table.schema, table.to_batches())


def write_batches(path: str, schema: "pa.Schema", batches: "Batches") -> None:
    """As `write_table`, batch by batch."""
    from topnrank.io.atomic import write_atomically

    writer = _WRITERS[table_format(path)]
    write_atomically(path, lambda temporary: writer(temporary, schema, batches))


def _write_parquet(path: Path, schema: "pa.Schema", batches: "Batches") -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(path: Path, schema: "pa.Schema", batches: "Batches") -> None:
    from pyarrow.csv import CSVWriter

    with CSVWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_jsonl(path: Path, schema: "pa.Schema", batches: "Batches") -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


_WRITERS: "dict[str, Writer]" = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}


def read_lines(path: str) -> list[str]:
    """The lines of a text file that are not blank, without white space around them."""
    return [line.strip() for line in _text(path).splitlines() if line.strip()]


def read_columns(path: str, needed: Sequence[str], optional: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """The names and, row by row as text, the values of the columns `needed`, and of the `optional` ones that are there."""
    header, rows = _parquet_rows(path) if Path(path).suffix.lower() in (".parquet", ".pq") else _text_rows(path)
    missing = [name for name in needed if name not in header]
    if missing:
        raise DataError(
            f"{path}: needs a column {' and a column '.join(missing)}, got {', '.join(header) or 'nothing'}; name the "
            "columns in the first line"
        )
    _require_full(path, header, rows)
    names = [*needed, *(name for name in optional if name in header)]
    places = [header.index(name) for name in names]
    return names, [["" if row[place] is None else str(row[place]) for place in places] for row in rows]


def read_titles(path: str) -> dict[str, str]:
    """Titles by item id as text: the columns item and title, else the first two, of a CSV, TSV or Parquet file."""
    header, rows = _parquet_rows(path) if Path(path).suffix.lower() in (".parquet", ".pq") else _text_rows(path)
    if len(header) < 2:
        raise DataError(f"{path}: titles need two columns, item and title, got {header}; check the separator")
    item, title = (header.index("item"), header.index("title")) if {"item", "title"} <= set(header) else (0, 1)
    _require_full(path, header, rows)
    return {str(row[item]): str(row[title]) for row in rows}


def _require_full(path: str, header: list[str], rows: list[list[Any]]) -> None:
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise DataError(f"{path}, row {number}: {len(header)} fields are needed, got {len(row)}; mend the row")


def _text_rows(path: str) -> tuple[list[str], list[list[str]]]:
    separator = "\t" if Path(path).suffix.lower() in (".tsv", ".tab") else ","
    rows = [row for row in csv.reader(io.StringIO(_text(path)), delimiter=separator) if row]
    return (rows[0], rows[1:]) if rows else ([], [])


def _parquet_rows(path: str) -> tuple[list[str], list[list[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(_bytes(path)))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: cannot be read as Parquet ({reason}); write it again") from None
    return table.column_names, [list(row.values()) for row in table.to_pylist()]


def _text(path: str) -> str:
    try:
        return _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from None


def _bytes(path: str) -> bytes:
    from topnrank.io.paths import parse_path

    try:
        return parse_path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None
