"""Files as DataFrames by the rules of `topnrank.read`: the driver looks at the first bytes of each, executors read.

    files = SparkFiles.find("hdfs://host:9000/ratings", Request(...))    UnsupportedBySparkError where Spark should not read
    data = files.interactions(session, "error")                          rows never come to the driver

Which files a folder or glob means, how text is laid out and which columns are used is found by the local reader's own code.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as kinds

from topnrank.data.frames import Columns
from topnrank.data.readers.files import DataFile, find_files
from topnrank.data.readers.request import Request
from topnrank.data.readers.text import NULLS, TextFile, open_text
from topnrank.errors import DataError
from topnrank.io.paths import RemotePath
from topnrank.spark.data.columns import SOURCE, column_of
from topnrank.spark.data.interactions import SparkInteractions

_PRUNING = "spark.sql.csv.parser.columnPruning.enabled"
_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"
"""An integer as it prints; those of 19 digits may still be too large."""
_REPLACED = "\ufffd"
"""What Spark makes of bytes that are not UTF-8."""


class UnsupportedBySparkError(Exception):
    """Why Spark would not read files as the local reader does; not an error: they are read in the old way."""


@dataclass(frozen=True)
class SparkFiles:
    """Files that Spark reads as the local reader would."""

    path: str
    files: tuple[DataFile, ...]
    request: Request
    layout: TextFile | None
    """Of text; None for Parquet"""

    @classmethod
    def find(cls, path: str, request: Request, format: str | None = None) -> "SparkFiles":
        """The files that `path` means."""
        if path.startswith(("s3://", "s3a://")):
            raise UnsupportedBySparkError("data on S3")
        files = tuple(find_files(path, format, None))
        found = {file.format for file in files}
        if "jsonl" in found or ("parquet" in found and len(found) > 1):
            raise UnsupportedBySparkError("JSON lines" if found == {"jsonl"} else "files of several formats")
        if any(file.partitions for file in files):
            raise UnsupportedBySparkError("columns in names of folders")
        if any(_unknown_compression(file) for file in files):
            raise UnsupportedBySparkError("text that is packed, but not as .gz")
        return cls(path, files, request, None if found == {"parquet"} else _layout(files, request))

    def interactions(self, session: SparkSession, duplicates: str) -> SparkInteractions:
        """The rows in blocks; what is wrong with them is a DataError that names the column and a value."""
        if duplicates == "last" and len(self.files) > 1:
            raise UnsupportedBySparkError("--duplicates last in several files, whose order Spark does not keep")
        try:
            with _whole_lines(session):
                frame, columns = self._parquet(session) if self.layout is None else self._text(session, self.layout)
                return SparkInteractions.from_frame(frame, columns, duplicates=duplicates)
        except DataError as problem:
            raise DataError(str(problem).replace(SOURCE, self.path, 1)) from None
        except (PySparkException, Py4JError) as problem:
            raise DataError(
                f"{self.path}: Spark cannot read it ({_reason(problem)}); fix the file, and check that every executor "
                "sees it under this path"
            ) from None

    def _parquet(self, session: SparkSession) -> tuple[DataFrame, Columns]:
        # merged, so that a column which one file lacks shows as empty values, not as a column that is left aside
        frame = session.read.option("mergeSchema", "true").parquet(*map(_address, self.files))
        return frame, self.request.resolve(frame.columns, self.path)

    def _text(self, session: SparkSession, layout: TextFile) -> tuple[DataFrame, Columns]:
        columns = self.request.resolve(layout.names, self.path)
        raw = _lines(session, self.files, layout)
        roles = {field.name: getattr(columns, field.name) for field in fields(columns)}
        used = {role: _text_of(f"c{layout.names.index(name)}") for role, name in roles.items() if name is not None}
        frame = raw.select(*(value.alias(role) for role, value in used.items()))
        frame = _with_integer_ids(frame)
        return frame.withColumnsRenamed({role: roles[role] for role in used}), columns


def _unknown_compression(file: DataFile) -> bool:
    """Spark tells by names what is packed, and knows gzip everywhere."""
    return file.compression is not None and not (file.compression == "gzip" and file.name.endswith(".gz"))


def _layout(files: tuple[DataFile, ...], request: Request) -> TextFile:
    """How all of the files are laid out; an error that names the first one which differs."""
    layouts = [open_text(file, request) for file in files]
    first = layouts[0]
    for one in layouts[1:]:
        if one.names != first.names:
            raise DataError(
                f"{one.file.name}: the columns must be those of {first.file.name}, {list(first.names)},"
                f" got {list(one.names)}; read the files one by one or choose them with a glob"
            )
        if (one.separator, one.header_lines > 0) != (first.separator, first.header_lines > 0):
            raise UnsupportedBySparkError("text files that are not laid out alike")
    time = request.resolve(first.names, first.file.name).timestamp
    if time is not None and not _begins_with_integer(first, time):
        raise UnsupportedBySparkError("times that are not integers")
    return first


def _begins_with_integer(layout: TextFile, name: str) -> bool:
    """Whether the first row has an integer there."""
    row = layout.first_row()
    return row is None or row[layout.names.index(name)].strip().lstrip("+-").isdecimal()


def _lines(session: SparkSession, files: tuple[DataFile, ...], layout: TextFile) -> DataFrame:
    """Every column as text, under the names c0, c1, ...; lines with too few or too many fields are errors."""
    plain = len(layout.separator.encode()) == 1
    schema = kinds.StructType([kinds.StructField(f"c{k}", kinds.StringType()) for k in range(len(layout.names))])
    reader = session.read.schema(schema).option("mode", "FAILFAST").option("sep", layout.separator)
    reader = reader.option("header", str(layout.header_lines > 0).lower())
    quote = '"' if plain else ""  # as in the local reader, where quotes mean nothing between long separators
    return reader.option("quote", quote).option("escape", '"').csv([_address(file) for file in files])


def _text_of(name: str) -> Column:
    """A column with null for the words that mean it; bytes that are not UTF-8 are an error: two ids could become one."""
    column = sf.col(name)
    bad = sf.raise_error(sf.concat(sf.lit("not UTF-8 text: "), column))
    return sf.when(column.contains(_REPLACED), bad).when(~column.isin(*NULLS), column)


def _with_integer_ids(frame: DataFrame) -> DataFrame:
    """Ids as integers if all of a column are written as integers are; one "007" keeps all of them text."""
    roles = ("user", "item")
    tests = [_is_integer(role).alias(role) for role in roles]
    found = frame.agg(*(sf.min(test).alias(role) for role, test in zip(roles, tests, strict=True))).first()
    assert found is not None
    for role in roles:
        if found[role]:
            frame = frame.withColumn(role, sf.col(role).cast("bigint"))
    return frame


def _is_integer(role: str) -> Column:
    fits = sf.expr(f"try_cast(`{role}` as bigint)").isNotNull()
    return sf.coalesce(column_of(role).rlike(_INTEGER) & fits, sf.lit(True))  # empty ones are told of later


def _address(file: DataFile) -> str:
    """The path as Hadoop takes it: with its scheme, and no character that would be a pattern."""
    path = str(file.path) if isinstance(file.path, RemotePath) else "file://" + os.path.abspath(file.path)
    return "".join("\\" + letter if letter in "\\*?[]{}" else letter for letter in path)


@contextmanager
def _whole_lines(session: SparkSession) -> Iterator[None]:
    """Lines are cut into all of their fields: of the used ones alone Spark does not notice that a line is too short."""
    before: Any = session.conf.get(_PRUNING)
    session.conf.set(_PRUNING, "false")
    try:
        yield
    finally:
        session.conf.set(_PRUNING, before)


def _reason(problem: Exception) -> str:
    """The line of Spark's error that names the cause."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = (line for line in lines if "MALFORMED" in line or "not UTF-8" in line)
    return next(causes, lines[0] if lines else type(problem).__name__)[:300]
