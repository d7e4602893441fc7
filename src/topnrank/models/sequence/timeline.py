"""The rows of all users in the order of time, as the models of order learn from them; and what of it counts how much."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import BoolArray, Float32Array, Float64Array, FloatArray, Int64Array, IntArray
from topnrank.data.interactions import Interactions
from topnrank.data.order import TimedItems, oldest_first, rule_of_ties, times_of
from topnrank.models.sequence._sequence_kernel import Events

FAINTEST = 1e-4
"""Rows of a history that count less than this share are left out of the scores."""


class Pauses(NamedTuple):
    """How a pause weakens what came before it."""

    gap: float | None
    """Seconds without an event that end a session; None: there are no sessions"""
    across: float
    """What is left of the past behind the end of a session: 0 to 1"""
    half_life: float | None = None
    """Seconds of a pause that leave half of what came before; None: pauses alone take nothing"""


class Totals(NamedTuple):
    """Sums over all rows."""

    rows: int
    past: float
    wanted: float
    squares: float
    """Of wanted times the square of past"""
    by_item: Float64Array
    """(n_items,) of wanted"""

    @property
    def unit(self) -> float:
        """What a penalty of one row is on the scale of the sums of squares."""
        return max(self.squares / max(self.rows, 1), 1e-12)

    @property
    def row(self) -> float:
        """What a step from one row to another counts, on average."""
        return max(self.past / max(self.rows, 1), 1e-12) * max(self.wanted / max(self.rows, 1), 1e-12)

    @property
    def counts(self) -> Float64Array:
        """(n_items,) rows of each item, in rows of the usual weight."""
        return self.by_item / max(self.wanted / max(self.rows, 1), 1e-12)


@dataclass(frozen=True)
class Timeline:
    """The rows that count, by user and from the oldest to the latest; items of one moment in random order.

    Where the data keep the order of the file, they are taken in that."""

    events: Events
    rows: Int64Array
    """(n,) where each of them stands in the data"""
    times: Int64Array
    """(n,) their timestamps"""
    n_items: int
    places: Int64Array | None = None
    """(n,) where the rows stood in the file; None: the order of rows of one moment is not known"""

    @classmethod
    def of(cls, data: Interactions, dislikes: float, pauses: Pauses, who: str) -> Self:
        """The rows of weighted data whose (user, item) pairs are unique."""
        assert data.weights is not None
        times = times_of(data, who, "NeighborRidge")
        order = oldest_first(data, TimedItems.of(data, times), rule_of_ties(data), 0)
        past = strengths(data.weights[order], dislikes)
        kept = past != 0
        rows, users = order[kept], data.user_index[order][kept]
        wanted = np.maximum(data.weights[rows], np.float32(0))
        links = _links(users, times[rows], pauses)
        columns = {"past": past[kept], "wanted": wanted, "links": links}
        places = None if data.places is None else data.places[rows]
        return cls.from_rows(
            users,
            data.indices[rows],
            rows,
            times[rows],
            **columns,
            n_users=data.n_users,
            n_items=data.n_items,
            places=places,
        )

    @classmethod
    def from_rows(
        cls,
        users: IntArray,
        items: IntArray,
        rows: Int64Array,
        times: Int64Array,
        *,
        past: Float32Array,
        wanted: Float32Array,
        links: Float32Array,
        n_users: int,
        n_items: int,
        places: Int64Array | None = None,
    ) -> Self:
        """From rows in their order, with past, wanted and links of `Events`."""
        by_item = np.argsort(items, kind="stable")
        item_indptr = indptr_from_counts(np.bincount(items, minlength=n_items))
        indptr = indptr_from_counts(np.bincount(users, minlength=n_users))
        events = Events(
            indptr, items.astype(np.int32), past, wanted, links, users.astype(np.int32), item_indptr, by_item
        )
        return cls(events, rows, times, n_items, places)

    def take(self, kept: BoolArray) -> Self:
        """The rows of a mask."""
        events = self.events
        columns = {name: getattr(events, name)[kept] for name in ("past", "wanted", "links")}
        n_users, n_items = len(events.indptr) - 1, self.n_items
        rows, times = self.rows[kept], self.times[kept]
        places = None if self.places is None else self.places[kept]
        return self.from_rows(
            events.owners[kept],
            events.items[kept],
            rows,
            times,
            **columns,
            n_users=n_users,
            n_items=n_items,
            places=places,
        )

    def totals(self) -> Totals:
        """Sums over the rows."""
        past, wanted = (one.astype(np.float64) for one in (self.events.past, self.events.wanted))
        by_item = np.bincount(self.events.items, weights=wanted, minlength=self.n_items)
        sums = float(past.sum()), float(wanted.sum()), float((wanted * past**2).sum())
        return Totals(len(self.rows), *sums, by_item.astype(np.float64))

    def ages(self) -> Int64Array:
        """(n,) how many rows of the user are later."""
        return np.asarray(self.events.indptr[1:][self.events.owners] - 1 - np.arange(len(self.rows)), np.int64)

    def sizes(self) -> Int64Array:
        """(n,) how many rows the user has."""
        return np.diff(self.events.indptr)[self.events.owners]

    def in_scores(self, weights: FloatArray) -> FloatArray:
        """(n, S) what rows count in the scores, from what they would count by their place in the user's history.

        Pauses take their share; where the order of rows of one moment is not known, these count alike, their mean.
        """
        if self.places is not None:
            return np.asarray(weights * (self.events.past * self._left())[:, None])
        new = np.ones(len(self.rows), np.bool_)
        new[1:] = (np.diff(self.events.owners) != 0) | (np.diff(self.times) != 0)
        starts = np.flatnonzero(new)
        moments = np.cumsum(new) - 1
        sizes = np.diff(starts, append=len(new))
        means = np.add.reduceat(weights, starts, axis=0) / sizes[:, None] if len(starts) else weights
        return np.asarray(means[moments] * (self.events.past * self._left())[:, None])

    def _left(self) -> FloatArray:
        """(n,) what pauses leave of each row until the user's last one."""
        steps = np.log(np.maximum(self.events.links, 1e-30), dtype=np.float64)
        last = self.events.indptr[1:][np.diff(self.events.indptr) > 0] - 1
        steps[last] = 0.0
        ends = np.append(np.cumsum(steps), 0.0)
        left = np.exp(ends[self.events.indptr[1:][self.events.owners] - 1] - ends[:-1] + steps)
        return np.where(left < FAINTEST, 0.0, left)


