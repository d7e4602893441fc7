"""Reading interactions from files."""

import os
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topnrank._checks import one_of
from topnrank._typing import Int64Array
from topnrank.data.columns import is_text
from topnrank.data.frames import Columns
from topnrank.data.interactions import Interactions
from topnrank.data.readers.files import FORMATS, DataFile, find_files, first_line
from topnrank.data.readers.records import JsonFile, ParquetFile
from topnrank.data.readers.request import Request
from topnrank.data.readers.text import TextFile, open_text
from topnrank.errors import DataError


def read(
    path: str | os.PathLike[str],
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    type: str | int | None = None,
    weight: str | int | None = None,
    timestamp: str | int | None = None,
    format: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    duplicates: str = "error",
    keep_order: bool = False,
) -> Interactions:
    """Interactions from a file, a folder of part files or a glob such as "logs/*.csv.gz", here, on HDFS or on S3.

    Parameters
    ----------
    path
        CSV, TSV or other text in columns, MovieLens "::" files, JSON lines (each also as .gz or .zst), or Parquet.
        Part files must have the same columns; folders named as in "type=buy" add a column. Addresses such as
        "hdfs://namenode:8020/logs" (extra `remote`) and "s3://bucket/logs" are read as local paths are.
    user, item, rating, type, weight, timestamp
        Names of columns, or positions from 0. Columns that are not given are found by their usual names.
        A text file without a header is taken as user, item, rating, timestamp if it looks like that; once a position
        is given, only the columns given are used.
    format
        "csv", "tsv", "dat", "jsonl" or "parquet"; by default detected from the name and the first bytes.
    separator
        The separator of the columns of a text file; by default detected from its first lines.
    header
        Whether the first line of a text file names the columns; by default detected from that line.
    duplicates
        What to do with rows of one user and item: "error", "last", "sum", "max" or "count", see `Interactions.from_table`.
    keep_order
        Whether the order of the rows says which of a user's items of one moment came first; for `split_last(ties="file")`.

    Notes
    -----
    Ids in text files are integers if all of a column are written as integers are; one "007" keeps all of them text.
    Ids in JSON and Parquet files keep their type.
    """
    roles = {"user": user, "item": item, "rating": rating, "type": type, "weight": weight, "timestamp": timestamp}
    request = Request(roles, separator=separator, header=header)
    return read_rows(path, request, format=format, duplicates=duplicates, keep_order=keep_order).data


@dataclass(frozen=True)
class Reading:
    """What was read, and what was left."""

    data: Interactions
    unused: tuple[str, ...]
    """The columns of the first file that have no role."""


def read_rows(
    path: str | os.PathLike[str],
    request: Request,
    *,
    format: str | None = None,
    duplicates: str = "error",
    keep_order: bool = False,
) -> Reading:
    """As `read`; it also tells which columns were not used."""
    if format is not None:
        one_of("format", format, FORMATS)
    with ExitStack() as copies:
        parts = [_read_part(file, request) for file in find_files(path, format, copies)]
        columns, sources = parts[0].columns, [part.source for part in parts]
        starts = [0, *accumulate(part.table.num_rows for part in parts)]
        if starts[-1] == 0:
            raise DataError(f"{path}: has columns but no rows; at least one interaction is needed")

        def describe_row(row: int) -> str:
            number = bisect_right(starts, row) - 1
            return sources[number].describe_row(row - starts[number])

        unused = tuple(name for name in parts[0].names if name not in columns.names())
        given = [_combined(parts)]
        del parts  # the columns are freed one by one, see `from_table`
        data = Interactions.from_table(
            given.pop(),
            columns,
            source=str(path),
            duplicates=duplicates,
            locate=describe_row,
            keep_order=keep_order,
        )
    return Reading(data, unused)


class OpenFile(Protocol):
    """A file opened by the reader of its format."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns there are."""

    def table(self, roles: Mapping[str, str]) -> pa.Table:
        """The columns to use, their names by role."""

    def describe_row(self, row: int) -> str:
        """Describes a 0-based row of the table, such as "ratings.csv, line 18"."""


