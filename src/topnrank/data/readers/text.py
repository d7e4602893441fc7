"""Text in columns: CSV, TSV, MovieLens "::" files and their kin.

Arrow parses; what Arrow cannot say (which separator, is there a header, which line is wrong) is found by cutting a few
lines, or after a failure all of them, with Python's own csv module.
"""

import csv
import io
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

# ----------------------------------------------------------------------------------------------------
# A quick look at all bytes of a text in columns: may Arrow read its ids as integers, and are there quotes?


_BLOCK_BYTES = 1 << 18
"""Small enough for the cache: each block is looked at several times."""
_NEWLINE, _RETURN, _ZERO, _POINT = b"\n\r0."
_SIGNS = (b"+", b"-", b" ", b"\t")
"""What plain integers do not begin or end with; the blanks are those that Arrow passes over in numbers."""


@dataclass(frozen=True)
class Survey:
    """What stands in the lines after the header."""

    quotes: int
    lines: int
    """Counted only where there are quotes."""
    plain: bool
    """Whether no field begins or ends unlike an integer: with a sign, a blank, or a zero before further characters. Then
    a column that Arrow reads as integers holds nothing but integers written as they print."""


def survey(file: DataFile, header_lines: int, separator: bytes) -> Survey:
    """Looks at the whole of `file`; `separator` is one byte."""
    quoted, plain, before = False, True, b"\n"
    for block in _blocks(file, header_lines):
        quoted = quoted or b'"' in block
        if quoted:
            return Survey(*_count_quotes_and_lines(file, header_lines), plain=False)
        text = before + block
        plain = plain and _is_plain(text, separator)
        before = text[-2:]
    return Survey(0, 0, plain and _is_plain(before + b"\n", separator))


def _blocks(file: DataFile, header_lines: int) -> Iterator[bytes]:
    with file.open_lines() as stream:
        for _ in range(header_lines):
            stream.readline()
        while block := stream.read(_BLOCK_BYTES):
            yield block


def _count_quotes_and_lines(file: DataFile, header_lines: int) -> tuple[int, int]:
    quotes, lines, last = 0, 0, b"\n"
    for block in _blocks(file, header_lines):
        quotes, lines, last = quotes + block.count(b'"'), lines + block.count(b"\n"), block[-1:]
    return quotes, lines + (last != b"\n")


def _is_plain(text: bytes, separator: bytes) -> bool:
    """Whether no field within `text` begins or ends unlike an integer; what comes before its third byte is known already."""
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


_FIRST_SEPARATOR = {"csv": ",", "tsv": "\t", "dat": "::"}
_SEPARATORS = (",", "\t", ";", "|", "::")
_HEADERLESS = ("user", "item", "rating", "timestamp")
_LARGEST_RATING, _SMALLEST_TIMESTAMP = 1000, 100_000_000
"""Numbers beyond the one are no ratings, numbers below the other no seconds of our time."""

_TYPE_OF_ROLE = {
    "user": pa.string(),
    "item": pa.string(),
    "type": pa.string(),
    "rating": pa.float64(),
    "weight": pa.float64(),
}

NULLS = ("", "NULL", "null", "NaN", "nan", "NA", "N/A", "<NA>", "None", "\\N")
"""Fields that mean that there is no value."""
_UNIT_SEPARATOR = b"\x1f"
_SAMPLE_RECORDS = 20
_BLOCK = 4 * 2**20
"""Bytes that Arrow parses at a time: with its own 1 MiB the many small pieces cost a third more memory and are no faster."""


