"""Histories of users never seen, one or many, as item numbers and ratings."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import BoolArray, Float32Array, Float64Array, IdArray, Int64Array, IntArray
from topnrank.data.ids import as_array
from topnrank.data.interactions import Interactions
from topnrank.data.order import TimedItems, oldest_first, rule_of_ties
from topnrank.errors import ParameterError, UnknownIdError

if TYPE_CHECKING:
    from topnrank.models.base import Model

UNKNOWN_ITEMS = ("error", "skip")
"""What may happen to items of a history that the model does not know."""


@dataclass(frozen=True, eq=False)
class Histories:
    """CSR of histories, each of at least one item and no item twice."""

    names: IdArray | None
    """(n,) who they belong to; None for the one history of somebody without a name"""
    indptr: Int64Array
    """(n + 1,)"""
    items: Int64Array
    """(n_rows,) item numbers"""
    values: Float64Array
    """(n_rows,) ratings or weights; NaN for all rows of a history that has none"""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, chosen: IntArray) -> "Histories":
        """The histories at `chosen`, in that order."""
        rows = np.concatenate([np.arange(self.indptr[k], self.indptr[k + 1]) for k in chosen])
        names = None if self.names is None else self.names[chosen]
        return Histories(names, _indptr(np.diff(self.indptr)[chosen]), self.items[rows], self.values[rows])

    def part(self, chosen: slice) -> "Histories":
        """A run of histories, without copies."""
        first, last, _ = chosen.indices(len(self))
        rows = slice(int(self.indptr[first]), int(self.indptr[last]))
        names = None if self.names is None else self.names[chosen]
        return Histories(names, self.indptr[first : last + 1] - rows.start, self.items[rows], self.values[rows])

    def owners(self) -> Int64Array:
        """(n_rows,) the number of the history each row belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def of(self, number: int) -> Int64Array:
        """The items of one history."""
        return self.items[self.indptr[number] : self.indptr[number + 1]]

    def whose(self, number: int) -> str:
        """Words for a history in error messages."""
        return "the history" if self.names is None else f"the history of user {self.names.tolist()[number]!r}"


def score_all(model: "Model", histories: Histories) -> Float32Array:
    """(n, n_items) scores; histories with and without ratings go to the model apart."""
    rated = ~np.isnan(histories.values[histories.indptr[:-1]])
    if rated.all() or not rated.any():
        values = histories.values if rated[0] else None
        return model.score_histories(histories.indptr, histories.items, values).astype(np.float32, copy=False)
    scores = np.empty((len(histories), len(model.item_map)), np.float32)
    for group in (rated, ~rated):
        scores[group] = score_all(model, histories.take(np.flatnonzero(group)))
    return scores


def one_history(model: "Model", history: Any, unknown_items: str = "error") -> Histories:
    """The history of one user without a name."""
    return _histories(model, None, [_entries("the history", history)], unknown_items)


def many_histories(model: "Model", histories: Any, unknown_items: str = "error") -> Histories:
    """Histories by name, or the rows of an `Interactions` of users that are all new."""
    if isinstance(histories, Interactions):
        return _of_interactions(model, histories, unknown_items)
    if not isinstance(histories, Mapping):
        raise ParameterError(
            "histories must be a mapping {user: history} or Interactions of new users, "
            f"got {type(histories).__name__}; a single history goes to history=..."
        )
    if not histories:
        raise ParameterError("there are no histories; give at least one user")
    names = _names(list(histories))
    entries = [_entries(f"the history of user {name!r}", history) for name, history in histories.items()]
    return _histories(model, names, entries, unknown_items)


def _names(names: list[Any]) -> IdArray:
    """Names as a column of one type."""
    array = as_array(names)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "O" and all(isinstance(name, str) for name in names):
        return array
    raise ParameterError("the users of histories must be named by integers or by text, all alike")


class _Entries(NamedTuple):
    """One history as it was given."""

    items: list[Any]
    values: list[float]
    """Finite ratings, or NaN for each when there are none at all"""


