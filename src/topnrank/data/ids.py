"""Original ids of users or items, and their numbers."""

import re
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topnrank._typing import IdArray, Int32Array, Int64Array
from topnrank.data import many_rows
from topnrank.data.columns import Column, integers, integral_floats, is_text, rows_of, to_numpy
from topnrank.errors import DataError, ParameterError

MAX_IDS = 2**31 - 1
"""Codes are int32."""

FILLED = "must not be empty", "remove the row or give it an id"
"""What ids must be, and what to do where one is not."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = range(-(2**63), 2**63)


def as_array(values: Any) -> IdArray:
    """One id or many as an array; text as objects, because NumPy's own text type drops trailing NUL characters."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError:
        raise ParameterError("ids must be one id or a flat list of ids, got lists of different lengths") from None
    if array.ndim > 1:
        raise ParameterError(f"ids must be one id or a flat list of ids, got an array of shape {array.shape}")
    return np.atleast_1d(np.asarray(values, dtype=object)) if array.dtype.kind == "U" else array


@final
@dataclass(frozen=True, eq=False)
class IdMap:
    """Ids in ascending order; the number of an id is its position, whatever the order of the rows."""

    ids: IdArray
    """(n,) unique and ascending: int64, or object holding str."""

    def __post_init__(self) -> None:
        kind = np.asarray(self.ids).dtype.kind
        ids = np.array(self.ids, dtype=np.int64 if kind in "iu" else object)  # a copy: the caller's may change
        if ids.ndim != 1 or not np.all(ids[1:] > ids[:-1]):
            raise DataError(
                "the ids of an IdMap must be one ascending list without repeats; use IdMap.encode for others"
            )
        if len(ids) > MAX_IDS:
            raise DataError(f"at most {MAX_IDS} different ids are possible, got {len(ids)}; split the data")
        ids.flags.writeable = False
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_integer(self) -> bool:
        """Whether the ids are integers, not strings."""
        return bool(self.ids.dtype.kind == "i")

    def index(self, values: Any) -> Int64Array:
        """The number of each id of `values` (one id or many), -1 where unknown; shape (len(values),).

        An integer id may be given as text ("42") and a textual one as an integer, as command lines and frames do.
        """
        wanted, known = as_array(values), self.ids
        if not len(known):
            return np.full(len(wanted), -1, dtype=np.int64)
        readable: Any = np.True_
        if known.dtype.kind != "i":
            wanted = np.array([str(value) for value in wanted.tolist()], dtype=object)
        elif wanted.dtype.kind in "iu":
            wanted, readable = wanted.astype(np.int64), wanted <= np.iinfo(np.int64).max
        else:
            parsed = [_integer_or_none(value) for value in wanted.tolist()]
            readable = np.array([number is not None for number in parsed], dtype=np.bool_)
            wanted = np.array([number or 0 for number in parsed], dtype=np.int64)
        position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(readable & (known[position] == wanted), position, -1).astype(np.int64)

    @classmethod
    def encode(cls, values: Any) -> tuple[Self, Int32Array]:
        """The map of the distinct ids of an Arrow or NumPy array, and the number of each value."""
        arrow = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values)])
        return cls.encode_column(Column("id", arrow, rows_of("ids")))

    @classmethod
    def encode_column(cls, column: Column) -> tuple[Self, Int32Array]:
        """As `encode`, with errors that name the column and the row."""
        column = column.plain(*FILLED)
        ids, codes = (_encode_text if is_text(column.values.type) else _encode_integers)(column)
        return cls(ids), codes


def _integer_or_none(value: object) -> int | None:
    if isinstance(value, float):
        number = int(value) if value.is_integer() else None
    else:
        number = int(str(value)) if _INTEGER.fullmatch(str(value)) else None
    return number if number is None or number in _INT64 else None


def _encode_text(column: Column) -> tuple[IdArray, Int32Array]:
    column.require(to_numpy(pc.not_equal(column.values, "")), *FILLED)
    ids, codes = _encode_by_hash(column.values)
    return ids.astype(object), codes


def _encode_integers(column: Column) -> tuple[IdArray, Int32Array]:
    values, kind = column.values, column.values.type
    if len(values) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    if pa.types.is_floating(kind):
        numbers = integral_floats(column, "ids must be integers or text", "convert the column to integers or text")
        values = pa.chunked_array([numbers])
    elif not pa.types.is_integer(kind):
        raise column.error(0, f"ids must be integers or text, not {kind}", "convert the column to integers or text")
    low, high = pc.min_max(values).as_py().values()
    is_dense = high - low <= 4 * len(values) + 1024  # a table over the range of the ids is small beside the rows
    if is_dense and len(values) >= many_rows.MANY and values.type in (pa.int32(), pa.int64()):
        return many_rows.encode_dense([chunk.to_numpy() for chunk in values.chunks], low, high)
    numbers = integers(
        Column(column.name, values, column.locate), "ids must fit a 64-bit integer", "convert the column to text"
    )
    if not is_dense:
        return _encode_by_hash(pa.chunked_array([numbers]))
    # Ids usually fill most of a small range: a table over the range beats sorting and hashing.
    offsets = numbers - low
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[offsets] = True
    code = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(present) + low, code[offsets]


def _encode_by_hash(values: pa.ChunkedArray) -> tuple[IdArray, Int32Array]:
    encoded = values.dictionary_encode().unify_dictionaries()
    if encoded.num_chunks == 0:
        return np.empty(0, dtype=object), np.empty(0, dtype=np.int32)
    distinct = encoded.chunk(0).dictionary
    order = pc.array_sort_indices(distinct)
    number = np.empty(len(distinct), dtype=np.int32)
    number[to_numpy(order)] = np.arange(len(distinct), dtype=np.int32)
    codes = np.concatenate([number[to_numpy(chunk.indices)] for chunk in encoded.chunks])
    return to_numpy(distinct.take(order)), codes
