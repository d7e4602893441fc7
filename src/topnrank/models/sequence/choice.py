"""Choosing settings inside `fit`: on the last items of training users, or the latest rows, which are then put back."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.models.sequence._sequence_kernel import Links, places_in_block, places_of_next
from topnrank.models.sequence.links import LinkScores
from topnrank.models.sequence.parts import Beside, Part, recent_popularity, undirected
from topnrank.models.sequence.timeline import Timeline
from topnrank.rng import stream

USERS = 2500
"""Held-out users at most, drawn at random."""
LATEST = 0.2
"""Share of the rows that are held out as the latest."""
FEWEST_USERS = 50
"""Of fewer users the latest rows say too little."""
LEAST_ITEMS = 3
"""Users with fewer items are never held out."""
CUT = 10
"""Settings are judged by NDCG at this cut."""
ROUNDS = 2
AT_ONCE = 250
"""Users whose scores are held in memory at a time."""
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Weights of a further part that are tried, each as a share of the spread of the first part's scores."""
MORE_SHARES = (*SHARES, 3.2, 6.4, 12.8, 25.6, 100.0, 1e5)
"""Of recent popularity: what is asked for in the weeks after may be little else. The last one leaves nothing else."""
RECENCIES = (8.0, 32.0, 128.0)
WORTH = 1.002
"""A further part must improve the metric by this factor, or it is left out."""


@dataclass(frozen=True)
class HeldOutNext:
    """Liked rows held out as what comes next, the last one of some users or all the latest; and what is left of the rows."""

    rest: Timeline
    users: Int64Array
    wanted: Int32Array
    """(n_wanted,) the items held out"""
    owners: Int64Array
    """(n_wanted,) whose they are, as ascending positions in `users`"""
    ends_at_once: bool = False
    """Whether the rest ends at one moment for all users"""

    @classmethod
    def of(cls, timeline: Timeline, split: str | None = None) -> Self | None:
        """Held out as the data were split: the latest rows, or else last items; None where there are none."""
        return (cls.latest(timeline) if split == "time" else None) or cls.last(timeline)

    @classmethod
    def last(cls, timeline: Timeline) -> Self | None:
        """The last liked item of each user; None where no user has items enough."""
        events = timeline.events
        liked = np.flatnonzero(events.wanted > 0)
        last = np.zeros(len(events.indptr) - 1, np.int64)
        last[events.owners[liked]] = liked
        counts = np.bincount(events.owners[liked], minlength=last.size)
        users = np.flatnonzero(counts >= LEAST_ITEMS)
        if not users.size:
            return None
        users = _some(users, "held-out last items")
        kept = np.ones(len(events.items), np.bool_)
        for user in users:
            kept[last[user] : events.indptr[user + 1]] = False
        return cls(timeline.take(kept), users, events.items[last[users]], np.arange(users.size))

    @classmethod
    def latest(cls, timeline: Timeline) -> Self | None:
        """The liked rows of the latest fifth, of users with earlier rows; None where these are too few to choose by."""
        events, times = timeline.events, timeline.times
        moment = np.partition(times, int((1.0 - LATEST) * len(times)))[int((1.0 - LATEST) * len(times))]
        kept = times < moment
        earlier = np.bincount(events.owners[kept], minlength=len(events.indptr) - 1)
        asked = np.flatnonzero(~kept & (events.wanted > 0) & (earlier[events.owners] > 0))
        users = _some(np.unique(events.owners[asked]), "held-out latest rows")
        if users.size < FEWEST_USERS:
            return None
        asked = asked[np.isin(events.owners[asked], users)]
        owners = np.searchsorted(users, events.owners[asked])
        return cls(timeline.take(kept), users, events.items[asked], owners, ends_at_once=True)

    def ndcg(self, links: Links, bias: FloatArray, past: FloatArray) -> float:
        """NDCG@10 of the held-out items among all but the user's other ones; `past` (n, S) belongs to the rest's rows."""
        if self.ends_at_once:
            return float(self.values([Part(links, bias, past)], [[1.0]])[0])
        above, events = np.empty(self.users.size), self.rest.events
        weights: Float32Array = past.astype(np.float32)
        own = events.indptr, events.items
        places_of_next(links, bias.astype(np.float32), self.users, self.wanted, *own, weights, *own, above)
        return float(_discounts(above).mean())

    def values(self, parts: Sequence[Part], weights: Sequence[Sequence[float]]) -> Float64Array:
        """NDCG@10 of the sum of the parts with each of `weights`, which are as many as the parts."""
        return np.asarray(self.of_users(parts, weights).mean(axis=1), np.float64)

    def of_users(self, parts: Sequence[Part], weights: Sequence[Sequence[float]]) -> Float64Array:
        """(n_weights, n_users) the same, user by user."""
        events = self.rest.events
        scores = [
            LinkScores(one.links, one.bias.astype(np.float32), events.indptr, events.items, one.past.astype(np.float32))
            for one in parts
        ]
        gains = np.zeros((len(weights), self.users.size))
        for first in range(0, self.users.size, AT_ONCE):
            users = self.users[first : first + AT_ONCE]
            blocks = [one.block(users) for one in scores]
            rows = np.repeat(np.arange(users.size), np.diff(events.indptr)[users])
            own = np.concatenate([events.items[events.indptr[user] : events.indptr[user + 1]] for user in users])
            asked = slice(*np.searchsorted(self.owners, [first, first + users.size]))
            wanted, owners = self.wanted[asked], self.owners[asked] - first
            above = np.empty(wanted.size)
            for number, weight in enumerate(weights):
                block = np.sum(
                    [np.float32(one) * part for one, part in zip(weight, blocks, strict=True) if one], axis=0
                )
                mine = block[owners, wanted]
                block[rows, own] = -np.inf
                block[owners, wanted] = mine
                places_in_block(block, owners, wanted, above)
                np.add.at(gains[number], self.owners[asked], _discounts(above))
        return gains / self._ideals()

    def _ideals(self) -> Float64Array:
        """(n_users,) the DCG of the best list."""
        sizes = np.bincount(self.owners, minlength=self.users.size)
        return np.asarray(np.cumsum(_discounts(np.arange(CUT, dtype=np.float64)))[np.minimum(sizes, CUT) - 1])

    def spread(self, part: Part) -> float:
        """The mean standard deviation of the scores of some users."""
        events, users = self.rest.events, self.users[:AT_ONCE]
        weights = part.past.astype(np.float32)
        scores = LinkScores(part.links, part.bias.astype(np.float32), events.indptr, events.items, weights)
        return float(scores.block(users).std(axis=1, dtype=np.float64).mean())


