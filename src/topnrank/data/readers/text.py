"""Text in columns: CSV, TSV, MovieLens "::" files and the like.

Arrow parses the file. What Arrow cannot find out (the separator, whether there is a header, which line is wrong) is found by
parsing the first lines, or after a failure all of them, with Python's csv module.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from topnrank.data.readers.files import DataFile, first_line, io_errors
from topnrank.data.readers.request import Request
from topnrank.errors import DataError

_BLOCK_BYTES = 1 << 18
"""Bytes that are surveyed at a time: small enough for the processor's cache, since each block is searched several times."""
_NEWLINE, _RETURN, _ZERO, _POINT = b"\n\r0."
_SIGNS = (b"+", b"-", b" ", b"\t")
"""What plain integers do not begin or end with; the blanks are those that Arrow skips in numbers."""

_FIRST_SEPARATOR = {"csv": ",", "tsv": "\t", "dat": "::"}
_SEPARATORS = (",", "\t", ";", "|", "::")
_HEADERLESS = ("user", "item", "rating", "timestamp")
_LARGEST_RATING, _SMALLEST_TIMESTAMP = 1000, 100_000_000
"""Larger numbers are not ratings, smaller ones not timestamps."""

_TYPE_OF_ROLE = {
    "user": pa.string(),
    "item": pa.string(),
    "type": pa.string(),
    "rating": pa.float64(),
    "weight": pa.float64(),
}

NULLS = ("", "NULL", "null", "NaN", "nan", "NA", "N/A", "<NA>", "None", "\\N")
"""Fields that mean a missing value."""
_UNIT_SEPARATOR = b"\x1f"
_BOM = b"\xef\xbb\xbf"
_LONE_RETURN = re.compile(rb"\r(?!\n)")

csv.field_size_limit(
    2**31 - 1
)  # a long review is a field, too: the module's own limit of 128 kB is for the whole process
_NANOSECONDS_WRAP = int(pa.__version__.partition(".")[0]) < 26
"""Whether Arrow's parser of times may take the year 3000 for one before 1970, as version 18 does and 26 does not."""
_SAMPLE_RECORDS = 20
_ARROW_BLOCK_BYTES = 4 * 2**20
"""Bytes that Arrow parses at a time: its default of 1 MiB takes a third more memory and is no faster."""


@dataclass(frozen=True)
class Survey:
    """What is in the lines after the header."""

    quotes: int = 0
    lines: int = 0
    """Counted only where there are quotes."""
    plain: bool = False
    """Whether no field begins or ends unlike an integer: with a sign, a blank, or a zero before further characters. Then
    a column that Arrow reads as integers holds nothing but integers written as they print."""


