"""Files whose values have types: JSON lines and Parquet."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, final

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from topnrank.data.readers.files import DataFile, first_line, io_errors
from topnrank.errors import DataError
from topnrank.io.paths import RemotePath

_SAMPLE_LINES = 100
_BLOCK_BYTES = 1 << 20
_LONGEST_KEY = 80
_KEY = re.compile(rb'"([^"\\]{1,64})"\s{0,8}:')
"""What may be a key of an object; longer ones name no column of ours."""


@final
@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file."""

    file: DataFile

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The top-level columns."""
        with self._errors(), self._open() as content:
            return tuple(content.schema_arrow.names)

    def table(self, roles: Mapping[str, str]) -> pa.Table:
        """The columns to use, with the types they have in the file."""
        with self._errors(), self._open() as content:
            table = content.read(columns=list(roles.values()))
        for name, column in zip(table.column_names, table.columns, strict=True):
            try:
                column.validate(full=True)  # Arrow does not check that text is UTF-8
            except pa.ArrowException:
                raise DataError(
                    f"{self.file.name}, column {name!r}: holds bytes that are not UTF-8 text; write it as UTF-8"
                ) from None
        return table

    def describe_row(self, row: int) -> str:
        """Describes a 0-based row of the table."""
        return f"{self.file.name}, row {row + 1}"

    def _open(self) -> pq.ParquetFile:
        path = self.file.path
        if isinstance(path, RemotePath):
            return pq.ParquetFile(path.open(), pre_buffer=True)  # few large requests instead of many small ones
        return pq.ParquetFile(path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Reports errors of a remote file system as such, all others as a damaged file."""
        path = self.file.path
        try:
            with path.errors() if isinstance(path, RemotePath) else nullcontext():
                yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:  # the last for names of columns
            raise DataError(
                f"{self.file.name}: is not a Parquet file, or a truncated or damaged one ({first_line(problem)});"
                " fetch or write it again"
            ) from None


@final
@dataclass(frozen=True)
class JsonFile:
    """A file with one JSON object on each line."""

    file: DataFile

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The keys of all objects, those of the first ones first."""
        return tuple(dict.fromkeys([*(key for _, item in self._sample for key in item), *self._later_names()]))

    def _later_names(self) -> list[str]:
        """Keys that no object of the sample has: a column may begin anywhere."""
        if len(self._sample) < _SAMPLE_LINES:
            return []
        known = {key for _, item in self._sample for key in item}
        later: set[bytes] = set()
        with io_errors(self.file.name, self.file.compression), io.BufferedReader(self.file.open()) as stream:
            held = b""
            while block := stream.read(_BLOCK_BYTES):
                later |= set(_KEY.findall(held + block))
                held = block[-_LONGEST_KEY:]
        wanted = {key.decode(errors="replace") for key in later} - known
        if not wanted:
            return []
        return sorted(wanted & {key for _, item in self._objects() for key in item})  # keys of nested objects are none

    def table(self, roles: Mapping[str, str]) -> pa.Table:
        """The columns to use: text is text, numbers are integers where the first lines have integers only."""
        kinds: dict[str, str] = {}
        for line, item in self._sample:
            self._check_kinds(line, item, roles, kinds)
        schema = pa.schema([(name, self._type(role, name, kinds)) for role, name in roles.items()])
        options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        with io_errors(self.file.name, self.file.compression), self.file.open() as stream:
            try:
                table = pa.json.read_json(stream, parse_options=options)
                table.validate(full=True)  # Arrow's JSON reader does not check that text is UTF-8
            except pa.ArrowInvalid as problem:
                raise self._explained(roles, problem) from None
        return table

    def describe_row(self, row: int) -> str:
        """Describes a 0-based row of the table by its line, counted from 1."""
        with io_errors(self.file.name, self.file.compression):
            line, _ = next(islice(self._lines(), row, None))
        return f"{self.file.name}, line {line}"

    @cached_property
    def _sample(self) -> list[tuple[int, dict[str, Any]]]:
        with io_errors(self.file.name, self.file.compression):
            return list(islice(self._objects(), _SAMPLE_LINES))

    def _type(self, role: str, name: str, kinds: Mapping[str, str]) -> pa.DataType:
        if kinds.get(name) == "text":
            return pa.string()
        values = [item.get(name) for _, item in self._sample]
        integers = role not in ("rating", "weight") and not any(isinstance(value, float) for value in values)
        return pa.int64() if integers else pa.float64()

    def _explained(self, roles: Mapping[str, str], problem: Exception) -> DataError:
        """The error of the first bad line; Arrow names no lines."""
        kinds: dict[str, str] = {}
        try:
            for line, item in self._objects():
                self._check_kinds(line, item, roles, kinds)
        except DataError as found:
            return found
        return DataError(f"{self.file.name}: cannot be read as JSON lines ({first_line(problem)}); fix the file")

    def _check_kinds(self, line: int, item: Mapping[str, Any], roles: Mapping[str, str], kinds: dict[str, str]) -> None:
        """Each column holds text, or numbers, or nothing; `kinds` remembers which of the first two."""
        for name in roles.values():
            value = item.get(name)
            if value is None:
                continue
            kind = _kind(value)
            if kind is None or kinds.setdefault(name, kind) != kind:
                rule = f"must be {kinds.get(name, 'text or a number')}" + (" as before" if name in kinds else "")
                raise DataError(
                    f"{self.file.name}, line {line}, column {name!r}: {rule}, got {json.dumps(value)[:60]};"
                    " write all values of a column alike"
                )

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and object of each line."""
        for number, line in self._lines():
            try:
                item = json.loads(line)
            except UnicodeDecodeError as problem:
                byte = problem.object[problem.start]
                raise self._error(number, f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8") from None
            except RecursionError:
                raise self._error(number, "is nested too deeply; write one plain object on each line") from None
            except ValueError as problem:
                raise self._error(number, f"must be a JSON object ({problem}); write one object on each line") from None
            if not isinstance(item, dict):
                raise self._error(number, f"must be a JSON object, got {_shown(line)}; write one object on each line")
            yield number, item

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Number and text of each line that is not blank."""
        with io.BufferedReader(self.file.open()) as stream:  # Arrow's streams have no lines
            lines = enumerate(stream, start=1)
            yield from ((number, line) for number, line in lines if line.strip())

    def _error(self, line: int, what: str) -> DataError:
        return DataError(f"{self.file.name}, line {line}: {what}")


def _kind(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
