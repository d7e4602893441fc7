"""Splits into train and test rows: per user at random, per user the last items or session, or by one point in time.

Both parts keep the id maps of the data, so indices agree between them. Rows of one user and item (several feedback
types) stay together in the per-user splits; "items" below are the distinct items of a user.
"""

import math
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np

from topnrank._checks import require_fraction, require_integer, require_number
from topnrank._typing import BoolArray, Int64Array
from topnrank.data.interactions import Interactions, Ties
from topnrank.data.order import TimedItems, id_words, oldest_first, pair_draws, rule_of_ties, times_of
from topnrank.errors import DataError, ParameterError
from topnrank.rng import mix, stream

Split = tuple[Interactions, Interactions]
"""(train, test)"""


def split_per_user(data: Interactions, *, test: float = 0.5, seed: int = 0) -> Split:
    """Of each user's m items, floor(m * test) at random go to the test part, so at least one stays for training.

    An item's draw depends only on seed, user id and item id, not on other users, other items or the order of rows.
    """
    require_fraction("test", test)
    require_integer("seed", seed)
    pairs = np.flatnonzero(data.pair_starts)
    users = data.user_index[pairs]
    draws = pair_draws(data, pairs, seed)
    # Pairs are sorted by user already; user and draw in one word need one sort instead of two.
    order = np.argsort((users.astype(np.uint64) << np.uint64(32)) | (draws >> np.uint64(32)), kind="stable")
    counts = np.bincount(users, minlength=data.n_users)
    n_test = np.minimum(np.floor(counts * test + 1e-9).astype(np.int64), np.maximum(counts - 1, 0))
    chosen = _last_of_each(order, counts, n_test)
    return _parts(data, chosen, f"test={test}, and every user keeps an item in train", "per-user")


def hold_out(
    data: Interactions, *, by: str = "per-user", share: float = 0.2, users: int = 3000, seed: int = 0
) -> Split | None:
    """Rows by which settings are chosen, as the split `by` holds rows out; None where there are none to hold out.

    "per-user": of users with at least 3 items floor(share m) of their m items at random, but at least one. "last": the
    latest item of each of them. "time": the latest rows of all users, as far as these have earlier rows. Only of so many
    `users`: more would cost more and tell little more. Which ones depends on seed and ids alone.
    """
    if by == "time":
        return _hold_out_latest(data, share, users, seed)
    pairs = np.flatnonzero(data.pair_starts)
    owners = data.user_index[pairs]
    counts = np.bincount(owners, minlength=data.n_users)
    n_test = np.maximum(1, np.floor(counts * (share if by == "per-user" else 0.0) + 1e-9)).astype(np.int64)
    n_test[~_some_of(data, counts >= 3, users, seed)] = 0
    if not n_test.any():
        return None
    if by == "per-user":
        order = np.lexsort((pair_draws(data, pairs, seed), owners))
    else:
        events = TimedItems.of(data, times_of(data, "hold_out", "per-user"))
        order = oldest_first(data, events, rule_of_ties(data), seed)
    return _parts(data, _last_of_each(order, counts, n_test), "at least 3 items")


def _hold_out_latest(data: Interactions, share: float, users: int, seed: int) -> Split | None:
    """`hold_out` by time."""
    try:
        train, rest = _cut(data, share)
    except DataError:  # most rows are of one moment
        return None
    both = (np.diff(train.indptr) > 0) & (np.diff(rest.indptr) > 0)
    kept = _some_of(data, both, users, seed)
    return (train, rest.take(kept[rest.user_index])) if kept.any() else None


def _some_of(data: Interactions, able: BoolArray, users: int, seed: int) -> BoolArray:
    """(n_users,) mask of so many of the users who are `able`, drawn by their ids."""
    drawn = np.flatnonzero(able)
    chosen = able.copy()
    if drawn.size > users:
        words = mix(id_words(data.users.ids[drawn]) ^ stream(seed, "users").integers(0, 2**64, dtype=np.uint64))
        chosen[drawn[np.argsort(words, kind="stable")[users:]]] = False
    return chosen


def split_last(data: Interactions, *, test: int = 1, ties: str = "random", seed: int = 0) -> Split:
    """Of each user's m items, the last min(test, m - 1) by timestamp go to the test part.

    Parameters
    ----------
    data
        Interactions with timestamps.
    test
        Items of each user.
    ties
        Which of a user's items of one moment is the later one: "random" (drawn from `seed` and the ids alone), "file" (the
        one further down in the file, of data that were read with keep_order=True), "item" (the larger item id: a model could
        learn that, see `order_facts`), or "error" where there are such items.
    seed
        Another seed, another random order.
    """
    if isinstance(test, bool) or not isinstance(test, (int, np.integer)) or test < 1:
        raise ParameterError(f"test must be an integer number of items per user, at least 1, got {test!r}")
    require_integer("seed", seed)
    events = TimedItems.of(data, times_of(data, "split_last", "split_per_user"))
    counts = np.bincount(events.users, minlength=data.n_users)
    n_test = np.minimum(int(test), np.maximum(counts - 1, 0))
    chosen = _last_of_each(oldest_first(data, events, ties, seed), counts, n_test)
    parts = _parts(data, chosen, f"test={test}, and every user keeps an item in train", "last")
    return _with_ties(parts, Ties(ties, events.tied_share()))


