"""Groups of items, such as genres or brands, of which a list may hold only so many."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import Int32Array
from topnrank.data.frames import as_table
from topnrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    from topnrank.models.base import Model


def group_numbers(model: "Model", groups: Any) -> Int32Array:
    """(n_items,) a number for the group of each item of the model, -1 for one without a group.

    `groups` is {item: group} or a frame with the columns item and group; a group of None or NaN is none. Items the model
    does not know are passed over: catalogues are larger than what was ever bought.
    """
    items, names = _columns(groups)
    numbers = model.item_map.index(items) if items else np.empty(0, np.int64)
    codes: dict[Any, int] = {}
    found = np.full(len(model.item_map), -1, np.int32)
    for item, number, name in zip(items, numbers.tolist(), names, strict=True):
        if number < 0 or name is None or name != name:  # NaN differs from itself
            continue
        code = codes.setdefault(name, len(codes))
        if found[number] not in (-1, code):
            raise DataError(
                f"groups: item {item!r} stands in two groups, one of them {name!r}; give each item one group"
            )
        found[number] = code
    if not codes:
        raise DataError(
            f"groups: no item of the model has a group; its items are such as {model.item_ids_.item(0)!r}; give the "
            "groups of the items it was trained on"
        )
    return found


def _columns(groups: Any) -> tuple[list[Any], list[Any]]:
    """Items and their groups, side by side."""
    if isinstance(groups, Mapping):
        names = list(groups.values())
        if any(getattr(name, "__hash__", None) is None for name in names):
            raise ParameterError(
                "groups must be {item: group} with one group for each item, or a frame with the columns item and group"
            )
        return list(groups), names
    table = as_table(groups)
    missing = [name for name in ("item", "group") if name not in table.column_names]
    if missing:
        raise DataError(f"groups: needs the columns item and group, got {', '.join(table.column_names)}; rename them")
    return table["item"].to_pylist(), table["group"].to_pylist()
