"""Splits into train and test rows: per user at random, per user the last ones, or by one point in time.

Both parts keep the id maps of the data, so indices agree between them. Rows of one user and item (several feedback
types) stay together in the per-user splits; "items" below are the distinct items of a user.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import BoolArray, IdArray, Int64Array
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.rng import mix, stream

_Words = NDArray[np.uint64]
Split = tuple[Interactions, Interactions]
"""(train, test)"""


def split_per_user(data: Interactions, *, test: float = 0.5, seed: int = 0) -> Split:
    """Of each user's m items, floor(m * test) at random go to the test part, so at least one stays for training.

    An item's draw depends only on seed, user id and item id, not on other users, other items or the order of rows.
    """
    _check_fraction(test)
    _check_seed(seed)
    pairs = np.flatnonzero(data.pair_starts)
    users = data.user_index[pairs]
    draws = _draws(data, pairs, seed)
    # Pairs are sorted by user already; user and draw in one word need one sort instead of two.
    order = np.argsort((users.astype(np.uint64) << np.uint64(32)) | (draws >> np.uint64(32)), kind="stable")
    counts = np.bincount(users, minlength=data.n_users)
    n_test = np.minimum(np.floor(counts * test + 1e-9).astype(np.int64), np.maximum(counts - 1, 0))
    return _parts(data, _last_of_each(order, counts, n_test), f"test={test}, and every user keeps an item in train")


def split_last(data: Interactions, *, test: int = 1) -> Split:
    """Of each user's m items, the last min(test, m - 1) by timestamp go to the test part; equal times by item index."""
    if isinstance(test, bool) or not isinstance(test, (int, np.integer)) or test < 1:
        raise ParameterError(f"test must be an integer number of items per user, at least 1, got {test!r}")
    timestamps = _timestamps(data, "split_last")
    pairs = np.flatnonzero(data.pair_starts)
    users = data.user_index[pairs]
    latest = np.maximum.reduceat(timestamps, pairs) if len(pairs) else timestamps
    counts = np.bincount(users, minlength=data.n_users)
    n_test = np.minimum(int(test), np.maximum(counts - 1, 0))
    chosen = _last_of_each(np.lexsort((latest, users)), counts, n_test)
    return _parts(data, chosen, f"test={test}, and every user keeps an item in train")


def split_time(data: Interactions, *, test: float = 0.2, at: int | None = None) -> Split:
    """Rows from one point in time on, the same for all users, go to the test part.

    Parameters
    ----------
    data
        Interactions with timestamps.
    test
        Fraction of the latest rows; rows with equal timestamps stay together, so the test part may be a little larger.
    at
        First timestamp of the test part; `test` is then not used.
    """
    timestamps = _timestamps(data, "split_time")
    if at is None:
        _check_fraction(test)
        n_train = min(len(timestamps) - math.floor(len(timestamps) * test + 1e-9), len(timestamps) - 1)
        at = int(np.partition(timestamps, n_train)[n_train])
    chosen = timestamps >= at
    if chosen.all() or not chosen.any():
        part = "train" if chosen.all() else "test"
        raise DataError(
            f"the split at timestamp {at} leaves no rows for {part}: timestamps lie between {timestamps.min()} and "
            f"{timestamps.max()}; choose another moment"
        )
    return data.take(~chosen), data.take(chosen)


def _last_of_each(order: Int64Array, counts: Int64Array, n_last: Int64Array) -> BoolArray:
    """(n_pairs,) mask of the last `n_last` pairs of each user; `order` sorts the pairs within their users."""
    ends = np.cumsum(counts)
    place = np.arange(len(order), dtype=np.int64)
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order] = place >= np.repeat(ends - n_last, counts)
    return chosen


def _parts(data: Interactions, chosen: BoolArray, rule: str) -> Split:
    """Train and test rows of the chosen pairs."""
    if not chosen.any():
        raise DataError(f"no user has items enough for the test part ({rule}); use data with longer lists")
    rows = chosen[np.cumsum(data.pair_starts) - 1]
    return data.take(~rows), data.take(rows)


def _timestamps(data: Interactions, function: str) -> Int64Array:
    if data.timestamps is None:
        raise DataError(f"{function} needs timestamps and the data have none; name their column or use split_per_user")
    if len(data) == 0:
        raise DataError(f"{function} needs rows and the data have none")
    return data.timestamps


def _check_fraction(test: float) -> None:
    if not isinstance(test, (int, float, np.number)) or not 0 < test < 1:
        raise ParameterError(f"test must be a fraction between 0 and 1, both excluded, got {test!r}")


def _check_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError(f"seed must be an integer of at least 0, got {seed!r}")


def _draws(data: Interactions, pairs: Int64Array, seed: int) -> _Words:
    """A random word for each pair, a function of seed and original ids."""
    salt = stream(seed, "split").integers(0, 2**64, size=2, dtype=np.uint64)
    users = mix(_words(data.users.ids) ^ salt[0])
    items = mix(_words(data.items.ids) ^ salt[1])
    return mix(users[data.user_index[pairs]] + items[data.indices[pairs]])


def _words(ids: IdArray) -> _Words:
    """A 64-bit word for each id: the integer itself, or a digest of the text."""
    if ids.dtype.kind == "i":
        return ids.astype(np.int64).view(np.uint64)
    digests = b"".join(hashlib.blake2b(str(text).encode(), digest_size=8).digest() for text in ids.tolist())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