@final
@dataclass(frozen=True)
class TextSource:
    """A text file whose separator and column names are known."""

    file: DataFile
    separator: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool = True

    def table(self, roles: Mapping[str, str]) -> pa.Table:
        """The columns to use: ids and types as text, ratings and weights as numbers, timestamps as Arrow sees them."""
        types = {name: _TYPE_OF_ROLE[role] for role, name in roles.items() if role in _TYPE_OF_ROLE}
        if not self.has_rows:
            return pa.table({name: pa.array([], types.get(name, pa.null())) for name in roles.values()})
        with io_errors(self.file.name, self.file.compression):
            seen = self._survey()
            table = self._parse_integer_ids(roles, types) if seen.plain else None
            try:
                table = self._parse(roles, types, has_quotes=seen.quotes > 0) if table is None else table
            except pa.ArrowInvalid:
                # A row is malformed or a value is no number. As text only the first fails; the second is then
                # found, and told, by the checks that all data pass.
                table = self._parse_as_text(roles, has_quotes=seen.quotes > 0)
            if seen.quotes % 2 == 1 or (seen.quotes and seen.lines > table.num_rows):
                # Some quoted field goes over several lines: meant so, or a quote that is not closed has swallowed
                # rows, which Arrow does not mind.
                self._check_records(roles)
        return table

    def first_row(self) -> list[str] | None:
        """The fields of the first row, if the head of the file has one."""
        lines = io.StringIO(self.file.head.decode("utf-8-sig", errors="surrogateescape"), newline="")
        records = _cut(lines, self.separator, self.file.name)
        return next((fields for line, fields in records if line > self.header_lines), None)

    def parse_path(self, row: int) -> str:
        """Words for a 0-based row of the table: the line as an editor counts it."""
        with io_errors(self.file.name, self.file.compression):
            line, _ = next(islice(self._records(), row, None))
        return f"{self.file.name}, line {line}"

    def _parse_as_text(self, roles: Mapping[str, str], has_quotes: bool) -> pa.Table:
        try:
            return self._parse(roles, dict.fromkeys(roles.values(), pa.string()), has_quotes)
        except pa.ArrowInvalid as problem:
            self._check_records(roles)
            raise DataError(f"{self.file.name}: cannot be read as text in columns ({first_line(problem)})") from None

    def _parse(self, roles: Mapping[str, str], types: Mapping[str, pa.DataType], has_quotes: bool) -> pa.Table:
        plain = _is_single_byte(self.separator)
        with self.file.open() as stream:
            return pa.csv.read_csv(
                stream if plain else _Replacing(stream, self.separator.encode()),
                read_options=pa.csv.ReadOptions(
                    column_names=self.names, skip_rows=self.header_lines, block_size=_BLOCK
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

    def _survey(self) -> Survey:
        """What the lines after the header hold; nothing is known where the separator has several bytes."""
        if not _is_single_byte(self.separator):
            return Survey(quotes=0, lines=0, plain=False)  # quotes mean nothing there
        return survey(self.file, self.header_lines, self.separator.encode())

    def _parse_integer_ids(self, roles: Mapping[str, str], types: dict[str, pa.DataType]) -> pa.Table | None:
        """The table with ids as integers, in half the time that text takes; None if they are none.

        First all numbers as narrow as we keep them, then integers as wide as they come.
        """
        ids = [roles[role] for role in ("user", "item") if role in roles]
        first = dict(zip(self.names, next(self._records(), (0, []))[1], strict=False))
        if not all(first.get(name, "").isdecimal() for name in ids):
            return None
        numbers = {name: pa.float32() for name, kind in types.items() if kind == pa.float64()}
        if first.get(roles.get("timestamp", ""), "").isdecimal():
            numbers[roles["timestamp"]] = pa.int64()  # Arrow's guess costs twice the time and memory
        for kinds in (numbers | dict.fromkeys(ids, pa.int32()), dict.fromkeys(ids, pa.int64())):
            try:
                table = self._parse(roles, types | kinds, has_quotes=False)
            except pa.ArrowInvalid:
                continue
            return table if not any(table[name].null_count for name in ids) else None
        return None

    def _check_records(self, roles: Mapping[str, str]) -> None:
        """Raise the error of the first record with bad bytes, stray quotes or a wrong number of fields."""
        used = [self.names.index(name) for name in roles.values()]
        for line, fields in self._records(strict=True):
            if len(fields) != len(self.names):
                raise DataError(
                    f"{self.file.name}, line {line}: must have {len(self.names)} fields separated by"
                    f" {self.separator!r} as the first line has, got {len(fields)}; mend the line or quote its fields"
                )
            _check_utf8((fields[position] for position in used), self.file.name, line)

    def _records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """First line number and fields of each record after the header."""
        with io.TextIOWrapper(self.file.open(), "utf-8-sig", errors="surrogateescape", newline="") as lines:
            records = _cut(lines, self.separator, self.file.name, strict=strict)
            yield from ((line, fields) for line, fields in records if line > self.header_lines)


def open_text(file: DataFile, request: Request) -> TextSource:
    """Find out how `file` is laid out, from its first lines and what was asked for."""
    text = file.head.decode("utf-8-sig", errors="surrogateescape")
    lines = io.StringIO(text, newline="").readlines()
    if not file.is_whole_head and len(lines) > 1:
        lines.pop()  # it may be cut off
    separator = request.separator or _likely_separator(lines, file)
    line, fields = next(_cut(lines, separator, file.name))
    _check_utf8(fields, file.name, line)
    if len(fields) == 1:
        raise _one_column(file, fields[0], lines, request.separator)
    if _has_header(fields, request, file.name):
        following = next(islice(_cut(lines, separator, file.name), 1, None), None)
        if following is None and file.is_whole_head:
            return TextSource(file, separator, tuple(fields), len(lines), has_rows=False)
        header_lines = len(lines) if following is None else following[0] - 1
        return TextSource(file, separator, tuple(fields), header_lines)
    return TextSource(file, separator, _headerless_names(fields, request, file.name), 0)


def _likely_separator(lines: list[str], file: DataFile) -> str:
    """The separator that the name of the file promises if it is there, else the one that makes the most columns."""
    promised = _FIRST_SEPARATOR[file.format]
    counts = {
        separator: [len(fields) for _, fields in islice(_cut(lines, separator, file.name), _SAMPLE_RECORDS)]
        for separator in (promised, *_SEPARATORS)
    }

    def fitness(separator: str) -> tuple[bool, bool, bool, int]:
        first, *others = counts[separator]
        # "csv" promises little: in half the world it is written with semicolons.
        keeps_promise = separator == promised != ","
        return first > 1, keeps_promise, all(count == first for count in others), first

    return max(counts, key=fitness)


def _one_column(file: DataFile, found: str, lines: list[str], asked: str | None) -> DataError:
    likely = _likely_separator(lines, file)
    shown = repr(found if len(found) <= 60 else f"{found[:60]}...")
    if asked is not None and likely in found:
        hint = f"try separator={likely!r}"
    else:
        hint = "say what stands between the columns, such as separator=' '"
    tried = f"separator {asked!r}" if asked is not None else "the usual separators"
    return DataError(f"{file.name}: at least two columns are needed, found one, {shown}, with {tried}; {hint}")


def _has_header(fields: list[str], request: Request, source: str) -> bool:
    """Whether the first record names the columns; an error if that cannot be told."""
    if request.header is not None:
        return request.header
    by_position = request.has_positions(fields)
    if _resolves(Request({}) if by_position else request, fields):
        return True
    if any(_number(field) is not None for field in fields):
        return False
    if by_position:
        raise DataError(
            f"{source}: is the first line {_shown(fields)} a header or data? say header=True or header=False"
        )
    return True  # of names that mean nothing to us: which one is missing is told when columns are resolved


def _resolves(request: Request, names: list[str]) -> bool:
    try:
        request.resolve(names, "")
    except DataError:
        return False
    return True


def _headerless_names(fields: list[str], request: Request, source: str) -> tuple[str, ...]:
    """Positions if columns were given; else user, item, rating, timestamp if the first record is nothing else."""
    positions = tuple(map(str, range(len(fields))))
    if request.has_positions(positions) or any(asked in positions for asked in request.roles.values()):
        return positions
    forced = request.header is False and len(fields) <= len(_HEADERLESS)
    if not request.has_roles() and (forced or _looks_usual(fields)):
        return _HEADERLESS[: len(fields)]
    raise DataError(
        f"{source}: the first line {_shown(fields)} holds data, not names of columns, and the columns cannot be"
        " told apart; give positions such as user=0, item=1, rating=2, or header=True if it is a header"
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


def _is_single_byte(separator: str) -> bool:
    return len(separator.encode()) == 1


def _cut(lines: Iterable[str], separator: str, source: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """First line number, from 1, and fields of each record, empty lines left out; `strict` minds stray quotes."""
    if not _is_single_byte(separator):
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
        """Yes."""
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
