"""Transitions: which item came how often and how near after which."""

from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Self, final

import numpy as np

from topnrank._typing import FloatArray
from topnrank.models.parameters import Choice, Range, Space
from topnrank.models.sequence.choice import HeldOutNext
from topnrank.models.sequence.counts import count
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.sequence.parts import Part
from topnrank.models.sequence.sums import OrderSums
from topnrank.models.sequence.timeline import Timeline


@final
@dataclass(eq=False, kw_only=True)
class Transitions(OrderedModel):
    """Counts how often an item came d rows after another one, smooths, and adds up over the user's past; no training.

        C_ba = sum_{d <= window} d^-p N^(d)_ba,   f_a = sum_j w_j log(1 + C_{h_j a} / smoothing) + popularity log(1 + n_a)

    w counts the last items of the history most, each older one less, and shares a rest evenly among all before. It is the
    smoothed transition model PCTM (RecSys 2026). Needs timestamps; items of one moment are taken in random order. Memory is
    8 bytes for each pair of items of which one came within `window` rows after the other.

    Use it where the next item is wanted: it takes seconds. Do not use it to rank rated items, or where order says nothing.
    """

    name: ClassVar[str] = "transitions"
    summary: ClassVar[str] = "order: smoothed counts of which item came after which (PCTM); for the next item"
    own_space: ClassVar[Space] = {
        "window": Choice((10, 20, 50)),
        "distance_power": Range(0.3, 1.5),
        "smoothing": Range(0.01, 10.0, log=True),
        "popularity": Range(-0.6, 0.2),
    }

    def choose(self, held_out: HeldOutNext | None) -> Self:
        """The settings that are best on the held-out last items."""
        return replace(self, **asdict(self.count_settings(held_out)))

    def learn(self, timeline: Timeline) -> Part:
        """Counts once."""
        settings = self.count_settings()
        counted = count(timeline, settings.window, settings.distance_power)
        return settings.part(counted, timeline.totals(), self.pasts(timeline))

    def learn_from(self, sums: OrderSums) -> Part:
        """The counts of all parts of the rows."""
        assert sums.counted is not None
        return self.count_settings().part(sums.counted, sums.totals, np.zeros((0, 1)))

    def pasts(self, timeline: Timeline) -> FloatArray:
        """The head and the flat tail."""
        return self.count_settings().past(timeline)

    def kernel(self, size: int) -> FloatArray:
        """The head and the flat tail."""
        ages = np.arange(size)[::-1]
        return self.count_settings().kernel.weights(ages, np.full(size, size))[:, None]

    @property
    def kinds(self) -> tuple[str, ...]:
        """One."""
        return ("transitions",)
