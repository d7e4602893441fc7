"""A batch of users as flat arrays, and the same batch seen from its items."""

import numpy as np

from topnrank.kernels._jit import kernel
from topnrank.kernels.context import Batch, Touched


@kernel
def lay_out(users, rows):
    """The batch of `users`: their rows one after another."""
    offsets = np.zeros(users.size + 1, np.int64)
    for n in range(users.size):
        offsets[n + 1] = offsets[n] + rows.indptr[users[n] + 1] - rows.indptr[users[n]]
    items = np.empty(offsets[-1], np.int32)
    gains = np.empty(offsets[-1], np.float64)
    residuals = np.empty(offsets[-1] if rows.residuals.size else 0, np.float32)
    for n in range(users.size):
        shift = rows.indptr[users[n]] - offsets[n]
        for p in range(offsets[n], offsets[n + 1]):  # loops, not slices: they compile in a fraction of the time
            items[p] = rows.items[p + shift]
            gains[p] = rows.gains[p + shift]
        if residuals.size:
            for p in range(offsets[n], offsets[n + 1]):
                residuals[p] = rows.residuals[p + shift]
    return Batch(users, offsets, items, gains, residuals)


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