def _some(users: Int64Array, purpose: str) -> Int64Array:
    """So many of the users, ascending, as are held out at most."""
    if users.size > USERS:
        users = np.sort(stream(0, purpose).permutation(users)[:USERS])
    return users.astype(np.int64)


def _discounts(above: FloatArray) -> Float64Array:
    """What items in these places, from 0 on, count in the DCG."""
    return np.where(above < CUT, 1.0 / np.log2(above + 2.0), 0.0)


def choose_beside(given: Beside, is_open: Container[str], main: Part, held_out: HeldOutNext) -> Beside:
    """`given` with the parts that are open at the weights by which the held-out items are ranked best.

    A part that does not make the metric better by `WORTH` is left out. Where all that comes after one moment is asked for,
    recent popularity leaves the rest nothing but to decide between equals, unless more of it is better by a standard error:
    what is not surely better than a list of what is popular should not change it.
    """
    chosen, parts, weights = given, [main], [1.0]
    best = float(held_out.values(parts, [weights])[0])
    if "undirected" in is_open:
        recencies = RECENCIES if "recency" in is_open else (given.recency,)
        tried = undirected(held_out.rest, recencies)
        unit = held_out.spread(main) / max(held_out.spread(tried[0]), 1e-12)
        places = [(place, _rounded(share * unit)) for place in range(len(tried)) for share in SHARES]
        combinations = [[1.0, *(weight if place == n else 0.0 for n in range(len(tried)))] for place, weight in places]
        values = held_out.values([main, *tried], combinations)
        place, weight = places[int(np.argmax(values))]
        if values.max() > WORTH * best:
            best = float(values.max())
            parts, weights = [main, tried[place]], [1.0, weight]
            chosen = replace(chosen, undirected=weight, recency=recencies[place])
        else:
            chosen = replace(chosen, undirected=0.0)
    if "recent_popularity" in is_open:
        popular = recent_popularity(held_out.rest)
        unit = held_out.spread(main) / max(held_out.spread(popular), 1e-12)
        tried_weights = [_rounded(share * unit) for share in MORE_SHARES]
        values = held_out.of_users([*parts, popular], [[*weights, weight] for weight in tried_weights])
        means = values.mean(axis=1)
        place = int(np.argmax(means))
        gains = values[place] - values[-1]
        if held_out.ends_at_once and gains.mean() <= gains.std() / np.sqrt(held_out.users.size):
            place = len(tried_weights) - 1
        better = means.max() > WORTH * best
        chosen = replace(chosen, recent_popularity=tried_weights[place] if better else 0.0)
    return chosen


def _rounded(weight: float) -> float:
    """Two digits."""
    return float(f"{weight:.2g}")


def coordinate_search(
    start: Mapping[str, Any], choices: Mapping[str, Sequence[Any]], value: Callable[[dict[str, Any]], float]
) -> dict[str, Any]:
    """The best setting found by changing one value after the other, twice around; of equal ones the first stays."""
    best = dict(start)
    known = {tuple(best.values()): value(best)}
    for _ in range(ROUNDS):
        before = dict(best)
        for name, values in choices.items():
            for one in values:
                changed = best | {name: one}
                key = tuple(changed.values())
                if key not in known:
                    known[key] = value(changed)
                if known[key] > known[tuple(best.values())]:
                    best = changed
        if best == before:
            break
    return best
