"""Repeated (user, item) rows: how they are ordered, merged, or refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.data import many_rows
from topnrank.data.columns import Locate
from topnrank.data.ids import IdMap
from topnrank.errors import DataError

if TYPE_CHECKING:
    from topnrank.data.interactions import Interactions

_SIGNLESS_BITS = 63
"""Bits of an int64 that is not negative."""


def sort_stably(keys: Int64Array) -> Int64Array:
    """Sorts `keys`, which are not negative, in place; returns the order of a stable argsort, (len(keys),).

    Where key and position fit one integer together, sorting that integer is several times faster than an argsort.
    """
    position_bits = len(keys).bit_length()
    if int(keys.max()).bit_length() + position_bits > _SIGNLESS_BITS:
        order = np.argsort(keys, kind="stable")
        keys[:] = keys[order]
        return order
    keys <<= position_bits
    keys |= np.arange(len(keys))
    keys.sort()
    order = keys & ((1 << position_bits) - 1)
    keys >>= position_bits
    return order


def winners(starts: Int64Array, length: int, criteria: Sequence[NDArray[Any]]) -> Int64Array:
    """The row of each group that is largest by the first criterion, ties by the next, the last such row in the end.

    Parameters
    ----------
    starts
        First row of each group, (groups,).
    length
        Number of rows.
    criteria
        Arrays of shape (length,).
    """
    if length == 0:
        return starts
    sizes = np.diff(starts, append=length)
    best = np.ones(length, dtype=np.bool_)
    for values in criteria:
        standing = np.where(best, values, values.min())
        best &= values == np.repeat(np.maximum.reduceat(standing, starts), sizes)
    return np.maximum.reduceat(np.where(best, np.arange(length), -1), starts)


def totals(rows: "CodedColumns | Interactions", starts: Int64Array) -> dict[str, Any]:
    """Of each group the sums of ratings and weights and time and place of the latest row, by field; None where none are."""
    clock = [] if rows.timestamps is None else [rows.timestamps]
    latest = winners(starts, int(rows.places.size), [*clock, rows.places]) if rows.places is not None else starts
    return {
        "ratings": _sums(rows.ratings, starts),
        "weights": _sums(rows.weights, starts),
        "timestamps": None if rows.timestamps is None else np.maximum.reduceat(rows.timestamps, starts),
        "places": None if rows.places is None else rows.places[latest],
    }


def _sums(values: Float32Array | None, starts: Int64Array) -> Float32Array | None:
    """The sum of each group, (groups,), added up in float64; None for no values."""
    if values is None:
        return None
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(values.astype(np.float64), starts).astype(np.float32)
    if not np.isfinite(totals).all():
        raise DataError("ratings or weights of one user and item add up beyond the range of float32; scale them down")
    return totals


DUPLICATE_RULES = ("error", "last", "sum", "max", "count")
"""How rows of the same user and item (and type) are treated."""

_CODES = ("user_codes", "item_codes")
_VALUES = ("ratings", "types", "weights", "timestamps", "places")


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """Checked columns, all of shape (n,), with the id maps their codes refer to."""

    users: IdMap
    items: IdMap
    user_codes: Int32Array
    item_codes: Int32Array
    ratings: Float32Array | None = None
    types: Int32Array | None = None
    type_names: tuple[str, ...] = ()
    weights: Float32Array | None = None
    timestamps: Int64Array | None = None
    places: Int64Array | None = None
    """Where each row stood among those that were read"""

    def reorder(self, positions: Int64Array) -> Self:
        """The rows at `positions`, in that order."""
        columns = {name: getattr(self, name) for name in (*_CODES, *_VALUES)}
        return replace(self, **{name: values[positions] for name, values in columns.items() if values is not None})

    def detached(self) -> Self:
        """The rows in memory of their own: values may still be views of arrays that the caller can change."""
        columns = {name: getattr(self, name) for name in _VALUES}
        views = {name: values for name, values in columns.items() if values is not None and not values.flags.owndata}
        return replace(self, **{name: values.copy() for name, values in views.items()})

    def cells(self) -> Int32Array:
        """One number below `n_cells` for each (item, type)."""
        if self.types is None:
            return self.item_codes
        return self.item_codes * np.int32(len(self.type_names)) + self.types

    @property
    def n_cells(self) -> int:
        """How many pairs (item, type) there can be."""
        return len(self.items) * max(1, len(self.type_names))

    def keys(self) -> Int64Array:
        """One number for each (user, item, type), ascending in CSR order."""
        keys = self.user_codes.astype(np.int64)
        keys *= len(self.items)  # in place: with many rows, fresh memory costs more than the arithmetic
        keys += self.item_codes
        if self.types is not None:
            keys *= len(self.type_names)
            keys += self.types
        return keys


def rule_for_rows(rule: str, *, valued: bool) -> str:
    """The rule for rows with or without ratings or weights: an event without a value that comes again is no error."""
    return "last" if rule == "error" and not valued else rule


def unique_rows(rows: CodedColumns, rule: str, locate: Locate) -> tuple[CodedColumns, int]:
    """`rows` in CSR order with duplicates treated by `rule`, and how many rows were merged away."""
    valued = rows.ratings is not None or rows.weights is not None
    rule = rule_for_rows(rule, valued=valued)
    if rule == "count":
        check_countable(valued=valued)
        rows, rule = replace(rows, weights=np.ones(len(rows.user_codes), np.float32)), "sum"
    if len(rows.user_codes) >= many_rows.MANY and many_rows.CsrOrder.fits(len(rows.user_codes), rows.n_cells):
        arranged = _arranged(rows)
        if arranged is not None:
            return arranged, 0
    keys = rows.keys()
    if np.all(keys[1:] > keys[:-1]):
        return rows.detached(), 0
    order = sort_stably(keys)
    is_first = np.concatenate(([True], keys[1:] != keys[:-1]))
    if is_first.all():
        return rows.reorder(order), 0
    if rule == "error":
        raise _duplicate_error(rows, order, is_first, locate)
    starts = np.flatnonzero(is_first)
    return _merge(rows.reorder(order), starts, rule), len(order) - len(starts)


def check_countable(*, valued: bool) -> None:
    """DataError for rows that say more than that something happened."""
    if valued:
        raise DataError(
            "duplicates='count' counts rows without ratings and weights, and the data has some; use duplicates='sum'"
        )


def _arranged(rows: CodedColumns) -> CodedColumns | None:
    """Many `rows` in CSR order; None where some are repeated."""
    cells = rows.cells()
    if many_rows.is_ascending(rows.user_codes, cells):
        return rows.detached()
    order = many_rows.CsrOrder(rows.user_codes, cells, len(rows.users))
    if order.has_repeats:
        return None
    columns: dict[str, Any] = {"user_codes": order.users()}
    if rows.types is None:
        columns["item_codes"] = order.cells()
    else:
        columns["item_codes"], columns["types"] = np.divmod(order.cells(), np.int32(len(rows.type_names)))
    names = ("ratings", "weights", "timestamps", "places")
    columns |= {name: order.of(getattr(rows, name)) for name in names if getattr(rows, name) is not None}
    return replace(rows, **columns)


def _merge(rows: CodedColumns, starts: Int64Array, rule: str) -> CodedColumns:
    """One row for each group of sorted `rows`."""
    if rule == "sum":
        _valued(rows, rule)
        return replace(rows.reorder(starts), **totals(rows, starts))
    clock = [] if rows.timestamps is None else [rows.timestamps]
    criteria: list[NDArray[Any]] = [_valued(rows, rule), *clock] if rule == "max" else [*clock]
    return rows.reorder(winners(starts, len(rows.user_codes), criteria))


def _valued(rows: CodedColumns, rule: str) -> Float32Array:
    value = rows.weights if rows.ratings is None else rows.ratings
    if value is None:
        raise DataError(
            f"duplicates={rule!r} needs a rating or weight column and the data has neither; use duplicates='count'"
        )
    return value


def _duplicate_error(rows: CodedColumns, order: Int64Array, is_first: NDArray[np.bool_], locate: Locate) -> DataError:
    """Names the earliest row that repeats another one."""
    repeats = np.flatnonzero(~is_first)
    at = repeats[np.argmin(order[repeats])]
    row, earlier = int(order[at]), int(order[at - 1])
    pair = f"user {rows.users.ids.item(rows.user_codes[row])!r} and item {rows.items.ids.item(rows.item_codes[row])!r}"
    if rows.types is not None:
        pair += f" with type {rows.type_names[rows.types[row]]!r}"
    repeated = int(np.count_nonzero(is_first[:-1] & ~is_first[1:]))
    return DataError(
        f"{locate(row)}: {pair} must occur once but are also in {locate(earlier)} (repeated combinations in all:"
        f" {repeated}); remove the repeats or choose a rule with duplicates='last', 'sum' or 'max'"
    )