def split_last_session(data: Interactions, *, gap: float) -> Split:
    """The last session of each user with two or more goes to the test part.

    A session ends where more than `gap` seconds (units of the timestamps) pass before the user's next item; items of one
    moment are of one session, so that no rule for ties is needed.
    """
    require_number("gap", gap, above=0)
    events = TimedItems.of(data, times_of(data, "split_last_session", "split_per_user"))
    order = np.lexsort((events.times, events.users))
    users, times = events.users[order], events.times[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(users) != 0) | (np.diff(times) > gap)
    session = np.cumsum(begins)
    last, first = (np.zeros(data.n_users, np.int64) for _ in range(2))
    last[users] = session
    first[users[::-1]] = session[::-1]
    chosen = np.zeros(len(order), np.bool_)
    chosen[order] = (session == last[users]) & (last[users] > first[users])
    parts = _parts(data, chosen, f"gap={gap:g}, and every user keeps a session in train", "last")
    return _with_ties(parts, Ties("together", events.tied_share()))


def split_time(data: Interactions, *, test: float = 0.2, at: int | str | date | None = None) -> Split:
    """Rows from one point in time on, the same for all users, go to the test part.

    Parameters
    ----------
    data
        Interactions with timestamps.
    test
        Fraction of the latest rows; rows with equal timestamps stay together, so the test part may be a little larger.
    at
        First timestamp of the test part; `test` is then not used. Where timestamps are seconds since 1970, as dates in files
        become, it may be a date or a moment, such as "2026-01-01" or "2026-01-01T12:00" (UTC).
    """
    parts = _cut(data, test, _seconds(at) if isinstance(at, str | date) else at)
    return _with_ties(parts, Ties("together", TimedItems.of(data, times_of(data, "", "")).tied_share()))


def _cut(data: Interactions, test: float, at: int | None = None) -> Split:
    """`split_time`, which says nothing of ties."""
    timestamps = times_of(data, "split_time", "split_per_user")
    if at is None:
        require_fraction("test", test)
        n_train = min(len(timestamps) - math.floor(len(timestamps) * test + 1e-9), len(timestamps) - 1)
        at = int(np.partition(timestamps, n_train)[n_train])
    chosen = timestamps >= at
    if chosen.all() or not chosen.any():
        part = "train" if chosen.all() else "test"
        raise DataError(
            f"the split at timestamp {at} leaves no rows for {part}: timestamps lie between {timestamps.min()} and "
            f"{timestamps.max()}; choose another moment"
        )
    train, rest = data.take(~chosen), data.take(chosen)
    return replace(train, split=data.split or "time"), replace(rest, split=data.split or "time")


def _seconds(at: str | date) -> int:
    """Seconds since 1970 of a date or moment, in UTC unless it names a zone."""
    try:
        moment = datetime.fromisoformat(at if isinstance(at, str) else at.isoformat())
    except ValueError:
        raise ParameterError(f"at must be a timestamp or a date such as '2026-01-01', got {at!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _last_of_each(order: Int64Array, counts: Int64Array, n_last: Int64Array) -> BoolArray:
    """(n_pairs,) mask of the last `n_last` pairs of each user; `order` sorts the pairs within their users."""
    ends = np.cumsum(counts)
    place = np.arange(len(order), dtype=np.int64)
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order] = place >= np.repeat(ends - n_last, counts)
    return chosen


def _parts(data: Interactions, chosen: BoolArray, rule: str, by: str | None = None) -> Split:
    """Train and test rows of the chosen pairs, which keep how they were split first."""
    if not chosen.any():
        raise DataError(f"no user has items enough for the test part ({rule}); use data with longer lists")
    rows = chosen[np.cumsum(data.pair_starts) - 1]
    train, test = data.take(~rows), data.take(rows)
    return replace(train, split=data.split or by), replace(test, split=data.split or by)


def _with_ties(parts: Split, ties: Ties) -> Split:
    """The parts, which keep what the first split by time said of ties."""
    train, test = parts
    return replace(train, ties=train.ties or ties), replace(test, ties=test.ties or ties)
