"""Rows in CSR order, each (user, item), or (user, item, type), once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.data import many_rows
from topnrank.data.column import Locate
from topnrank.data.groups import sort_stably, totals, winners
from topnrank.data.ids import IdMap
from topnrank.errors import DataError

DUPLICATE_RULES = ("error", "last", "sum", "max")
"""What may happen to rows of the same user and item (and type)."""

_CODES = ("user_codes", "item_codes")
_VALUES = ("ratings", "types", "weights", "timestamps")


@dataclass(frozen=True, eq=False)
class Rows:
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

    def reorder(self, positions: Int64Array) -> Self:
        """The rows at `positions`, in that order."""
        return self._each((*_CODES, *_VALUES), lambda values: values[positions])

    def detached(self) -> Self:
        """The rows in memory of their own: values may still be views of arrays that the caller can change."""
        return self._each(_VALUES, lambda values: values if values.flags.owndata else values.copy())

    def _each(self, columns: tuple[str, ...], change: Callable[[NDArray[Any]], Any]) -> Self:
        present = {name: getattr(self, name) for name in columns if getattr(self, name) is not None}
        return replace(self, **{name: change(values) for name, values in present.items()})

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


def unique_rows(rows: Rows, rule: str, locate: Locate) -> tuple[Rows, int]:
    """`rows` in CSR order with duplicates treated by `rule`, and how many rows were merged away."""
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


def _arranged(rows: Rows) -> Rows | None:
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
    names = ("ratings", "weights", "timestamps")
    columns |= {name: order.of(getattr(rows, name)) for name in names if getattr(rows, name) is not None}
    return replace(rows, **columns)


def _merge(rows: Rows, starts: Int64Array, rule: str) -> Rows:
    """One row for each group of sorted `rows`."""
    if rule == "sum":
        _valued(rows, rule)
        return replace(rows.reorder(starts), **totals(rows, starts))
    clock = [] if rows.timestamps is None else [rows.timestamps]
    criteria: list[NDArray[Any]] = [_valued(rows, rule), *clock] if rule == "max" else [*clock]
    return rows.reorder(winners(starts, len(rows.user_codes), criteria))


def _valued(rows: Rows, rule: str) -> Float32Array:
    value = rows.weights if rows.ratings is None else rows.ratings
    if value is None:
        raise DataError(
            f"duplicates={rule!r} needs a rating or weight column and the data has neither; use duplicates='last'"
        )
    return value


def _duplicate_error(rows: Rows, order: Int64Array, is_first: NDArray[np.bool_], locate: Locate) -> DataError:
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
