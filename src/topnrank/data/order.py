"""The order of a user's rows in time: what happens to rows of one moment, and what timestamps and ids give away."""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topnrank._checks import one_of
from topnrank._typing import BoolArray, IdArray, Int64Array
from topnrank.data.duplicates import winners
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.rng import mix, stream

_Words = NDArray[np.uint64]
TIES = ("random", "file", "item", "error")
"""Rules for the items of one user at one moment: in random order, as in the file, ascending by item id, or not allowed."""
FAR_FROM_HALF = 0.1
"""Where the share of steps to a larger item id is further than this from one half, ids tell something of the order."""


def pair_draws(data: Interactions, pairs: Int64Array, seed: int, purpose: str = "split") -> _Words:
    """A random word for each of the rows `pairs`, a function of seed, purpose and original ids."""
    salt = stream(seed, purpose).integers(0, 2**64, size=2, dtype=np.uint64)
    users = mix(id_words(data.users.ids) ^ salt[0])
    items = mix(id_words(data.items.ids) ^ salt[1])
    return mix(users[data.user_index[pairs]] + items[data.indices[pairs]])


def id_words(ids: IdArray) -> _Words:
    """A 64-bit word for each id: the integer itself, or a digest of the text."""
    if ids.dtype.kind == "i":
        return ids.astype(np.int64).view(np.uint64)
    digests = b"".join(hashlib.blake2b(str(text).encode(), digest_size=8).digest() for text in ids.tolist())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def times_of(data: Interactions, who: str, instead: str) -> Int64Array:
    """The timestamps; DataError without them or without rows. `who` needs them, `instead` needs none."""
    if data.timestamps is None:
        raise DataError(f"{who} needs timestamps and the data have none; name their column or use {instead}")
    if len(data) == 0:
        raise DataError(f"{who} needs rows and the data have none")
    return data.timestamps


@dataclass(frozen=True)
class TimedItems:
    """The items of all users by user and number, each with the moment of its latest row; (n,) each."""

    rows: Int64Array
    """Where the first row of the item stands in the data"""
    users: Int64Array
    times: Int64Array
    places: Int64Array | None = None
    """Where the latest row stood in the file, as far as that is known"""

    @classmethod
    def of(cls, data: Interactions, times: Int64Array) -> Self:
        """The distinct items of each user."""
        rows = np.flatnonzero(data.pair_starts)
        latest = np.maximum.reduceat(times, rows) if len(rows) else times
        places = data.places
        if places is not None:
            places = places[winners(rows, len(places), [times, places])]
        return cls(rows, data.user_index[rows].astype(np.int64), latest, places)

    def tied(self) -> BoolArray:
        """(n,) whether the user has another item of the same moment."""
        order = np.lexsort((self.times, self.users))
        same = (np.diff(self.users[order]) == 0) & (np.diff(self.times[order]) == 0)
        tied = np.zeros(len(order), np.bool_)
        tied[order[1:]] |= same
        tied[order[:-1]] |= same
        return tied

    def tied_share(self) -> float:
        """The share of them that have."""
        times, n_users = self.times - self.times.min(), int(self.users.max()) + 1
        if n_users * (int(times.max()) + 1) >= 2**63:
            return float(self.tied().mean())
        keys = np.sort(self.users * (times.max() + 1) + times)  # much faster than to sort by both
        same = np.zeros(keys.size + 1, np.bool_)
        same[1:-1] = keys[1:] == keys[:-1]
        return float((same[1:] | same[:-1]).mean())


def oldest_first(data: Interactions, events: TimedItems, ties: str, seed: int) -> Int64Array:
    """(n,) the order of `events` by user and time; `ties` is the rule for items of one moment."""
    one_of("ties", ties, TIES)
    if ties == "error" and (tied := events.tied()).any():
        first = int(np.flatnonzero(tied)[0])
        user = data.users.ids[events.users[[first]]].tolist()[0]
        raise DataError(
            f"{int(tied.sum())} of {len(tied)} rows share their moment with another item of the same user, for example user "
            f"{user!r} at timestamp {events.times[first]}; give finer timestamps, or ties='random'"
        )
    keys = events.times, events.users
    if ties == "file":
        if events.places is None:
            raise DataError(
                "ties='file' needs the order of the rows, which these data do not keep; read them with keep_order=True"
            )
        return np.lexsort((events.places, *keys))
    if ties == "random":
        return np.lexsort((pair_draws(data, events.rows, seed, "items of one moment"), *keys))
    return np.lexsort(keys)


def rule_of_ties(data: Interactions) -> str:
    """How items of one moment are taken where nobody says: as in the file if that is known, else in random order."""
    return "random" if data.places is None else "file"


@dataclass(frozen=True)
class OrderFacts:
    """How much of the order of users' items the timestamps tell, and how much of it the item ids give away."""

    n_items: int
    """Items of all users"""
    n_tied: int
    """Items that share their moment with another one of the same user: their order is not known"""
    n_last: int
    """Users with two items or more"""
    n_last_tied: int
    """Those whose last item shares its moment with another one: which of them is the last is not known"""
    ascending: float
    """Share of the steps from one moment to a later one of a user that go to a larger item id"""
    last_ascending: float
    """The same for the last step of each user"""

    @property
    def ids_tell_order(self) -> bool:
        """Whether a model could learn a part of the order from ids alone."""
        shares = np.array([self.ascending, self.last_ascending])
        return bool((np.abs(shares - 0.5) > FAR_FROM_HALF).any())

    def __str__(self) -> str:
        words = (
            f"{_share(self.n_tied, self.n_items)} of the rows share their moment with another item of the same user; of "
            f"{_share(self.n_last_tied, self.n_last)} of the users the last item is not certain. Of the other steps "
            f"{self.ascending:.0%} go to a larger item id, of the last steps {self.last_ascending:.0%}"
        )
        if not self.ids_tell_order:
            return f"{words}."
        return (
            f"{words}: ids tell something of the order, so that a model may be right for the wrong reason; compare with "
            "ItemIdOrder, which knows nothing else."
        )


def order_facts(data: Interactions) -> OrderFacts:
    """What there is to know of the order of `data` before anything is claimed about order.

    A share of ascending steps far from one half comes from ids that follow release dates, or from rows that were sorted by
    id before somebody numbered them.
    """
    events = TimedItems.of(data, times_of(data, "order_facts", "split_per_user"))
    order, tied = oldest_first(data, events, "item", 0), events.tied()
    users, times, items = events.users[order], events.times[order], data.indices[events.rows[order]]
    ends = np.diff(users, append=-1) != 0
    busy = np.bincount(events.users, minlength=data.n_users)[users] > 1
    step = (np.diff(users) == 0) & (np.diff(times) > 0)
    up = np.diff(items) > 0
    last = step & ends[1:]
    return OrderFacts(
        n_items=len(order),
        n_tied=int(tied.sum()),
        n_last=int((ends & busy).sum()),
        n_last_tied=int((ends & tied[order]).sum()),
        ascending=float(up[step].mean()) if step.any() else 0.5,
        last_ascending=float(up[last].mean()) if last.any() else 0.5,
    )


def _share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.0%}"
