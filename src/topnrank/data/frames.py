"""From any frame to checked columns: which columns are used, Arrow tables, `CodedColumns`."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from topnrank.data.columns import Column, Locate, numbers, timestamps
from topnrank.data.duplicates import CodedColumns
from topnrank.data.ids import FILLED, IdMap
from topnrank.errors import DataError, TopNRankWarning

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "user": (
        *("user", "userid", "uid", "reviewerid", "customerid", "customer"),
        *(
            "visitorid",
            "visitor",
            "memberid",
            "member",
            "clientid",
            "client",
            "accountid",
            "account",
            "playerid",
            "player",
        ),
        *("listenerid", "listener", "readerid", "reader", "householdid", "household", "sessionid", "author"),
    ),
    "item": (
        *("item", "itemid", "iid", "movieid", "productid", "product", "asin", "parentasin", "sku", "stockcode"),
        *("trackid", "track", "artistid", "artist", "songid", "song", "bookid", "book", "isbn", "articleid", "article"),
        *("gameid", "game", "filmid", "film", "movie", "contentid", "title"),
    ),
    "rating": ("rating", "stars", "score", "overall", "value", "grade"),
    "type": ("type", "event", "eventtype", "action", "behavior", "behaviortype", "feedback"),
    "weight": (
        *("weight", "count", "plays", "playcount", "quantity", "confidence", "hours", "hoursplayed", "playtime"),
        *("minutes", "listens", "clicks", "views", "purchases"),
    ),
    "timestamp": ("timestamp", "time", "date", "datetime", "eventtime", "unixreviewtime", "ts", "createdat"),
}
"""Names under which columns are found, in order of preference; letter case, "_", "-" and spaces do not count."""


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table to use; None for no such column."""

    user: str
    item: str
    rating: str | None = None
    type: str | None = None
    weight: str | None = None
    timestamp: str | None = None

    def names(self) -> list[str]:
        """The names that are set, in the order of the fields."""
        return [name for name in astuple(self) if name is not None]


def resolve_columns(names: Sequence[str], given: Mapping[str, str | None], *, source: str = "frame") -> Columns:
    """The columns to use among `names`: those `given` by role, which must be there, the others by their usual names."""
    chosen = {role: name for role, name in given.items() if name is not None}
    for role, usual in USUAL_NAMES.items():
        if role not in chosen and (name := usual_column(names, usual, *chosen.values())) is not None:
            chosen[role] = name
    check_columns(names, chosen, source=source)
    missing = [role for role in ("user", "item") if role not in chosen]
    others = [name for name in names if _ENDS_IN_ID.search(name) and name not in chosen.values()]
    if len(missing) == len(others) == 1:
        chosen[missing[0]] = others[0]
    elif missing:
        several = f" (several end in id: {_listed(others)})" if len(others) > 1 else ""
        absent, remedy = (
            " and no ".join(f"{role} column" for role in missing),
            " and ".join(f"{role}='...'" for role in missing),
        )
        them = "it" if len(missing) == 1 else "them"
        raise DataError(f"{source}: no {absent} among {_listed(names)}{several}; name {them} with {remedy}")
    return Columns(**chosen)


USUAL_TITLES = ("title", "titles", "name", "description", "itemname", "productname", "label")
"""Usual names of a column of titles."""


def usual_column(names: Sequence[str], usual: Sequence[str], *taken: str | None) -> str | None:
    """The one of `names` that stands first among the usual ones, whatever its case and dashes; none of those `taken`."""
    found = [name for name in names if bare_name(name) in usual and name not in taken]
    return min(found, key=lambda name: usual.index(bare_name(name)), default=None)


def bare_name(name: str) -> str:
    """A column's name in small letters without dashes, underscores and spaces."""
    return re.sub("[-_ ]", "", name.lower())


_ENDS_IN_ID = re.compile(r"(?i)[a-z][-_ ]?ids?$|.[a-z]Id$")
"""Names of columns that hold ids of something."""


