"""A batch of users as flat arrays, and the same batch seen from its items."""

from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import Int64Array, UInt64Array
from topnrank.kernels._jit import Kernel, kernel, parallel_kernel, prange
from topnrank.kernels.context import Batch, Touched
from topnrank.kernels.random import SAMPLING, draw_below

PARTS = 8
"""Parts of the users of a large batch, each inverted by itself."""


class Plan(NamedTuple):
    """How rows become lists."""

    histories: bool
    """Whether rows that are not listed are laid out as well, for the histories"""
    negatives: int
    """Unobserved items sampled into each list"""
    chances: Int64Array
    """(n_items + 1,) running sum of the whole numbers that the chances of the items to be sampled are proportional to"""
    shared: bool
    """Whether the sampled rows of a list count together as many visits as its own rows; else one each"""
    progress: float
    """Share of the training that is done"""


@kernel
def _missing_item(chances, observed, before, place):
    """The item that is not in the sorted array `observed` and in whose share of the chances `place` falls.

    Only missing items have a share; before[t] is the sum of the chances of the first t observed items. Whole numbers, so
    that no rounding ever chooses an observed item.
    """
    low, high = 0, observed.size
    while low < high:  # how many observed items come before it
        middle = (low + high) // 2
        if chances[observed[middle]] - before[middle] <= place:
            low = middle + 1
        else:
            high = middle
    place += before[low]
    left, right = 0, chances.size - 1
    while right - left > 1:
        middle = (left + right) // 2
        if chances[middle] <= place:
            left = middle
        else:
            right = middle
    return left


@kernel
def _sample(key, chances, observed, items, weights):
    """Fills `items` with items that are not observed, and `weights` with how many of them each stands for.

    Self-normalised importance weights: the weight falls as the chance rises, and their sum is the number of items that
    are not observed.
    """
    before = np.zeros(observed.size + 1, np.int64)
    for t in range(observed.size):
        before[t + 1] = before[t] + chances[observed[t] + 1] - chances[observed[t]]
    total, inverse = chances[-1] - before[-1], 0.0
    for draw in range(items.size):
        place = draw_below(key, SAMPLING + np.uint64(draw), total)
        item = _missing_item(chances, observed, before, place)
        items[draw] = item
        weights[draw] = 1.0 / (chances[item + 1] - chances[item])
        inverse += weights[draw]
    for draw in range(items.size):
        weights[draw] *= (chances.size - 1 - observed.size) / inverse


@parallel_kernel
def sample_items(batch, rows, chances, items, weights):
    """Draws the sampled rows of every list of the batch; `items` and `weights` are the batch's own."""
    for n in prange(batch.users.size):
        lo, hi = batch.own[n], batch.offsets[n + 1]
        if hi > lo:
            observed = rows.items[rows.indptr[batch.users[n]] : rows.indptr[batch.users[n] + 1]]
            _sample(batch.keys[n], chances, observed, items[lo:hi], weights[lo:hi])


@kernel
def _find_sizes(users, rows, plan, offsets, first, own):
    """Where each user's rows, list and sampled items begin; offsets[0] is 0."""
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
        samples = listed > 0 and hi - lo < plan.chances.size - 1
        offsets[n + 1] = own[n] + (plan.negatives if samples else 0)


@kernel
def _targets(rows, user, histories, places, targets):
    """Where in the batch each row of a user goes, from places = (offset, first) on; -1 for rows that are left out."""
    aside, place = places
    lo = rows.indptr[user]
    for p in range(lo, rows.indptr[user + 1]):
        if rows.listed.size == 0 or rows.listed[p]:
            targets[p - lo] = place
            place += 1
        elif histories:
            targets[p - lo] = aside
            aside += 1
        else:
            targets[p - lo] = -1


@kernel
def _copy_rows(source, lo, targets, target):
    """Rows of `source` from lo on to their targets."""
    for t in range(targets.size):
        if targets[t] >= 0:
            target[targets[t]] = source[lo + t]


@kernel
def _copy_block(source, lo, target, start, size):
    """Rows of `source` from lo on to `target` from `start` on; loops, unlike slices, compile in a fraction of the time."""
    for t in range(size):
        target[start + t] = source[lo + t]