@final
@dataclass(frozen=True)
class TextFile:
    """A text file whose separator and column names are known."""

    file: DataFile
    separator: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool = True

    def table(self, roles: Mapping[str, str]) -> pa.Table:
        """The columns to use: ids and types as text, ratings and weights as numbers, timestamps as Arrow detects them."""
        types = {name: _TYPE_OF_ROLE[role] for role, name in roles.items() if role in _TYPE_OF_ROLE}
        if not self.has_rows:
            return pa.table({name: pa.array([], types.get(name, pa.null())) for name in roles.values()})
        with io_errors(self.file.name, self.file.compression):
            seen = self._survey()
            table = self._parse_integer_ids(roles, types) if seen.plain else None
            try:
                table = self._parse(roles, types, has_quotes=seen.quotes > 0) if table is None else table
            except pa.ArrowInvalid:
                # A row is malformed or a value is not a number. As text only the first fails; the second is then found
                # and reported by the checks that all data pass.
                table = self._parse_as_text(roles, has_quotes=seen.quotes > 0)
            if _NANOSECONDS_WRAP and "timestamp" in roles and table[roles["timestamp"]].type == pa.timestamp("ns"):
                table = self._parse(roles, types | {roles["timestamp"]: pa.string()}, has_quotes=seen.quotes > 0)
            if seen.quotes % 2 == 1 or (seen.quotes and seen.lines > table.num_rows):
                # Some quoted field spans several lines: on purpose, or a quote that is not closed has swallowed rows,
                # which Arrow accepts.
                self._check_records(roles)
        return table

    def first_row(self) -> list[str] | None:
        """The fields of the first row, if the head of the file has one."""
        lines = io.StringIO(self.file.head.decode("utf-8-sig", errors="surrogateescape"), newline="")
        found = records(lines, self.separator, self.file.name)
        return next((fields for line, fields in found if line > self.header_lines), None)

    def describe_row(self, row: int) -> str:
        """Describes a 0-based row of the table by its line, counted from 1."""
        with io_errors(self.file.name, self.file.compression):
            line, _ = next(islice(self._rows(), row, None))
        return f"{self.file.name}, line {line}"

    def _survey(self) -> Survey:
        """Searches the whole file for quotes and for fields that are not plain integers."""
        if len(self.separator.encode()) > 1:
            self._refuse_unit_separators()
            return Survey()  # where the separator has several bytes, quotes mean nothing
        plain, before = True, b"\n"
        for block in self._blocks():
            if b'"' in block:
                quotes, lines, last = 0, 0, b"\n"
                for part in self._blocks():
                    quotes, lines, last = quotes + part.count(b'"'), lines + part.count(b"\n"), part[-1:]
                return Survey(quotes, lines + (last != b"\n"))
            text = before + block
            plain = plain and _is_plain(text, self.separator.encode())
            before = text[-2:]
        return Survey(plain=plain and _is_plain(before + b"\n", self.separator.encode()))

    def _refuse_unit_separators(self) -> None:
        """Arrow gets this byte in place of a separator of several: in the data it would cut a field."""
        line = 1 + self.header_lines
        for block in self._blocks():
            if (place := block.find(_UNIT_SEPARATOR)) >= 0:
                line += block[:place].count(b"\n")
                raise DataError(f"{self.file.name}, line {line}: holds the control character 0x1f; remove it")
            line += block.count(b"\n")

    def _blocks(self) -> Iterator[bytes]:
        """The bytes after the header, block by block, without a byte order mark; with the header where CR ends lines."""
        header_lines = 0 if _LONE_RETURN.search(self.file.head) else self.header_lines
        with io.BufferedReader(self.file.open()) as stream:
            for _ in range(header_lines):
                stream.readline()
            block = stream.read(_BLOCK_BYTES)
            yield block if header_lines else block.removeprefix(_BOM)
            while block := stream.read(_BLOCK_BYTES):
                yield block

    def _parse_integer_ids(self, roles: Mapping[str, str], types: dict[str, pa.DataType]) -> pa.Table | None:
        """The table with ids as integers, in half the time that text takes; None if they are not integers.

        First all numbers as narrow as they are kept, then ids of 64 bits and other numbers as wide as Arrow takes them.
        """
        ids = [roles[role] for role in ("user", "item") if role in roles]
        first = dict(zip(self.names, self.first_row() or next(self._rows(), (0, []))[1], strict=False))
        if not all(first.get(name, "").isdecimal() for name in ids):
            return None
        numbers = {name: pa.float32() for name, kind in types.items() if kind == pa.float64()}
        if "timestamp" in roles and first.get(roles["timestamp"], "").isdecimal():
            numbers[roles["timestamp"]] = pa.int64()  # Arrow's detection takes twice the time and memory
        for kinds in (numbers | dict.fromkeys(ids, pa.int32()), dict.fromkeys(ids, pa.int64())):
            try:
                table = self._parse(roles, types | kinds, has_quotes=False)
            except pa.ArrowInvalid:
                continue
            return table if not any(table[name].null_count for name in ids) else None
        return None

    def _parse_as_text(self, roles: Mapping[str, str], has_quotes: bool) -> pa.Table:
        try:
            return self._parse(roles, dict.fromkeys(roles.values(), pa.string()), has_quotes)
        except pa.ArrowInvalid as problem:
            self._check_records(roles)
            raise DataError(f"{self.file.name}: cannot be read as text in columns ({first_line(problem)})") from None

    def _parse(self, roles: Mapping[str, str], types: Mapping[str, pa.DataType], has_quotes: bool) -> pa.Table:
        plain = len(self.separator.encode()) == 1
        with self.file.open() as stream:
            return pa.csv.read_csv(
                stream if plain else _Replacing(stream, self.separator.encode()),
                read_options=pa.csv.ReadOptions(
                    column_names=self.names, skip_rows=self.header_lines, block_size=_ARROW_BLOCK_BYTES
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.separator if plain else _UNIT_SEPARATOR.decode(),
                    quote_char='"' if plain else False,
                    newlines_in_values=has_quotes,  # costs a third of the speed
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(roles.values()),
                    column_types=types,
                    null_values=NULLS,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )

    def _check_records(self, roles: Mapping[str, str]) -> None:
        """Raise the error of the first record with bad bytes, stray quotes or a wrong number of fields."""
        used = [self.names.index(name) for name in roles.values()]
        for line, fields in self._rows(strict=True):
            if len(fields) != len(self.names):
                raise DataError(
                    f"{self.file.name}, line {line}: must have {len(self.names)} fields separated by"
                    f" {self.separator!r} as the first line has, got {len(fields)}; fix the line or quote its fields"
                )
            _check_utf8((fields[position] for position in used), self.file.name, line)

    def _rows(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """First line number and fields of each record after the header."""
        with io.TextIOWrapper(self.file.open(), "utf-8-sig", errors="surrogateescape", newline="") as lines:
            found = records(lines, self.separator, self.file.name, strict=strict)
            yield from ((line, fields) for line, fields in found if line > self.header_lines)


def open_text(file: DataFile, request: Request) -> TextFile:
    """Finds the separator, the header and the names of the columns, from the first lines and what was asked for."""
    text = file.head.decode("utf-8-sig", errors="surrogateescape")
    lines = io.StringIO(text, newline="").readlines()
    if not file.is_whole_head and len(lines) > 1:
        lines.pop()  # it may be cut off
    separator = request.separator or likely_separator(lines, file)
    first_two = list(islice(records(lines, separator, file.name), 2))
    line, fields = first_two[0]
    _check_utf8(fields, file.name, line)
    if len(fields) == 1:
        raise _one_column(file, fields[0], lines, request.separator)
    if _has_header(fields, request, file.name):
        if len(first_two) == 1:
            return TextFile(file, separator, tuple(fields), len(lines), has_rows=not file.is_whole_head)
        return TextFile(file, separator, tuple(fields), first_two[1][0] - 1)
    return TextFile(file, separator, _headerless_names(fields, request, file.name), 0)


def _has_header(fields: list[str], request: Request, source: str) -> bool:
    """Whether the first record names the columns; an error if that cannot be decided."""
    if request.header is not None:
        return request.header
    by_position = bool(request.positions(fields))
    has_numbers = any(_number(field) is not None for field in fields)
    if not has_numbers and not by_position:
        return True  # also names without meaning to us: which one is missing is reported when columns are resolved
    try:
        (Request({}) if by_position else request).resolve(fields, source)
    except DataError:
        if has_numbers:
            return False
        shown = _shown(fields)
        raise DataError(
            f"{source}: is the first line {shown} a header or data? say header=True or header=False"
        ) from None
    return True


def likely_separator(lines: list[str], file: DataFile) -> str:
    """The separator that the name of the file implies if it occurs, else the one that makes the most columns."""
    promised = _FIRST_SEPARATOR[file.format]
    fitness = {}
    for separator in (promised, *_SEPARATORS):
        found = islice(records(lines, separator, file.name), _SAMPLE_RECORDS)
        first, *others = [len(fields) for _, fields in found]
        # "csv" implies little: in half the world it is written with semicolons.
        keeps_promise = separator == promised != ","
        fitness[separator] = first > 1, keeps_promise, all(count == first for count in others), first
    return max(fitness, key=lambda separator: fitness[separator])


def _one_column(file: DataFile, found: str, lines: list[str], asked: str | None) -> DataError:
    likely = likely_separator(lines, file)
    shown = repr(found if len(found) <= 60 else f"{found[:60]}...")
    if asked is not None and likely in found:
        hint = f"try separator={likely!r}"
    else:
        hint = "name the separator of the columns, such as separator=' '"
    tried = f"separator {asked!r}" if asked is not None else "the usual separators"
    return DataError(f"{file.name}: at least two columns are needed, found one, {shown}, with {tried}; {hint}")


def _is_plain(text: bytes, separator: bytes) -> bool:
    """Whether no field in `text` begins or ends unlike an integer; its first two bytes are from the block before."""
    ends = (separator, b"\n", b"\r")
    for sign in _SIGNS:
        if sign != separator and sign in text:
            blank = sign.isspace()
            if any(end + sign in text or (blank and sign + end in text) for end in ends):
                return False
    data = np.frombuffer(text, np.uint8)
    begins = data[:-2] == separator[0]
    begins |= data[:-2] == _NEWLINE
    if b"\r" in text:
        begins |= data[:-2] == _RETURN
    begins &= data[1:-1] == _ZERO
    following = data[np.flatnonzero(begins) + 2]
    harmless = following == _POINT
    for end in (separator[0], _NEWLINE, _RETURN):
        harmless |= following == end
    return bool(harmless.all())


def _headerless_names(fields: list[str], request: Request, source: str) -> tuple[str, ...]:
    """Positions if columns were given; else user, item, rating, timestamp if the first record is nothing else."""
    positions = tuple(map(str, range(len(fields))))
    if request.positions(positions) or any(asked in positions for asked in request.roles.values()):
        return positions
    forced = request.header is False and len(fields) <= len(_HEADERLESS)
    if not request.has_roles() and (forced or _looks_usual(fields)):
        return _HEADERLESS[: len(fields)]
    raise DataError(
        f"{source}: the first line {_shown(fields)} holds data, not names of columns, and the columns cannot be"
        " identified; give positions such as user=0, item=1, rating=2, or header=True if it is a header"
    )


def _looks_usual(fields: list[str]) -> bool:
    numbers = [_number(field) for field in fields[2:]]
    if not 1 <= len(numbers) <= 2 or numbers[0] is None or abs(numbers[0]) > _LARGEST_RATING:
        return False
    return len(numbers) == 1 or (numbers[1] is not None and numbers[1] >= _SMALLEST_TIMESTAMP)


def _number(field: str) -> float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _shown(fields: list[str]) -> str:
    return repr(", ".join(fields[:8]) + (", ..." if len(fields) > 8 else ""))


def _check_utf8(fields: Iterable[str], source: str, line: int) -> None:
    for field in fields:
        bad = next((letter for letter in field if "\udc80" <= letter <= "\udcff"), None)
        if bad is not None:
            byte = ord(bad) - 0xDC00
            raise DataError(f"{source}, line {line}: byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8")


def records(
    lines: Iterable[str], separator: str, source: str, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """First line number, from 1, and fields of each record, without empty lines; `strict` makes stray quotes errors."""
    if len(separator.encode()) > 1:
        stripped = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, start=1))
        yield from ((number, line.split(separator)) for number, line in stripped if line)
        return
    reader = csv.reader(lines, delimiter=separator, strict=strict)
    start = 1
    try:
        for fields in reader:
            if fields:
                yield start, fields
            start = reader.line_num + 1
    except csv.Error as problem:
        raise DataError(
            f"{source}, line {start}: a quoted field does not end where it should ({problem});"
            ' close or remove the quote (")'
        ) from None


class _Replacing(io.RawIOBase):
    """A stream with every `separator` of several bytes replaced by one byte, as Arrow needs it."""

    def __init__(self, stream: pa.NativeFile, separator: bytes) -> None:
        self._stream, self._separator, self._held = stream, separator, b""

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, none only at the end."""
        while block := self._stream.read(size):
            replaced: bytes = (self._held + block).replace(self._separator, _UNIT_SEPARATOR)
            keep = self._begun(replaced)
            self._held = replaced[len(replaced) - keep :]
            if keep < len(replaced):
                return replaced[: len(replaced) - keep]
        rest, self._held = self._held, b""
        return rest

    def _begun(self, block: bytes) -> int:
        """How many of the last bytes may be the beginning of a separator that goes on in the next block."""
        longest = len(self._separator) - 1
        return next((n for n in range(longest, 0, -1) if block.endswith(self._separator[:n])), 0)
