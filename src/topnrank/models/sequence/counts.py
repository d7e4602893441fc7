"""Directed counts: how often and how near items came after each other, smoothed (PCTM, RecSys 2026)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import FloatArray
from topnrank.models.sequence._sequence_kernel import Links, count_transitions, fill_transitions
from topnrank.models.sequence.choice import HeldOutNext, coordinate_search
from topnrank.models.sequence.parts import Part
from topnrank.models.sequence.timeline import HeadAndTail, Timeline, Totals

CHOICES: dict[str, Sequence[float]] = {
    "distance_power": (1.0, 0.5),
    "smoothing": (0.1, 0.03, 0.3, 1.0, 3.0),
    "popularity": (0.0, -0.02, -0.1, -0.2, -0.4, 0.1),
    "head_decay": (0.6, 0.4, 0.8),
    "head_share": (0.8, 0.95, 0.5),
}
"""What "auto" tries, the most usual value first."""


@dataclass(frozen=True)
class CountSettings:
    """The settings of the directed counts, none of them "auto"."""

    window: int
    distance_power: float
    smoothing: float
    popularity: float
    head: int
    head_share: float
    head_decay: float

    @property
    def kernel(self) -> HeadAndTail:
        """What a row of a history counts."""
        return HeadAndTail(self.head, self.head_share, self.head_decay)

    def past(self, timeline: Timeline) -> FloatArray:
        """(n, 1) what the rows count in the scores."""
        return timeline.in_scores(self.kernel.weights(timeline.ages(), timeline.sizes())[:, None])

    def bias(self, totals: Totals) -> FloatArray:
        """(n_items,) what items count by themselves."""
        return np.asarray(self.popularity * np.log1p(totals.counts))

    def links(self, counted: Links, totals: Totals) -> Links:
        """log(1 + C / smoothing) of the counts."""
        values = np.log1p(counted.values / (self.smoothing * totals.row)).astype(np.float32)
        return counted._replace(values=values)

    def part(self, counted: Links, totals: Totals, past: FloatArray) -> Part:
        """The scores of the counts."""
        return Part(self.links(counted, totals), self.bias(totals), past)


def count(timeline: Timeline, window: int, power: float) -> Links:
    """C: for each item those that came after it, d rows later, each time d^-power."""
    gamma = np.zeros(window + 1)
    gamma[1:] = np.arange(1, window + 1) ** -power
    sizes = np.zeros(timeline.n_items, np.int64)
    count_transitions(timeline.events, gamma, sizes)
    indptr = indptr_from_counts(sizes)
    links = Links(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32))
    fill_transitions(timeline.events, gamma, *links)
    return links


def choose_counts(given: dict[str, Any], open_: Sequence[str], held_out: HeldOutNext | None) -> CountSettings:
    """`given` with the settings of the names `open_` chosen on the held-out last items."""
    start = given | {name: CHOICES[name][0] for name in open_}
    if held_out is None or not open_:
        return CountSettings(**start)
    rest = held_out.rest
    totals = rest.totals()
    counted = lru_cache(maxsize=2)(lambda power: count(rest, given["window"], power))

    def value(settings: dict[str, Any]) -> float:
        one = CountSettings(**settings)
        return held_out.ndcg(*one.part(counted(one.distance_power), totals, one.past(rest)))

    return CountSettings(**coordinate_search(start, {name: CHOICES[name] for name in open_}, value))
