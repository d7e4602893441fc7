"""What is asked of a model when it recommends: the options, checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from topnrank._typing import BoolArray, Float32Array, IdArray, Int32Array, Int64Array
from topnrank.errors import ParameterError, one_of
from topnrank.kernels.selection import top_items_by_group
from topnrank.kernels.serving import top_items
from topnrank.models.checks import check_n
from topnrank.models.item_groups import group_numbers
from topnrank.models.per_user import PerUser, users_of_histories, users_of_model

if TYPE_CHECKING:
    from topnrank.models.base import Model

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
    """How many of which items."""

    n: int
    exclude_seen: bool
    unknown: str
    banned: BoolArray
    """(n_items,) items nobody gets"""
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
        n = check_n("recommend", n)
        items, exclude = (options.get(name) for name in ("items", "exclude"))
        unknown = one_of("unknown", options.get("unknown", "error"), UNKNOWN)
        strict = unknown == "error"
        allowed, excluded = (_per_user(model, name, options, names, strict) for name in ("items", "exclude"))
        groups, most = _groups(model, options)
        return cls(
            n,
            bool(options.get("exclude_seen", True)),
            unknown,
            _banned(model, items, exclude),
            allowed,
            excluded,
            _min_score(options.get("min_score")),
            groups,
            most,
        )

    def restrict(self, scores: Float32Array, users: IdArray | None) -> None:
        """NaN for whatever must not be recommended; row r of `scores` belongs to users[r]."""
        if self.banned.any():
            np.copyto(scores, np.float32(np.nan), where=self.banned)
        if users is None:
            return
        if self.allowed is not None:
            self.allowed.keep(scores, users)
        if self.excluded is not None:
            self.excluded.forbid(scores, users)

    def best(self, scores: Float32Array) -> Int64Array:
        """(n_rows, n) the items of each row's list, best first, -1 for none; NaN is no candidate."""
        block, n = np.ascontiguousarray(scores, np.float32), min(self.n, scores.shape[1])
        if self.groups is None:
            best: Int64Array = top_items(block, n)
        else:
            best = top_items_by_group(block, n, self.groups, self.max_per_group)
        return best


def check_names(options: RecommendOptions) -> None:
    """Refuses an option that does not exist."""
    for name in options:
        one_of("recommend: an option", name, tuple(RecommendOptions.__annotations__))


def _per_user(
    model: "Model", option: Literal["items", "exclude"], options: RecommendOptions, names: IdArray | None, strict: bool
) -> PerUser | None:
    """The option where it is given by user."""
    given = options.get(option)
    if not isinstance(given, Mapping):
        return None
    if names is None:
        return PerUser.of(model, option, given, users_of_model(model, option, list(given), strict=strict))
    return PerUser.of(model, option, given, users_of_histories(names, option, list(given)))


def _banned(model: "Model", items: Any, exclude: Any) -> BoolArray:
    """What `items` and `exclude` take from everybody."""
    banned = np.zeros(len(model.item_map), np.bool_)
    if items is not None and not isinstance(items, Mapping):
        banned[:] = True
        banned[model.item_numbers(items)] = False
    if exclude is not None and not isinstance(exclude, Mapping):
        banned[model.item_numbers(exclude)] = True
    if banned.all():
        raise ParameterError("recommend: no item is left after `items` and `exclude`; allow at least one")
    return banned


def _min_score(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        raise ParameterError(f"recommend: min_score must be a number, got {value!r}")
    return float(value)


def _groups(model: "Model", options: RecommendOptions) -> tuple[Int32Array | None, int]:
    groups, most = options.get("groups"), options.get("max_per_group")
    if groups is None and most is None:
        return None, 0
    if groups is None or most is None:
        missing = "groups (each item's group)" if groups is None else "max_per_group (how many items of one)"
        raise ParameterError(f"recommend: groups and max_per_group go together; {missing} is missing")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise ParameterError(f"recommend: max_per_group must be a whole number of at least 1, got {most!r}")
    return group_numbers(model, groups), int(most)
