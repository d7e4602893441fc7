"""Items that an option of `recommend` gives for each user: {user: items}."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import Float32Array, IdArray, Int64Array
from topnrank.data.ids import as_array
from topnrank.errors import ParameterError, UnknownIdError

if TYPE_CHECKING:
    from topnrank.models.base import Model


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
