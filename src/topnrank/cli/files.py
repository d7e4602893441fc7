"""Tables written to files, atomically, and the small files that commands read: titles, groups, lists of ids."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model


# ----------------------------------------------------------------------------------------------------
# Writing.


TABLES = (".csv", ".tsv", ".tab", ".dat", ".parquet", ".pq")
"""Endings of the names of small files that have columns; others hold lines of text."""
PARQUET = (".parquet", ".pq")
_SAMPLE = 1 << 16
"""Characters by which the separator is found."""


def require_writable(path: str) -> None:
    """An error, before the work, when no file can be written at `path`."""
    from topnrank.io.atomic import output_error, require_file
    from topnrank.io.paths import RemotePath, parse_path

    target = parse_path(path)
    if isinstance(target, RemotePath):
        target.require_writable()
        return
    try:
        target = require_file(target)
        with tempfile.TemporaryFile(dir=target.parent):
            return
    except OSError as error:
        sentence = f"{path}: cannot be written ({error.strerror}); create its folder or choose another place"
        raise output_error(sentence, error, has_begun=False) from None


# ----------------------------------------------------------------------------------------------------
# Reading small files.


def read_lines(path: str) -> list[str]:
    """The lines of a text file that are not blank, stripped."""
    return [line.strip() for line in _text(path).splitlines() if line.strip()]


def read_columns(path: str, needed: Sequence[str], optional: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """The names and, row by row as text, the values of the columns `needed`, and of the `optional` ones that are there."""
    header, rows = _rows(path)
    missing = [name for name in needed if name not in header]
    if missing:
        raise DataError(
            f"{path}: needs a column {' and a column '.join(missing)}, got {', '.join(header) or 'nothing'}; name the "
            "columns in the first line"
        )
    names = [*needed, *(name for name in optional if name in header)]
    positions = [header.index(name) for name in names]
    return names, [["" if row[at] is None else str(row[at]) for at in positions] for row in rows]


def _rows(path: str) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns, and the rows, all of which have a field for each column."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        return _parquet_rows(path)
    from topnrank.data.readers.files import DataFile
    from topnrank.data.readers.text import likely_separator, records
    from topnrank.io.paths import parse_path

    text = _text(path)
    if not text.strip():
        return [], []
    kind = {".tsv": "tsv", ".tab": "tsv", ".dat": "dat"}.get(suffix, "csv")
    file = DataFile(parse_path(path), kind, None, b"", {})
    separator = likely_separator(io.StringIO(text[:_SAMPLE], None).readlines()[:-1] or [text], file)
    (_, header), *found = list(records(io.StringIO(text, None), separator, path))
    for number, (_, row) in enumerate(found, start=1):
        if len(row) != len(header):
            raise DataError(f"{path}, row {number}: {len(header)} fields are needed, got {len(row)}; fix the row")
    return header, [row for _, row in found]


def _parquet_rows(path: str) -> tuple[list[str], list[list[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(_bytes(path)))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: cannot be read as Parquet ({reason}); write it again") from None
    try:
        return table.column_names, [list(row.values()) for row in table.to_pylist()]
    except UnicodeDecodeError:
        raise DataError(f"{path}: holds bytes that are not UTF-8 text; write it as UTF-8") from None


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


# ----------------------------------------------------------------------------------------------------
# Titles of items.


def titles_of(path: str | None, model: "Model", columns: str | None = None) -> dict[str, str] | None:
    """Titles by item id as text, from a file of two or more columns, read as data are.

    `columns` names those of the item and the title, or gives their positions from 0: "movieId,title". Without it they are
    found by their usual names, else they are the first two; a first line that holds an item of the model names no columns.
    An error when there is no title for any item of the model.
    """
    if path is None:
        return None
    header, rows = _rows(path)
    if len(header) < 2:
        raise DataError(
            f"{path}: titles need two columns, item and title, got {header}; check the separator in the file"
        )
    known = {str(item) for item in model.item_ids_}
    if header[0] in known and Path(path).suffix.lower() not in PARQUET:
        header, rows = [str(position) for position in range(len(header))], [header, *rows]
    item, title = _title_columns(path, header, columns)
    titles = {str(row[item]): str(row[title]) for row in rows}
    if not known & titles.keys():
        raise DataError(
            f"{path}: has no title for any item of the model, whose items are such as {model.item_ids_[0]!r}; "
            f"give the titles of the items it was trained on, or name the columns with --title-columns ITEM,TITLE"
        )
    return titles


def _title_columns(path: str, header: list[str], columns: str | None) -> tuple[int, int]:
    """The positions of the columns of items and titles."""
    if columns is not None:
        names = [name.strip() for name in columns.split(",")]
        found = [header.index(n) if n in header else int(n) if n.isdecimal() else len(header) for n in names]
        if len(found) != 2 or max(found) >= len(header):
            shown = ", ".join(header)
            raise DataError(f"{path}: --title-columns needs ITEM,TITLE, two of the columns {shown}; got {columns!r}")
        return found[0], found[1]
    from topnrank.data.frames import USUAL_NAMES, USUAL_TITLES, usual_column

    title = usual_column(header, USUAL_TITLES)
    item = usual_column(header, USUAL_NAMES["item"], title)
    return (0, 1) if item is None or title is None else (header.index(item), header.index(title))


def titled(table: "pa.Table", titles: dict[str, str] | None, of: str = "item") -> "pa.Table":
    """The table with a column `title` for the items in the column `of`; empty where an item has none."""
    import pyarrow as pa

    if titles is None:
        return table
    column = pa.array([titles.get(str(item), "") for item in table[of].to_pylist()], pa.string())
    return table.append_column("title", column)
