"""Popularity that fades with age: counts of recent rows, and the half-life that ranks the latest rows best."""

import math
from typing import NamedTuple, Self

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Float64Array, Int64Array
from topnrank.data.feedback.recency import DAY
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError

TENTHS = (9, 8, 7)
"""The half-life is chosen on these tenths of the pairs by time, 9 for the latest, each ranked by the pairs before it."""
HALVINGS = 10
"""Half-lives to choose from: never, and the time that the rows span halved once, twice, ..., so many times."""
CUT = 10
"""They are judged by NDCG at this cut."""


class TimedPairs(NamedTuple):
    """Distinct pairs of users and items by number, each with the timestamp of its latest row in seconds; (n_pairs,) each."""

    users: Int64Array
    items: Int64Array
    times: Int64Array

    @classmethod
    def of(cls, data: Interactions, who: str) -> Self:
        """The pairs of `data`; DataError without timestamps, which `who` needs."""
        if data.timestamps is None:
            raise DataError(f"{who} needs timestamps and the data have none; name their column or use Popularity")
        starts = np.flatnonzero(data.pair_starts)
        times = np.maximum.reduceat(data.timestamps, starts) if len(starts) else data.timestamps
        return cls(data.user_index[starts].astype(np.int64), data.indices[starts].astype(np.int64), times)

    def where(self, chosen: BoolArray) -> Self:
        """The pairs of the mask `chosen`."""
        return type(self)(self.users[chosen], self.items[chosen], self.times[chosen])


def recent_counts(pairs: TimedPairs, n_items: int, half_life: float, latest: int | None = None) -> Float64Array:
    """(n_items,) the users of each item, each counting 2^(-age / half_life).

    Ages and `half_life` are in days; the moment `latest`, else the latest pair, has age 0. `math.inf` counts every pair
    fully.
    """
    if not len(pairs.items):
        return np.zeros(n_items)
    ages = ((pairs.times.max() if latest is None else latest) - pairs.times) / DAY
    return np.bincount(pairs.items, weights=np.exp2(-ages / half_life), minlength=n_items).astype(np.float64)


class ItemPopularity(NamedTuple):
    """How popular items are, of late where there are times."""

    scores: Float32Array
    """(n_items,) ln(1 + users / mean), with a standard deviation of 1"""
    half_life: float | None
    """Days after which a row counts half; None where rows have no times, or never fade"""


def item_popularity(data: Interactions, half_life: float | None = None) -> ItemPopularity:
    """Popularity as a part of a score: that of late with a half-life in days, by default the `best_half_life`."""
    half_life = best_half_life(data) if half_life is None else half_life
    if data.timestamps is None or math.isinf(half_life):
        counts = np.bincount(data.indices[data.pair_starts], minlength=data.n_items).astype(np.float64)
        return popularity_of(counts, math.inf)
    pairs = TimedPairs.of(data, "popularity")
    return popularity_of(recent_counts(pairs, data.n_items, half_life), half_life)


def best_half_life(data: Interactions) -> float:
    """The half-life in days by which earlier rows rank later ones best; `math.inf` for never, as without times."""
    return math.inf if data.timestamps is None else choose_half_life(TimedPairs.of(data, "popularity"), data.n_items)


def popularity_of(counts: Float64Array, half_life: float) -> ItemPopularity:
    """The popularity of items with these counts, in which rows fade with this half-life; `math.inf` for never."""
    scores = np.log1p(counts / max(float(counts.mean()), 1e-12))
    scores = (scores / max(float(scores.std()), 1e-12)).astype(np.float32)
    return ItemPopularity(scores, None if math.isinf(half_life) else half_life)


def choose_half_life(pairs: TimedPairs, n_items: int) -> float:
    """The half-life in days by which earlier pairs rank later ones best; `math.inf` for never.

    Each of the last three tenths of the pairs by time is ranked by the counts of all before it: NDCG@10 of every user with
    pairs on both sides, without the items of the earlier ones. Of the half-lives whose mean over users is within one
    standard error of the best one's, the longest is chosen.
    """
    if not len(pairs.items):
        return math.inf
    span = float(pairs.times.max() - pairs.times.min()) / DAY
    half_lives = [math.inf, *(span / 2.0**k for k in range(1, HALVINGS + 1))]
    ordered = np.sort(pairs.times)
    starts = [ordered[len(ordered) * tenth // 10] for tenth in TENTHS]
    rest, parts = pairs, []
    for start in starts:
        is_earlier = rest.times < start
        earlier = rest.where(is_earlier)
        of_both = np.isin(rest.users, np.intersect1d(earlier.users, rest.users[~is_earlier]))
        seen, asked = rest.where(is_earlier & of_both), rest.where(~is_earlier & of_both)
        counts = (recent_counts(earlier, n_items, half_life) for half_life in half_lives)
        parts.append(np.stack([_common_list_ndcg(one, seen, asked) for one in counts]))
        rest = earlier
    values = np.concatenate(parts, axis=1)
    if not values.size:
        return math.inf
    behind = values[np.argmax(values.mean(axis=1))] - values
    near = behind.mean(axis=1) <= behind.std(axis=1) / math.sqrt(values.shape[1])
    return half_lives[int(np.argmax(near))]


def _common_list_ndcg(counts: Float64Array, seen: TimedPairs, asked: TimedPairs) -> Float64Array:
    """(n_users,) NDCG@10 for the pairs `asked` of the items by falling count, without those the user has in `seen`."""
    ranks = np.empty(len(counts), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    # One number for user and rank: sorted, they tell how many of the user's seen items stand above another item.
    first, own = asked.users * len(counts), ranks[asked.items]
    above = np.sort(seen.users * len(counts) + ranks[seen.items])
    places = own - (np.searchsorted(above, first + own) - np.searchsorted(above, first))
    owner = np.unique(asked.users, return_inverse=True)[1]
    gains = np.bincount(owner, weights=np.where(places < CUT, 1.0 / np.log2(places + 2.0), 0.0))
    ideal = np.cumsum(1.0 / np.log2(np.arange(CUT) + 2.0))[np.minimum(np.bincount(owner), CUT) - 1]
    return np.asarray(gains / ideal, np.float64)