@kernel
def _copy_user(rows, user, histories, places, items, gains, residuals, strengths):
    """The rows of one user to the batch's arrays, from places = (offset, first) on."""
    lo, size, channels = rows.indptr[user], rows.indptr[user + 1] - rows.indptr[user], residuals.shape[1]
    if rows.listed.size == 0:  # all in their own order
        start = places[1]
        _copy_block(rows.items, lo, items, start, size)
        _copy_block(rows.gains, lo, gains, start, size)
        if residuals.size:
            _copy_block(
                rows.residuals.reshape(-1), lo * channels, residuals.reshape(-1), start * channels, size * channels
            )
        if rows.strengths.size:
            _copy_block(rows.strengths, lo, strengths, start, size)
        return
    targets = np.empty(size, np.int64)
    _targets(rows, user, histories, places, targets)
    _copy_rows(rows.items, lo, targets, items)
    _copy_rows(rows.gains, lo, targets, gains)
    if residuals.size:
        for b in range(channels):
            _copy_rows(rows.residuals[:, b], lo, targets, residuals[:, b])
    if rows.strengths.size:
        _copy_rows(rows.strengths, lo, targets, strengths)


@kernel
def _lay_out_user(batch, n, rows, plan):
    """All rows of the batch's user n."""
    first, lo, hi = batch.first[n], batch.own[n], batch.offsets[n + 1]
    if plan.negatives:
        batch.weights[batch.offsets[n] : hi] = 1.0
    if rows.strengths.size:
        batch.strengths[batch.offsets[n] : hi] = 1.0
    batch.counts[n] = 1.0
    places = (batch.offsets[n], first)
    _copy_user(rows, batch.users[n], plan.histories, places, batch.items, batch.gains, batch.residuals, batch.strengths)
    if hi > lo:
        batch.gains[lo:hi] = 0.0
        if batch.residuals.size:
            batch.residuals[lo:hi] = 0.0
        if plan.shared:
            batch.counts[n] = (lo - first) / (hi - lo)


@parallel_kernel
def _lay_out_users(batch, rows, plan):
    for n in prange(batch.users.size):
        _lay_out_user(batch, n, rows, plan)


_ONES = {np.dtype(kind): np.ones(0, kind) for kind in (np.float32, np.float64)}


def ones(size: int, kind: type[np.floating[Any]]) -> Any:
    """`size` ones to be read only: the first of an array that is kept, since batch after batch needs as many."""
    kept = _ONES[np.dtype(kind)]
    if kept.size < size:
        kept = _ONES[np.dtype(kind)] = np.ones(2 * size, kind)
    return kept[:size]


def lay_out(users: Int64Array, keys: UInt64Array, rows: Any, plan: Plan) -> Batch:
    """The batch of `users`: for each the rows of the history only, those of the list, and room for sampled items."""
    b = users.size
    offsets, first, own = np.zeros(b + 1, np.int64), np.empty(b, np.int64), np.empty(b, np.int64)
    _find_sizes(users, rows, plan, offsets, first, own)
    flat = int(offsets[-1])
    residuals = np.empty((flat if rows.residuals.size else 0, rows.residuals.shape[1]), np.float32)
    strengths = np.empty(flat, np.float32) if rows.strengths.size else ones(flat, np.float32)
    weights = np.empty(flat) if plan.negatives else ones(flat, np.float64)
    per_row = np.empty(flat, np.int32), np.empty(flat), residuals, strengths
    batch = Batch(users, offsets, first, own, *per_row, keys, weights, np.empty(b), plan.progress)
    _lay_out_users(batch, rows, plan)
    return batch


@kernel
def _place(items, lo, hi, n, counts, entries, owners):
    """The rows lo .. hi of user n to where the next visit of their items goes."""
    for p in range(lo, hi):
        place = counts[items[p]]
        entries[place] = p
        owners[place] = n
        counts[items[p]] = place + 1


