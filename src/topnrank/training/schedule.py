"""Which users are in which batch: drawn from streams keyed by seed and round, so that a resumed run draws the same."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from topnrank._typing import Int64Array
from topnrank.rng import stream


@dataclass(frozen=True)
class Schedule:
    """Rounds of batches."""

    users: Int64Array
    """The users to draw from"""
    batch: int
    seed: int
    rounds: int
    """How many there are at most"""
    whole: bool = True
    """Whether a round is one pass over all users in random order, cut into batches; else it is one batch drawn without
    replacement from all users, independent of the rounds before (the paper's Algorithms 1 and 2; some users may never be
    drawn)"""

    def batches(self, round_: int) -> Iterator[Int64Array]:
        """The batches of round 0, 1, ..."""
        shuffled = stream(self.seed, "batches", round_).permutation(self.users)
        if not self.whole:
            yield shuffled[: self.batch]
            return
        for first in range(0, self.users.size, self.batch):
            yield shuffled[first : first + self.batch]


AUTO_BATCH, AUTO_BATCHES = 100, 30
"""batch_size="auto": so many users, but where they are many, so many batches in a pass."""


def batch_count(batch_size: int | float | str, n_users: int) -> int:
    """`batch_size` as a number of users: a float is a fraction of them, an int a count.

    "auto" is 100, or a thirtieth of the users where that is more: an item is updated once in each batch that has it, and
    more than some dozens of batches in a pass cost time and gain nothing.
    """
    if isinstance(batch_size, str):
        batch_size = max(AUTO_BATCH, n_users // AUTO_BATCHES)
    size = round(batch_size * n_users) if isinstance(batch_size, float) else batch_size
    return int(np.clip(size, 1, max(n_users, 1)))