def check_columns(names: Sequence[str], chosen: Mapping[str, str | None], *, source: str = "frame") -> None:
    """Raise a DataError unless every column `chosen` for a role is there once and has one role only."""
    roles: dict[str, str] = {}
    for role, name in chosen.items():
        if name is None:
            continue
        count = names.count(name)
        if count > 1:
            raise DataError(f"{source}: {count} columns are named {name!r}; rename all but the one to use as {role}")
        if count == 0:
            near = get_close_matches(name.lower(), [other.lower() for other in names], n=1)
            meant = next((other for other in names if near and other.lower() == near[0]), None)
            hint = f"; did you mean {meant!r}?" if meant else f"; set {role} to one of them"
            raise DataError(f"{source}: no column {name!r} (given as {role}) among {_listed(names)}{hint}")
        if name in roles:
            raise DataError(f"{source}: column {name!r} is named both as {roles[name]} and as {role}; name two columns")
        roles[name] = role


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) if names else "no columns at all"


def as_table(frame: Any) -> pa.Table:
    """A frame of any library, or a mapping of names to arrays, as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, Mapping):
        return pa.table({name: _as_array(name, values) for name, values in _same_length(frame).items()})
    if isinstance(frame, ArrowStream):
        try:
            return pa.table(frame)
        except (pa.ArrowException, ValueError, OverflowError) as problem:
            reason = str(problem.args[0] if problem.args else problem).splitlines()[0]
            raise DataError(f"the frame: the values of a column must be of one type ({reason}); convert it") from None
    raise DataError(
        "a frame must be a pandas, polars, Arrow or DuckDB one (with __arrow_c_stream__) or a dict of arrays,"
        f" got {type(frame).__name__}"
    )


def rows_of_table(table: pa.Table, columns: Columns, *, source: str, locate: Locate) -> CodedColumns:
    """The checked columns of a table, rows in the order of the table."""
    check_columns(table.column_names, asdict(columns), source=source)
    if table.num_rows == 0:
        raise DataError(f"{source}: no rows; at least one interaction is needed")

    values = dict(zip(table.column_names, table.columns, strict=True))
    del table
    pool = pa.default_memory_pool()
    pool.release_unused()  # memory of the reader

    def column(name: str) -> Column:
        """A column, removed from `values`, so that its memory is freed once it is converted."""
        return Column(name, values.pop(name), locate)

    if columns.rating is None and columns.type is not None and (many := _many_numbers(values[columns.type])):
        warnings.warn(
            f"{source}: column {columns.type!r} holds {many} different numbers and is taken for ratings, not for types of "
            "events; name another column as type, or as rating, if that is wrong",
            TopNRankWarning,
            stacklevel=2,
        )
        columns = replace(columns, rating=columns.type, type=None)
    users, user_codes = IdMap.encode_column(column(columns.user))
    items, item_codes = IdMap.encode_column(column(columns.item))
    names, types = (None, None) if columns.type is None else IdMap.encode_column(_as_text(column(columns.type)))
    pool.release_unused()  # the ids, half of the memory; not after each column, since fresh memory costs time
    return CodedColumns(
        users,
        items,
        user_codes,
        item_codes,
        types=types,
        type_names=() if names is None else tuple(names.ids.tolist()),
        ratings=None if columns.rating is None else numbers(column(columns.rating)),
        weights=None if columns.weight is None else numbers(column(columns.weight)),
        timestamps=None if columns.timestamp is None else timestamps(column(columns.timestamp)),
    )


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of pandas, polars, Arrow or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


MOST_TYPES = 8
"""A column of more different numbers is not one of feedback types."""


def _many_numbers(values: pa.ChunkedArray) -> int:
    """How many different numbers a column holds; 0 where it holds other things, or few."""
    kinds = pc.unique(values)
    if len(kinds) <= MOST_TYPES or kinds.null_count:
        return 0
    try:
        kinds.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return 0
    return len(kinds)


def _as_text(column: Column) -> Column:
    """Feedback types may be numbered; their names are text."""
    return Column(column.name, column.plain(*FILLED).values.cast(pa.large_string()), column.locate)


def _as_array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values)
    except OverflowError:
        raise DataError(f"column {name!r}: integers must fit 64 bits; give such ids as text") from None
    except UnicodeEncodeError:
        raise DataError(
            f"column {name!r}: holds text that is no Unicode (lone surrogates); decode it properly"
        ) from None
    except (ValueError, pa.ArrowException) as problem:
        raise DataError(
            f"column {name!r}: the values must be of one type in one dimension, {str(problem).splitlines()[0]}"
        ) from None


def _same_length(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    lengths = {name: len(values) if hasattr(values, "__len__") else 0 for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise DataError(f"all columns must have the same number of rows, got {found}")
    return arrays
