"""A batch of users as flat arrays, and the same batch seen from its items."""

from typing import NamedTuple

import numpy as np

from topnrank.kernels._jit import kernel
from topnrank.kernels.context import Batch, Touched
from topnrank.kernels.random import SAMPLING, draw_below


class Plan(NamedTuple):
    """How rows become lists."""

    histories: bool
    """Whether rows that are not listed are laid out as well, for the histories"""
    negatives: int
    """Unobserved items sampled into each list"""
    n_items: int
    progress: float
    """Share of the training that is done"""


@kernel
def missing_item(observed, place):
    """Number `place` (0, 1, ...) of the items that are not in the sorted array `observed`."""
    low, high = 0, observed.size
    while low < high:  # how many observed items come before it
        middle = (low + high) // 2
        if observed[middle] - middle <= place:
            low = middle + 1
        else:
            high = middle
    return place + low


@kernel
def _sizes(users, rows, plan):
    """Where each user's rows, list and sampled items begin: the offsets, first and own of a batch."""
    offsets = np.zeros(users.size + 1, np.int64)
    first = np.empty(users.size, np.int64)
    own = np.empty(users.size, np.int64)
    for n in range(users.size):
        lo, hi = rows.indptr[users[n]], rows.indptr[users[n] + 1]
        listed = hi - lo
        if rows.listed.size:
            listed = 0
            for p in range(lo, hi):
                listed += rows.listed[p]
        kept = hi - lo if plan.histories else listed
        first[n] = offsets[n] + kept - listed
        own[n] = offsets[n] + kept
        samples = listed > 0 and hi - lo < plan.n_items
        offsets[n + 1] = own[n] + (plan.negatives if samples else 0)
    return offsets, first, own


@kernel
def lay_out(users, keys, rows, plan):
    """The batch of `users`: for each the rows of the history only, those of the list, and sampled items."""
    offsets, first, own = _sizes(users, rows, plan)
    items = np.empty(offsets[-1], np.int32)
    gains = np.zeros(offsets[-1], np.float64)
    residuals = np.zeros(offsets[-1] if rows.residuals.size else 0, np.float32)
    weights = np.ones(users.size, np.float64)
    for n in range(users.size):
        lo, hi = rows.indptr[users[n]], rows.indptr[users[n] + 1]
        aside, place = offsets[n], first[n]
        for p in range(lo, hi):  # loops, not slices: they compile in a fraction of the time
            if rows.listed.size and not rows.listed[p]:
                if not plan.histories:
                    continue
                target = aside
                aside += 1
            else:
                target = place
                place += 1
            items[target] = rows.items[p]
            gains[target] = rows.gains[p]
            if residuals.size:
                residuals[target] = rows.residuals[p]
        unobserved = plan.n_items - (hi - lo)
        if offsets[n + 1] > own[n]:
            weights[n] = unobserved / (offsets[n + 1] - own[n])
        for p in range(own[n], offsets[n + 1]):
            drawn = draw_below(keys[n], SAMPLING + np.uint64(p - own[n]), unobserved)
            items[p] = missing_item(rows.items[lo:hi], drawn)
    return Batch(users, offsets, first, own, items, gains, residuals, keys, weights, plan.progress)


@kernel
def invert(batch, counts):
    """Counting sort of the batch by item; `counts` (n_items,) is zero before and after, so only touched items cost."""
    touched = np.empty(min(batch.items.size, counts.size), np.int32)
    n_touched = 0
    for item in batch.items:
        if counts[item] == 0:
            touched[n_touched] = item
            n_touched += 1
        counts[item] += 1
    starts = np.zeros(n_touched + 1, np.int64)
    for t in range(n_touched):
        starts[t + 1] = starts[t] + counts[touched[t]]
        counts[touched[t]] = starts[t]  # from here on: where the item's next visit goes
    entries = np.empty(batch.items.size, np.int64)
    owners = np.empty(batch.items.size, np.int32)
    for n in range(batch.users.size):
        for p in range(batch.offsets[n], batch.offsets[n + 1]):
            place = counts[batch.items[p]]
            entries[place] = p
            owners[place] = n
            counts[batch.items[p]] = place + 1
    for t in range(n_touched):
        counts[touched[t]] = 0
    return Touched(touched[:n_touched], starts, entries, owners)
