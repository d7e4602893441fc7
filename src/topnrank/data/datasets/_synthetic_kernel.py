"""Compiled parts of the synthetic data: which items each user takes, how much the user likes them, and when.

One thread draws everything from the generator it is given, so the numbers never depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topnrank.kernels.jit import kernel


class Market(NamedTuple):
    """What the items of each user are drawn from."""

    cumulative: NDArray[np.float64]
    """(n_items,) running sum of the items' popularity, last entry 1."""
    first: NDArray[np.int32]
    """(n_items,) the first item whose running sum exceeds 0, 1/n_items, 2/n_items, ...: where to look for a draw."""
    user_factors: NDArray[np.float32]
    """(n_users, k) tastes."""
    item_factors: NDArray[np.float32]
    """(n_items, k) what each item offers to each taste."""
    pull: float
    """Log-odds that one unit of affinity adds to taking an item that is met."""


@kernel
def affinity(market: Market, user: int, item: int) -> float:
    """Inner product of the factors of `user` and `item`."""
    total = 0.0
    for factor in range(market.user_factors.shape[1]):
        total += market.user_factors[user, factor] * market.item_factors[item, factor]
    return float(total)


@kernel
def acceptance(market: Market, user: int, item: int) -> float:
    """Probability that `user` takes `item` on meeting it; 1/2 where the user has no taste for or against it."""
    return float(1.0 / (1.0 + np.exp(-market.pull * affinity(market, user, item))))


@kernel
def _meet(market: Market, rng: np.random.Generator) -> int:
    """An item by popularity; unlike a binary search, a few steps from `first` cost the same in every catalog."""
    draw = rng.random()
    item = market.first[int(draw * market.first.size)]
    while market.cumulative[item] <= draw:
        item += 1
    return int(item)


@kernel
def _exponential(rng: np.random.Generator) -> float:
    """A standard exponential number; a third of the compile time of the generator's own method."""
    return float(-np.log(1.0 - rng.random()))


@kernel
def _meet_and_take(
    market: Market, user: int, chosen: NDArray[np.int32], taken_by: NDArray[np.int32], rng: np.random.Generator
) -> None:
    """Fill `chosen` by meeting items by popularity until enough new ones were taken; `taken_by` marks the old ones."""
    filled = 0
    while filled < chosen.size:
        item = _meet(market, rng)
        if taken_by[item] != user and rng.random() < acceptance(market, user, item):
            taken_by[item] = user
            chosen[filled] = item
            filled += 1


@kernel
def _race_all(market: Market, user: int, chosen: NDArray[np.int32], rng: np.random.Generator) -> None:
    """Fill `chosen` with the first arrivals when every item arrives after an exponential time of its own rate.

    The same law as `_meet_and_take` at a fixed cost per item: the choice where most meetings would be repeats.
    """
    n_items = market.cumulative.size
    arrivals = np.empty(n_items, np.float64)
    before = 0.0
    for item in range(n_items):
        rate = (market.cumulative[item] - before) * acceptance(market, user, item)
        before = market.cumulative[item]
        arrivals[item] = _exponential(rng) / rate
    latest = np.sort(arrivals)[chosen.size - 1]  # np.partition takes Numba ten seconds to compile
    filled = 0
    for item in range(n_items):
        if arrivals[item] <= latest and filled < chosen.size:
            chosen[filled] = item
            filled += 1


@kernel
def _choose_items(indptr, market, rng, indices):
    n_items = market.cumulative.size
    taken_by = np.full(n_items, -1, np.int32)
    for user in range(indptr.size - 1):
        chosen = indices[indptr[user] : indptr[user + 1]]
        if chosen.size * 8 < n_items:
            _meet_and_take(market, user, chosen, taken_by, rng)
        else:
            _race_all(market, user, chosen, rng)


def choose_items(indptr: NDArray[np.int64], market: Market, rng: np.random.Generator) -> NDArray[np.int32]:
    """Items of each user, (n_rows,), drawn without replacement, in no particular order within a user.

    The probability of an item is its popularity times its `acceptance`.
    """
    indices = np.empty(indptr[-1], np.int32)
    _choose_items(indptr, market, rng, indices)
    return indices


@kernel
def _affinities(indptr, indices, market, liking):
    for user in range(indptr.size - 1):
        for row in range(indptr[user], indptr[user + 1]):
            liking[row] = affinity(market, user, indices[row])


def affinities(indptr: NDArray[np.int64], indices: NDArray[np.int32], market: Market) -> NDArray[np.float32]:
    """`affinity` of each row, (n_rows,)."""
    liking = np.empty(indices.size, np.float32)
    _affinities(indptr, indices, market, liking)
    return liking


@kernel
def _rating_times(indptr, first, rng, times):
    for user in range(indptr.size - 1):
        start, length = indptr[user], indptr[user + 1] - indptr[user]
        now = first[user]
        for place in range(length):
            # inside-out shuffle: the newest second goes to a random row, whose old second moves to the end
            swap = start + np.int64(rng.random() * (place + 1))
            times[start + place] = times[swap]
            times[swap] = now
            now += 1 + np.int64(30.0 * _exponential(rng))
            if rng.random() * length < 0.5:
                now += np.int64(100 * 86400 * _exponential(rng))


def rating_times(indptr: NDArray[np.int64], first: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Second of each row, (n_rows,): a user rates in random order from `first[user]` on, no two rows at once.

    Half a minute goes by between two ratings; about every second user comes back once, some months later.
    """
    times = np.empty(indptr[-1], np.int64)
    _rating_times(indptr, first, rng, times)
    return times
