"""The options of a recommendation: which items a user may get, checked once for the whole request."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from topnrank._checks import is_number, one_of, require_integer
from topnrank._typing import BoolArray, Float32Array, IdArray, Int32Array, Int64Array
from topnrank.data.frames import as_table
from topnrank.data.ids import as_array
from topnrank.errors import DataError, ParameterError, UnknownIdError
from topnrank.kernels.top_items import top_items, top_items_by_group
from topnrank.models.parameters import require

if TYPE_CHECKING:
    from topnrank.models.base import Model


# -- items by user ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PerUser:
    """Item numbers of some users; who is not among them is not restricted."""

    items: dict[str, Int64Array]
    """By the text of the user's id, so that "42" and 42 are one user"""

    @classmethod
    def of(cls, model: "Model", option: str, mapping: Mapping[Any, Any], users: list[str]) -> "PerUser":
        """Checks the items of every user; `option` is what errors call the mapping, `users` are its keys as text."""
        if len(set(users)) < len(users):
            twice = next(user for user in users if users.count(user) > 1)
            raise ParameterError(f"recommend: {option} names user {twice!r} twice; give each user once")
        lists = [_listed(option, user, items) for user, items in mapping.items()]
        ends = np.cumsum([0, *map(len, lists)])
        numbers = model.item_map.index([item for items in lists for item in items])
        if (numbers < 0).any():
            position = int(np.flatnonzero(numbers < 0)[0])
            owner = int(np.searchsorted(ends, position, side="right")) - 1
            raise UnknownIdError(
                f"recommend: {option} of user {list(mapping)[owner]!r}: the model does not know item "
                f"{lists[owner][position - ends[owner]]!r}; leave it out"
            )
        return cls({user: numbers[lo:hi] for user, (lo, hi) in zip(users, pairwise(ends), strict=True)})

    def forbid(self, scores: Float32Array, users: IdArray) -> None:
        """NaN where a user must not get an item; row r of `scores` belongs to users[r]."""
        for row, items in self._rows(users):
            scores[row, items] = np.nan

    def keep(self, scores: Float32Array, users: IdArray) -> None:
        """NaN wherever a user who is named here has no item here."""
        for row, items in self._rows(users):
            kept = scores[row, items]
            scores[row] = np.nan
            scores[row, items] = kept

    def _rows(self, users: IdArray) -> Iterator[tuple[int, Int64Array]]:
        for row, user in enumerate(users.tolist()):
            items = self.items.get(str(user))
            if items is not None:
                yield row, items


def users_of_model(model: "Model", option: str, keys: list[Any], *, strict: bool) -> list[str]:
    """The text of users' ids as the model writes them; who it does not know is an error when `strict`."""
    numbers = model.user_map.index(keys)
    known = model.user_ids_[np.maximum(numbers, 0)].tolist()
    if strict and (numbers < 0).any():
        stranger = keys[int(np.argmin(numbers))]
        raise UnknownIdError(f"recommend: {option} names user {stranger!r}, whom the model does not know; leave it out")
    return [str(own if number >= 0 else key) for own, number, key in zip(known, numbers, keys, strict=True)]


def users_of_histories(names: IdArray, option: str, keys: list[Any]) -> list[str]:
    """The text of users' ids, who must have a history: another one is mostly a slip of the pen."""
    known = set(map(str, names.tolist()))
    stranger = next((key for key in keys if str(key) not in known), None)
    if stranger is not None:
        raise UnknownIdError(f"recommend: {option} names user {stranger!r}, who has no history here; leave it out")
    return [str(key) for key in keys]


def _listed(option: str, user: Any, items: Any) -> list[Any]:
    if items is None or isinstance(items, Mapping):
        raise ParameterError(f"recommend: {option} of user {user!r} must be an item or a list of items, got {items!r}")
    listed: list[Any] = as_array(items).tolist()
    return listed


# -- groups, such as genres or brands, of which a list may hold only so many items -------------------------------------


