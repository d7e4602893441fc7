"""Choosing settings inside `fit`: on the last items of training users, which are then put back."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.models.sequence._sequence_kernel import Links, places_of_next
from topnrank.models.sequence.links import LinkScores
from topnrank.models.sequence.parts import Beside, Part, recent_popularity, undirected
from topnrank.models.sequence.timeline import Timeline
from topnrank.rng import stream

USERS = 2500
"""Held-out users at most, drawn at random."""
LEAST_ITEMS = 3
"""Users with fewer items are never held out."""
CUT = 10
"""Settings are judged by NDCG at this cut."""
ROUNDS = 2
AT_ONCE = 250
"""Users whose scores are held in memory at a time."""
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Weights of a further part that are tried, each as a share of the spread of the first part's scores."""
RECENCIES = (8.0, 32.0, 128.0)
WORTH = 1.002
"""A further part must improve the metric by this factor, or it is left out."""


@dataclass(frozen=True)
class HeldOutLast:
    """The last liked item of some users, and what is left of the rows."""

    rest: Timeline
    users: Int64Array
    wanted: Int32Array
    """(n_users,) the items held out"""

    @classmethod
    def of(cls, timeline: Timeline) -> Self | None:
        """None where no user has items enough."""
        events = timeline.events
        liked = np.flatnonzero(events.wanted > 0)
        last = np.zeros(len(events.indptr) - 1, np.int64)
        last[events.owners[liked]] = liked
        counts = np.bincount(events.owners[liked], minlength=last.size)
        users = np.flatnonzero(counts >= LEAST_ITEMS)
        if not users.size:
            return None
        if users.size > USERS:
            users = np.sort(stream(0, "held-out last items").permutation(users)[:USERS])
        kept = np.ones(len(events.items), np.bool_)
        for user in users:
            kept[last[user] : events.indptr[user + 1]] = False
        return cls(timeline.take(kept), users.astype(np.int64), events.items[last[users]])

    def ndcg(self, links: Links, bias: FloatArray, past: FloatArray) -> float:
        """NDCG@10 of the held-out items among all but the user's other ones; `past` (n, S) belongs to the rest's rows."""
        above, events = np.empty(self.users.size), self.rest.events
        weights: Float32Array = past.astype(np.float32)
        own = events.indptr, events.items
        places_of_next(links, bias.astype(np.float32), self.users, self.wanted, *own, weights, *own, above)
        return float(np.where(above < CUT, 1.0 / np.log2(above + 2.0), 0.0).mean())

    def values(self, parts: Sequence[Part], weights: Sequence[Sequence[float]]) -> Float64Array:
        """NDCG@10 of the sum of the parts with each of `weights`, which are as many as the parts."""
        events = self.rest.events
        scores = [
            LinkScores(one.links, one.bias.astype(np.float32), events.indptr, events.items, one.past.astype(np.float32))
            for one in parts
        ]
        gains = np.zeros(len(weights))
        for first in range(0, self.users.size, AT_ONCE):
            users, wanted = self.users[first : first + AT_ONCE], self.wanted[first : first + AT_ONCE]
            blocks, rows = [one.block(users) for one in scores], np.arange(users.size)
            sizes = np.diff(events.indptr)[users]
            own = np.concatenate([events.items[events.indptr[user] : events.indptr[user + 1]] for user in users])
            for number, weight in enumerate(weights):
                block = np.sum(
                    [np.float32(one) * part for one, part in zip(weight, blocks, strict=True) if one], axis=0
                )
                mine = block[rows, wanted]
                block[np.repeat(rows, sizes), own] = -np.inf
                block[rows, wanted] = mine
                above = (block > mine[:, None]).sum(axis=1) + 0.5 * ((block == mine[:, None]).sum(axis=1) - 1)
                gains[number] += np.where(above < CUT, 1.0 / np.log2(above + 2.0), 0.0).sum()
        return gains / self.users.size

    def spread(self, part: Part) -> float:
        """The mean standard deviation of the scores of some users."""
        events, users = self.rest.events, self.users[:AT_ONCE]
        weights = part.past.astype(np.float32)
        scores = LinkScores(part.links, part.bias.astype(np.float32), events.indptr, events.items, weights)
        return float(scores.block(users).std(axis=1, dtype=np.float64).mean())


def choose_beside(given: Beside, is_open: Container[str], main: Part, held_out: HeldOutLast) -> Beside:
    """`given` with the parts that are open at the weights by which the held-out last items are ranked best.

    A part that does not make the metric better by `WORTH` is left out.
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
        tried_weights = [_rounded(share * unit) for share in SHARES]
        values = held_out.values([*parts, popular], [[*weights, weight] for weight in tried_weights])
        better = values.max() > WORTH * best
        chosen = replace(chosen, recent_popularity=tried_weights[int(np.argmax(values))] if better else 0.0)
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