@kernel
def _invert(batch, counts, touched, starts, own, entries, owners):
    """Fills the arrays of a `Touched`, the first three as far as the number of touched items, which it returns."""
    n_touched = 0
    for item in batch.items:
        if counts[item] == 0:
            touched[n_touched] = item
            n_touched += 1
        counts[item] += 1
    starts[0] = 0
    for t in range(n_touched):
        starts[t + 1] = starts[t] + counts[touched[t]]
        counts[touched[t]] = starts[t]  # from here on: where the item's next visit goes
    for n in range(batch.users.size):
        _place(batch.items, batch.offsets[n], batch.own[n], n, counts, entries, owners)
    for t in range(n_touched):
        own[t] = counts[touched[t]]
    for n in range(batch.users.size):
        _place(batch.items, batch.own[n], batch.offsets[n + 1], n, counts, entries, owners)
    for t in range(n_touched):
        counts[touched[t]] = 0
    return n_touched


def _touched(fill: Kernel, batch: Batch, counts: Int64Array) -> Touched:
    flat, most = batch.items.size, min(batch.items.size, counts.shape[-1])
    items, starts, own = np.empty(most, np.int32), np.empty(most + 1, np.int64), np.empty(most, np.int64)
    entries, owners = np.empty(flat, np.int64), np.empty(flat, np.int32)
    n = fill(batch, counts, items, starts, own, entries, owners)
    return Touched(items[:n], starts[: n + 1], own[:n], entries, owners)


def invert(batch: Batch, counts: Int64Array) -> Touched:
    """Counting sort of the batch by item; `counts` (n_items,) is zero before and after, so only touched items cost."""
    return _touched(_invert, batch, counts)


@kernel
def _part_users(offsets):
    """(PARTS + 1,) where each part of a batch's users begins, so that all have about as many rows."""
    starts = np.zeros(PARTS + 1, np.int64)
    for part in range(1, PARTS + 1):
        user = starts[part - 1]
        while user < offsets.size - 1 and offsets[user] * PARTS < part * offsets[-1]:
            user += 1
        starts[part] = user
    starts[PARTS] = offsets.size - 1
    return starts


@kernel
def _running_places(counts, items, starts, own):
    """Turns counts (kinds, PARTS, n_items) into where each part places its own and its sampled visits; fills the others."""
    place, n_touched = 0, 0
    for item in range(counts.shape[2]):
        begin = place
        for kind in range(counts.shape[0]):
            for part in range(PARTS):
                before = place
                place += counts[kind, part, item]
                counts[kind, part, item] = before
            if kind == 0:
                middle = place
        if place > begin:
            items[n_touched], starts[n_touched], own[n_touched] = item, begin, middle
            n_touched += 1
    starts[n_touched] = place
    return n_touched


@parallel_kernel
def _invert_in_parts(batch, counts, items, starts, own, entries, owners):
    parts = _part_users(batch.offsets)
    for part in prange(PARTS):
        counts[:, part] = 0
        for n in range(parts[part], parts[part + 1]):
            for p in range(batch.offsets[n], batch.offsets[n + 1]):
                counts[0 if p < batch.own[n] else 1, part, batch.items[p]] += 1
    n_touched = _running_places(counts, items, starts, own)
    for part in prange(PARTS):
        for n in range(parts[part], parts[part + 1]):
            _place(batch.items, batch.offsets[n], batch.own[n], n, counts[0, part], entries, owners)
            _place(batch.items, batch.own[n], batch.offsets[n + 1], n, counts[-1, part], entries, owners)
    return n_touched


def invert_in_parts(batch: Batch, counts: Int64Array) -> Touched:
    """`invert` by several threads; `counts` (2, PARTS, n_items) is scratch, (1, ...) will do where no items were sampled.

    For batches of far more rows than items.

    Each part of the users counts its visits to each item, running sums say where it places them, and it does: in the
    batch's order, whatever thread does it when. Touched items come in ascending order here.
    """
    return _touched(_invert_in_parts, batch, counts)


@kernel
def count_visits(batch, touched, in_lists, in_histories):
    """(t,) how often the penalty of each touched item counts: for its part in lists, and for its part in histories."""
    for t in range(touched.items.size):
        lo, own, hi = touched.starts[t], touched.own[t], touched.starts[t + 1]
        in_histories[t], in_lists[t] = own - lo, 0.0
        for place in range(lo, own):
            n = touched.owners[place]
            in_lists[t] += 1.0 if touched.entries[place] >= batch.first[n] else 0.0
        for place in range(own, hi):
            in_lists[t] += batch.counts[touched.owners[place]]