@dataclass(frozen=True)
class _Part:
    """The rows of one file."""

    file: DataFile
    source: OpenFile
    names: tuple[str, ...]
    """All columns there are, also those of the folder's name."""
    columns: Columns
    table: pa.Table


def _read_part(file: DataFile, request: Request) -> _Part:
    source: OpenFile
    if file.format == "parquet":
        source = ParquetFile(file)
    else:
        source = JsonFile(file) if file.format == "jsonl" else open_text(file, request)
    partitions = {name: value for name, value in file.partitions.items() if name not in source.names}
    names = (*source.names, *partitions)
    columns = request.resolve(names, file.name)
    table = source.table({role: name for role, name in asdict(columns).items() if name in source.names})
    for name, value in partitions.items():
        if name in columns.names():
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
    return _Part(file, source, names, columns, table)


def _combined(parts: list[_Part]) -> pa.Table:
    """All rows in one table; an error that names the first file which does not fit the first one."""
    first, tables = parts[0], [part.table for part in parts]
    all_text = all(isinstance(part.source, TextFile) for part in parts)
    if all_text:
        # Columns that are text in one file are text in all: then the values, not the types, show which row is wrong.
        text = {field.name: field for table in tables for field in table.schema if is_text(field.type)}
        tables = [table.cast(pa.schema([text.get(field.name, field) for field in table.schema])) for table in tables]
    tables = _plain_text(tables) if len(tables) > 1 else tables
    for part, table in zip(parts, tables, strict=True):
        if part.columns != first.columns:
            raise DataError(
                f"{part.file.name}: the columns must be those of {first.file.name}, {first.columns.names()},"
                f" got {part.columns.names()}; read the files one by one or choose them with a glob"
            )
        try:
            pa.unify_schemas([tables[0].schema, table.schema], promote_options="permissive")
        except pa.ArrowException as problem:
            raise DataError(
                f"{part.file.name}: the columns must have the types of those of {first.file.name} ({problem});"
                " write the files alike"
            ) from None
    try:
        combined = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        raise DataError(
            f"{first.file.path.parent}: values of some part files do not fit the types of the others "
            f"({first_line(problem)}); write the files alike"
        ) from None
    for name in (first.columns.user, first.columns.item) if all_text else ():
        if is_text(combined[name].type):
            ids = _integers_if_written_so(combined[name])
            combined = combined.set_column(combined.column_names.index(name), name, ids)
    return combined


def _plain_text(tables: list[pa.Table]) -> list[pa.Table]:
    """Text without dictionaries where some tables have the column so; dates as date-times where some have them so."""
    fields = [field for table in tables for field in table.schema]
    decoded = {f.name for f in fields if not pa.types.is_dictionary(f.type)}
    timed = {f.name: f.type for f in fields if pa.types.is_timestamp(f.type)}

    def kind(field: pa.Field) -> pa.DataType:
        if pa.types.is_dictionary(field.type) and field.name in decoded:
            return field.type.value_type
        return timed.get(field.name, field.type) if pa.types.is_date(field.type) else field.type

    return [table.cast(pa.schema([field.with_type(kind(field)) for field in table.schema])) for table in tables]


def _integers_if_written_so(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text ids as int64 if each is written as its integer prints: "7", not "007" or "+7"; else as they are."""
    if ids.null_count or pc.any(pc.match_substring(ids, "x", ignore_case=True)).as_py():
        return ids  # Arrow would take 0x1F for 31
    try:
        integers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    # No integer is written shorter than it prints, so equal totals mean that all are written as they print.
    written = pc.sum(pc.binary_length(ids)).as_py()
    return integers if written == _printed_length(integers.to_numpy()) else ids


def _printed_length(integers: Int64Array) -> int:
    """How many characters all of the integers take together."""
    size = np.abs(integers)
    largest = int(size.max(initial=0))
    further_digits = sum(int(np.count_nonzero(size >= 10**k)) for k in range(1, len(str(largest))))
    return len(integers) + int(np.count_nonzero(integers < 0)) + further_digits