def strengths(weights: FloatArray, dislikes: float) -> Float32Array:
    """What rows count in the past: likes by their weight, the others as a share of its size."""
    return np.where(weights > 0, weights, -dislikes * weights).astype(np.float32)


def _links(users: IntArray, times: Int64Array, pauses: Pauses) -> Float32Array:
    """(n,) what is left of the past from each row to the user's next one."""
    links = np.ones(len(users), np.float32)
    lengths = np.where(np.diff(users) == 0, np.diff(times), 0)
    if pauses.half_life is not None:
        links[:-1] = np.exp2(-lengths / pauses.half_life)
    if pauses.gap is not None:
        links[:-1][lengths > pauses.gap] *= np.float32(pauses.across)
    return links


# ----------------------------------------------------------------------------------------------------
# What a row of a history counts in the scores, by its age: how many rows are later.


class HeadAndTail(NamedTuple):
    """The last rows count most, each older one less by a factor; the rest of the history shares what is left evenly."""

    head: int
    """Rows of the head"""
    share: float
    """What the head counts, of 1"""
    decay: float

    def weights(self, ages: Int64Array, sizes: Int64Array) -> FloatArray:
        """(n,) weights, which add up to 1 for a user; a history of the head alone has no tail."""
        own = np.minimum(sizes, self.head)
        powers = self.decay ** np.arange(self.head)
        head = self.decay ** np.minimum(ages, self.head) / np.cumsum(powers)[own - 1]
        share = np.where(sizes > self.head, self.share, 1.0)
        tail = (1.0 - share) / np.maximum(sizes - self.head, 1)
        return np.asarray(np.where(ages < self.head, share * head, tail))


def decayed(ages: Int64Array, decays: FloatArray) -> FloatArray:
    """(n, S) decay^age for each scale; 0 leaves the last row only."""
    weights = np.power(np.asarray(decays, np.float64)[None, :], ages[:, None])
    return np.asarray(np.where(weights < FAINTEST, 0.0, weights))
