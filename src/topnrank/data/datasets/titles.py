"""Titles of a data set's items."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from topnrank.data.datasets.registry import TitlesFile
from topnrank.data.readers.files import first_line, io_errors
from topnrank.errors import DataError


def titles_of_text(path: Path, layout: TitlesFile) -> dict[int, str]:
    """Item and title from the first two columns of a text file."""
    titles: dict[int, str] = {}
    for line, fields in _records(path, layout):
        if len(fields) < 2 or not fields[0].isdecimal():
            raise DataError(
                f"{path}, line {line}: must begin with an item number and a title separated by {layout.separator!r}, got"
                f" {layout.separator.join(fields)[:60]!r}; remove the file and fetch it again"
            )
        titles[int(fields[0])] = fields[1]
    return titles


def titles_of_parquet(path: Path) -> dict[int, str]:
    """Columns item and title; a column year, where there is one, goes behind the title as MovieLens writes it."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({first_line(error)}); write it again") from None
    if not {"item", "title"} <= set(table.column_names):
        raise DataError(f"{path}: needs the columns item and title, got {table.column_names}; write it again")
    rows = table.to_pylist()
    return {int(row["item"]): f"{row['title']} ({row['year']})" if row.get("year") else row["title"] for row in rows}


def _records(path: Path, layout: TitlesFile) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields; only files with commas have quotes around fields."""
    try:
        with io_errors(str(path)), path.open(encoding=layout.encoding, newline="") as lines:
            if layout.separator == ",":
                reader = csv.reader(lines)
                records = ((reader.line_num, fields) for fields in reader)
            else:
                records = ((n, line.rstrip("\r\n").split(layout.separator)) for n, line in enumerate(lines, start=1))
            if layout.has_header:
                next(records, None)
            yield from ((number, fields) for number, fields in records if fields and fields != [""])
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not {layout.encoding} text ({error.reason}); fetch it again") from None
