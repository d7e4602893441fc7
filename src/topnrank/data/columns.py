"""One column of a table converted to NumPy, with errors that name the row of a bad value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topnrank._typing import BoolArray, Float32Array, Int64Array
from topnrank.errors import DataError

Locate = Callable[[int], str]
"""Describes a 0-based row of a table, such as "ratings.csv, row 18"."""

EXACT_FLOAT_INTEGERS = 2.0**53
"""Below this float64 holds every integer, so that a float id is one integer only."""


def rows_of(source: str) -> Locate:
    """Describes rows by their number, counted from 1."""
    return lambda row: f"{source}, row {row + 1}"


_FIRST_YEAR, _LAST_YEAR = "1678", "2261"
"""The whole years that nanoseconds since 1970 can tell in 64 bits."""
_DATE_REMEDY = (
    "write times as 2026-01-31, 2026-01-31 08:30:00 or seconds since 1970; a date such as 1/2/2026 has two meanings, "
    "pandas.to_datetime takes the one it is told"
)


@dataclass(frozen=True)
class Column:
    """A named Arrow column; `locate` describes its rows."""

    name: str
    values: pa.ChunkedArray
    locate: Locate

    def error(self, row: int, rule: str, remedy: str) -> DataError:
        """The error that the value of a 0-based `row` breaks `rule`."""
        value = self.values[row].as_py()
        found = "null" if value is None else repr(value)
        return DataError(f"{self.locate(row)}, column {self.name!r}: {rule}, got {found}; {remedy}")

    def require(self, good: BoolArray, rule: str, remedy: str) -> None:
        """Raise the error of the first row that is not `good`."""
        if not good.all():
            raise self.error(int(np.argmin(good)), rule, remedy)

    def plain(self, rule: str, remedy: str) -> "Column":
        """The column without dictionary encoding, and text of every layout as large_string; an error for the first null."""
        encoded = pa.types.is_dictionary(self.values.type)
        kind = self.values.type.value_type if encoded else self.values.type
        kind = pa.large_string() if is_text(kind) else kind
        # Arrow cannot cast every dictionary, but every dictionary's values
        chunks = [c.dictionary.cast(kind).take(c.indices) if encoded else c.cast(kind) for c in self.values.chunks]
        column = Column(self.name, pa.chunked_array(chunks, type=kind), self.locate)
        if column.values.null_count:
            column.require(to_numpy(pc.is_valid(column.values)), rule, remedy)
        return column


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds strings."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def to_numpy(values: pa.ChunkedArray) -> Any:
    """A column without nulls as one NumPy array; strings become an object array."""
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()


def joined(values: pa.ChunkedArray, dtype: type[np.generic]) -> Any:
    """A column of numbers without nulls as one new array; chunk by chunk, without a second copy of the whole."""
    array = np.empty(len(values), dtype)
    first = 0
    for chunk in values.chunks:
        array[first : first + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        first += len(chunk)
    return array


def numbers(column: Column) -> Float32Array:
    """The column as finite float32 numbers; text that reads as numbers is cast."""
    rule, remedy = "must be a finite number", "remove or fix the row"
    column = column.plain(rule, remedy)
    kind = column.values.type
    try:
        exact = column.values if pa.types.is_floating(kind) else _trimmed(column.values).cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _first_failure(column, pa.float64(), rule, remedy) from None
    with np.errstate(over="ignore"):
        single: Float32Array = joined(exact, np.float32)
    column.require(np.isfinite(single), rule, remedy)
    return single


def timestamps(column: Column) -> Int64Array:
    """The column as int64: integers as they are; dates, date-times and ISO text as seconds since 1970."""
    rule, remedy = "must be an integer, a date or an ISO 8601 text", "remove or fix the row"
    column = column.plain(rule, remedy)
    kind = column.values.type
    if pa.types.is_floating(kind):
        return integral_floats(column, "must be an integer number of seconds", "round the column or fix the row")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _seconds(column.values)
    if is_text(kind):
        return _timestamps_of_text(column, rule, remedy)
    if not pa.types.is_integer(kind):
        raise column.error(0, rule, remedy)
    return integers(column, "must fit a 64-bit integer", remedy)


def integers(column: Column, rule: str, remedy: str) -> Int64Array:
    """An integer column as int64; unsigned values beyond its range are an error."""
    try:
        codes: Int64Array = joined(column.values.cast(pa.int64()), np.int64)
    except pa.ArrowInvalid:
        raise _first_failure(column, pa.int64(), rule, remedy) from None
    return codes


def integral_floats(column: Column, rule: str, remedy: str) -> Int64Array:
    """A float column that holds integers only, as int64."""
    values = to_numpy(column.values.cast(pa.float64()))
    with np.errstate(invalid="ignore"):
        column.require((np.floor(values) == values) & (np.abs(values) < EXACT_FLOAT_INTEGERS), rule, remedy)
    whole: Int64Array = values.astype(np.int64)
    return whole


def _timestamps_of_text(column: Column, rule: str, remedy: str) -> Int64Array:
    text = _trimmed(column.values)
    # Arrow must know whether the text names a time zone; without one it is read as UTC.
    for kind in (pa.int64(), pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            values = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        if pa.types.is_integer(kind):
            if pc.any(pc.match_substring(text, "x", ignore_case=True)).as_py():
                continue  # Arrow takes 0x1F for 31
            return np.asarray(to_numpy(values), np.int64)
        first, last = pc.min_max(pc.utf8_slice_codeunits(text, 0, 4)).as_py().values()
        if first < _FIRST_YEAR or last > _LAST_YEAR:
            continue  # beyond what nanoseconds can tell: some versions of Arrow begin again from the other end
        return _seconds(values)
    if _casts(text.slice(0, 1), pa.int64()):
        raise _first_failure(column, pa.int64(), rule, remedy)
    raise _first_failure(column, pa.timestamp("ns"), rule, _DATE_REMEDY)


def _seconds(values: pa.ChunkedArray) -> Int64Array:
    if not pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("s"))
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
    counted: Int64Array = to_numpy(values.cast(pa.int64()))
    seconds: Int64Array = np.floor_divide(counted, ticks)  # down also before 1970, where a cast rounds up
    return seconds


def _trimmed(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(values) if is_text(values.type) else values


def _first_failure(column: Column, kind: pa.DataType, rule: str, remedy: str) -> DataError:
    """The error of the first row that does not cast to `kind`; by bisection, since a cast does not name the row."""
    values = _trimmed(column.values)
    first, last = 0, len(values) - 1
    while first < last:
        middle = (first + last) // 2
        if _casts(values.slice(first, middle - first + 1), kind):
            first = middle + 1
        else:
            last = middle
    return column.error(first, rule, remedy)


def _casts(values: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