def _entries(whose: str, history: Any) -> _Entries:
    """Items and ratings of a list of items, a list of pairs or a dict; `whose` is what errors call the history."""
    if isinstance(history, str | bytes) or not isinstance(history, Iterable):
        raise ParameterError(
            f"{whose}: a history is a list of items or (item, rating) pairs, or a dict, got {history!r}"
        )
    given = list(history.items()) if isinstance(history, Mapping) else list(history)
    if not given:
        raise ParameterError(f"{whose} is empty; give at least one item")
    if not any(isinstance(entry, tuple | list) for entry in given):
        return _Entries(given, [math.nan] * len(given))
    pairs = [entry if isinstance(entry, tuple | list) else (entry, None) for entry in given]
    if any(len(pair) != 2 for pair in pairs):
        raise ParameterError(f"{whose} must hold items, or pairs (item, rating), or be a dict {{item: rating}}")
    items, ratings = [item for item, _ in pairs], [rating for _, rating in pairs]
    if all(rating is None for rating in ratings):
        return _Entries(items, [math.nan] * len(items))
    try:
        values: list[float] = np.array(ratings, np.float64).tolist()
    except (TypeError, ValueError):
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise ParameterError(f"{whose}: ratings must be finite numbers, for all items or none, got {ratings}")
    return _Entries(items, values)


def _histories(model: "Model", names: IdArray | None, entries: list[_Entries], unknown_items: str) -> Histories:
    """The histories with items by number; ParameterError or UnknownIdError where an item is unknown or stands twice."""
    items = [item for one in entries for item in one.items]
    values = np.array([value for one in entries for value in one.values], np.float64)
    indptr = _indptr([len(one.items) for one in entries])
    raw = Histories(names, indptr, model.fitted.items.index(items), values)
    known = _require_known(model, raw, unknown_items, lambda rows: [items[row] for row in rows])
    owners = known.owners() if len(known) > 1 else np.zeros(known.items.size, np.int64)
    if len(set(zip(owners.tolist(), known.items.tolist(), strict=True))) < known.items.size:
        cells = owners * (known.items.max() + 1) + known.items
        again = np.setdiff1d(np.arange(cells.size), np.unique(cells, return_index=True)[1])[0]
        raise ParameterError(f"an item stands twice in {known.whose(int(owners[again]))}; give each item once")
    return known


def _of_interactions(model: "Model", data: Interactions, unknown_items: str) -> Histories:
    """Ratings where there are some, else weights; events weigh what they weighted in training."""
    weighted = model.weigh(data)
    pairs = weighted.take(weighted.pair_starts)
    lonely = np.flatnonzero(np.diff(pairs.indptr) == 0)
    if lonely.size:
        raise ParameterError(
            f"the history of user {pairs.users.ids[lonely[:1]].tolist()[0]!r} is empty; give every user at least "
            "one row, or leave such users out with data.compact()"
        )
    given = pairs.ratings if pairs.ratings is not None else pairs.weights
    values = np.full(len(pairs), np.nan) if given is None else given.astype(np.float64)
    order = np.arange(len(pairs))
    if pairs.timestamps is not None:  # a history goes from the oldest item to the latest
        order = oldest_first(pairs, TimedItems.of(pairs, pairs.timestamps), rule_of_ties(pairs), 0)
    indices = pairs.indices[order]
    raw = Histories(pairs.users.ids, pairs.indptr, model.item_map.index(pairs.items.ids)[indices], values[order])
    return _require_known(model, raw, unknown_items, lambda rows: pairs.items.ids[indices[rows]].tolist())


def _require_known(
    model: "Model", raw: Histories, unknown_items: str, ids_of: Callable[[Int64Array], list[Any]]
) -> Histories:
    """Without items that the model does not know, or an error that names them; `ids_of` gives the ids of some rows."""
    one_of("unknown_items", unknown_items, UNKNOWN_ITEMS)
    known: BoolArray = raw.items >= 0
    if known.all():
        return raw
    sizes = np.bincount(raw.owners()[known], minlength=len(raw))
    if sizes.all() and unknown_items == "skip":
        return Histories(raw.names, _indptr(sizes), raw.items[known], raw.values[known])
    number = int(np.argmin(sizes)) if not sizes.all() else int(raw.owners()[~known][0])
    rows = np.arange(raw.indptr[number], raw.indptr[number + 1])
    missing = [repr(item) for item in ids_of(rows[~known[rows]])]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    cure = "leave it out, here or with unknown_items='skip'" if sizes[number] else "and it holds nothing else"
    raise UnknownIdError(
        f"{raw.whose(number)}: the model does not know item {', '.join(missing[:5])}{more}; {cure}; the model was "
        f"trained on {len(model.item_map)} items, for example {model.item_ids_.item(0)!r}"
    )


def _indptr(sizes: Sequence[int] | IntArray) -> Int64Array:
    """Where histories of these sizes begin and end."""
    indptr = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return indptr
