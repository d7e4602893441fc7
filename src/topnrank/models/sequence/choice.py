"""Choosing settings inside `fit`: on the last items of training users, which are then put back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from topnrank._typing import Float32Array, FloatArray, Int32Array, Int64Array
from topnrank.models.sequence._sequence_kernel import Links, places_of_next
from topnrank.models.sequence.timeline import Timeline
from topnrank.rng import stream

USERS = 2500
"""Held-out users at most, drawn at random."""
LEAST_ITEMS = 3
"""Users with fewer items are never held out."""
CUT = 10
"""Settings are judged by NDCG at this cut."""
ROUNDS = 2


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
