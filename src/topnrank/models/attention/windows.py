"""Histories cut into windows of equal length, as a transformer reads them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from topnrank._typing import Float32Array, Int32Array, Int64Array, IntArray
from topnrank.models.sequence.timeline import Timeline


@dataclass(frozen=True)
class Windows:
    """W windows of up to L neighboring rows of one user, oldest first, then zeros; what comes next after each row."""

    items: Int32Array
    """(W, L)"""
    strengths: Float32Array
    """(W, L) what a row counts in the past of later ones; 0 behind the end"""
    times: Int64Array
    """(W, L) seconds"""
    targets: Int32Array
    """(W, L) the item after each row"""
    wanted: Float32Array
    """(W, L) what it counts; 0 where there is none"""
    lengths: Int64Array
    """(W,)"""
    users: Int64Array
    """(W,)"""

    @classmethod
    def of(cls, timeline: Timeline, length: int) -> Self:
        """Every row but the first of each user is a target once; the windows of a user are cut from the latest row back."""
        sizes = np.diff(timeline.events.indptr)
        counts = np.where(sizes > 1, -(-(sizes - 1) // length), 0)
        users = np.repeat(np.arange(sizes.size), counts)
        number = np.arange(users.size) - np.repeat(np.cumsum(counts) - counts, counts)  # 0 for a user's last window
        ends = timeline.events.indptr[users + 1] - number * length
        return cls._cut(timeline, users, ends, length, targets=True)

    @classmethod
    def last(cls, timeline: Timeline, users: IntArray, length: int) -> Self:
        """The latest rows of some users, with nothing after them."""
        ends = timeline.events.indptr[np.asarray(users, np.int64) + 1]
        return cls._cut(timeline, np.asarray(users, np.int64), ends, length, targets=False)

    @classmethod
    def _cut(cls, timeline: Timeline, users: Int64Array, ends: Int64Array, length: int, *, targets: bool) -> Self:
        """Windows whose last row, or target, stands before `ends`."""
        events = timeline.events
        ends = ends - targets
        starts = np.maximum(events.indptr[users], ends - length)
        rows = starts[:, None] + np.arange(length)
        inside = rows < ends[:, None]
        own = np.where(inside, rows, 0)
        after = np.where(inside & targets, rows + 1, 0)
        empty = not len(events.items)

        def column(values: np.ndarray, places: Int64Array, mask: np.ndarray) -> np.ndarray:
            return (
                np.zeros(places.shape, values.dtype) if empty else np.where(mask, values[places], values.dtype.type(0))
            )

        follows = inside & targets
        return cls(
            column(events.items, own, inside),
            column(events.past, own, inside),
            column(timeline.times, own, inside),
            column(events.items, after, follows),
            column(events.wanted, after, follows),
            ends - starts,
            users,
        )
