"""The rows of a batch by item: a counting sort."""

import numpy as np
from numpy.typing import NDArray

from topnrank.kernels.batch import ActiveItems, Batch
from topnrank.kernels.jit import kernel, parallel_kernel, prange


@kernel
def _place(items, lo, hi, n, counts, visits):
    """Appends the rows lo .. hi of user n to those of their items."""
    for p in range(lo, hi):
        place = counts[items[p]]
        visits[place, 0] = p
        visits[place, 1] = n
        counts[items[p]] = place + 1


@kernel
def _invert(batch, counts, active_items, starts, own, visits):
    """Fills the arrays of an `ActiveItems`; returns the number of active items, as far as the first three are filled."""
    n_active = 0
    for item in batch.items:
        if counts[item] == 0:
            active_items[n_active] = item
            n_active += 1
        counts[item] += 1
    starts[0] = 0
    for t in range(n_active):
        starts[t + 1] = starts[t] + counts[active_items[t]]
        counts[active_items[t]] = starts[t]  # from here on: where the next row of the item goes
    for n in range(batch.users.size):
        _place(batch.items, batch.offsets[n], batch.own[n], n, counts, visits)
    for t in range(n_active):
        own[t] = counts[active_items[t]]
    for n in range(batch.users.size):
        _place(batch.items, batch.own[n], batch.offsets[n + 1], n, counts, visits)
    for t in range(n_active):
        counts[active_items[t]] = 0
    return n_active


@kernel
def _part_users(offsets, parts):
    """(parts + 1,) first user of each part, so that all parts have about equally many rows."""
    starts = np.zeros(parts + 1, np.int64)
    for part in range(1, parts + 1):
        user = starts[part - 1]
        while user < offsets.size - 1 and offsets[user] * parts < part * offsets[-1]:
            user += 1
        starts[part] = user
    starts[parts] = offsets.size - 1
    return starts


@kernel
def _running_places(counts, items, starts, own):
    """Turns counts (kinds, parts, n_items) into the positions from which each part writes; fills the other arrays."""
    place, n_active = 0, 0
    for item in range(counts.shape[2]):
        begin = place
        for kind in range(counts.shape[0]):
            for part in range(counts.shape[1]):
                before = place
                place += counts[kind, part, item]
                counts[kind, part, item] = before
            if kind == 0:
                middle = place
        if place > begin:
            items[n_active], starts[n_active], own[n_active] = item, begin, middle
            n_active += 1
    starts[n_active] = place
    return n_active


@parallel_kernel
def _invert_in_parts(batch, counts, items, starts, own, visits):
    parts = _part_users(batch.offsets, counts.shape[1])
    for part in prange(counts.shape[1]):
        counts[:, part] = 0
        for n in range(parts[part], parts[part + 1]):
            for p in range(batch.offsets[n], batch.offsets[n + 1]):
                counts[0 if p < batch.own[n] else 1, part, batch.items[p]] += 1
    n_active = _running_places(counts, items, starts, own)
    for part in prange(counts.shape[1]):
        for n in range(parts[part], parts[part + 1]):
            _place(batch.items, batch.offsets[n], batch.own[n], n, counts[0, part], visits)
            _place(batch.items, batch.own[n], batch.offsets[n + 1], n, counts[-1, part], visits)
    return n_active


def invert(batch: Batch, counts: NDArray[np.int32]) -> ActiveItems:
    """Counting sort of the batch by item, in the order of the batch.

    With `counts` (n_items,), zero before and after, only active items cost time. With `counts` (2, parts, n_items), which is
    scratch, several threads work on a batch of far more rows than items; (1, ...) will do where no items were sampled. Each
    part of the users counts its rows of each item, and running sums give the positions from which it writes them. The result
    does not depend on the number of parts and threads; active items are ascending then.
    """
    flat, most = batch.items.size, min(batch.items.size, counts.shape[-1])
    items, starts, own = np.empty(most, np.int32), np.empty(most + 1, np.int64), np.empty(most, np.int64)
    visits = np.empty((flat, 2), np.int32)
    fill = _invert if counts.ndim == 1 else _invert_in_parts
    n = fill(batch, counts, items, starts, own, visits)
    return ActiveItems(items[:n], starts[: n + 1], own[:n], visits)


@kernel
def count_visits(batch, active_items, in_lists, in_histories):
    """Fills how often the penalty of each active item counts, in lists and in histories; (t,) each."""
    for t in range(active_items.items.size):
        lo, own, hi = active_items.starts[t], active_items.own[t], active_items.starts[t + 1]
        in_histories[t], in_lists[t] = own - lo, 0.0
        for place in range(lo, own):
            p, n = active_items.visits[place]
            in_lists[t] += 1.0 if p >= batch.first[n] else 0.0
        for place in range(own, hi):
            in_lists[t] += batch.counts[active_items.visits[place, 1]]