def group_numbers(model: "Model", groups: Any) -> Int32Array:
    """(n_items,) a number for the group of each item of the model, -1 for one without a group.

    `groups` is {item: group} or a frame with the columns item and group; a group of None or NaN is none. Items the model
    does not know are passed over: catalogs are larger than what was ever bought.
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


# -- the request ------------------------------------------------------------------------------------------------------


UNKNOWN = ("error", "popular", "skip")
"""What may happen to users the model does not know."""


class SharedOptions(TypedDict, total=False):
    """Options of `Model.recommend` that can be the same for all users, explained there."""

    exclude_seen: bool
    items: Any
    exclude: Any
    min_score: float | None
    groups: Any
    max_per_group: int | None
    unknown: str


class RecommendOptions(SharedOptions, total=False):
    """Options of `Model.recommend` and `Model.recommend_to`, explained there."""

    histories: Any
    unknown_items: str


@dataclass(frozen=True)
class Request:
    """How many of which items: the options of `Model.recommend`, checked."""

    n: int
    exclude_seen: bool = True
    unknown: str = "error"
    banned: BoolArray | None = None
    """(n_items,) items nobody gets; None for none"""
    allowed: PerUser | None = None
    """Users who get only some items"""
    excluded: PerUser | None = None
    """Users who do not get some items"""
    min_score: float | None = None
    groups: Int32Array | None = None
    """(n_items,) numbers of groups, -1 for none"""
    max_per_group: int = 0

    @classmethod
    def of(cls, model: "Model", n: int, options: RecommendOptions, names: IdArray | None = None) -> "Request":
        """Checks the options of `Model.recommend`; `names` are the users asked for when the model knows none of them."""
        require_integer("recommend: n", n, 1)
        if not options:
            return cls(int(n))
        for name in options:
            one_of("recommend: an option", name, tuple(RecommendOptions.__annotations__))
        unknown = one_of("unknown", options.get("unknown", "error"), UNKNOWN)
        min_score, most = options.get("min_score"), options.get("max_per_group")
        if min_score is not None:
            number = is_number(min_score) or min_score in (math.inf, -math.inf)
            require(number, "recommend: min_score", "a number", min_score)
        if (options.get("groups") is None) != (most is None):
            missing = "max_per_group (how many items of one)" if most is None else "groups (each item's group)"
            raise ParameterError(f"recommend: groups and max_per_group go together; {missing} is missing")
        if most is not None:
            require_integer("recommend: max_per_group", most, 1)
        by_user = {}
        for option in ("items", "exclude"):
            given = options.get(option)
            if isinstance(given, Mapping):
                keys = list(given)
                if names is None:
                    users = users_of_model(model, option, keys, strict=unknown == "error")
                else:
                    users = users_of_histories(names, option, keys)
                by_user[option] = PerUser.of(model, option, given, users)
        return cls(
            int(n),
            bool(options.get("exclude_seen", True)),
            unknown,
            _banned(model, options.get("items"), options.get("exclude")),
            by_user.get("items"),
            by_user.get("exclude"),
            None if min_score is None else float(min_score),
            None if most is None else group_numbers(model, options.get("groups")),
            0 if most is None else int(most),
        )

    def best(self, scores: Float32Array) -> Int64Array:
        """(n_rows, n) the items of each row's list, best first, -1 for none; NaN is no candidate."""
        block, n = np.ascontiguousarray(scores, np.float32), min(self.n, scores.shape[1])
        if self.groups is None:
            return top_items(block, n)
        return top_items_by_group(block, n, self.groups, self.max_per_group)


def _banned(model: "Model", items: Any, exclude: Any) -> BoolArray | None:
    """What `items` and `exclude` take from everybody."""
    items = None if isinstance(items, Mapping) else items
    exclude = None if isinstance(exclude, Mapping) else exclude
    if items is None and exclude is None:
        return None
    banned = np.full(len(model.item_map), items is not None)
    if items is not None:
        banned[model.item_numbers(items)] = False
    if exclude is not None:
        banned[model.item_numbers(exclude)] = True
    if banned.all():
        raise ParameterError("recommend: no item is left after `items` and `exclude`; allow at least one")
    return banned
