"""A batch of users as flat arrays: the records that kernels take, the layout of the rows, and the sampling of items."""

from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array, UInt64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.random import SAMPLING, draw_below, visit_keys
from topnrank.kernels.work_stealing import claim, new_work


class Batch(NamedTuple):
    """The users of one training step, their rows in flat arrays, one user after another.

    The rows of a user: history only | rated or liked items of the list | items sampled for the list. Rows
    offsets[n] .. own[n] are the user's history, rows first[n] .. offsets[n + 1] the list that the objective sees.
    """

    users: Int64Array
    """(b,)"""
    offsets: Int64Array
    """(b + 1,) where each user's rows begin in the flat arrays"""
    first: Int64Array
    """(b,) where the list begins"""
    own: Int64Array
    """(b,) where the observed rows end and the sampled ones begin"""
    items: Int32Array
    """(flat,)"""
    gains: Float64Array
    """(flat,) 0 for sampled rows"""
    residuals: Float32Array
    """(flat, channels) 0 for sampled rows; or empty"""
    recency_weights: Float32Array
    """(flat,) weight of a row in the user's history: 1, or less for old rows"""
    keys: UInt64Array
    """(b,) key of the random draws of each list"""
    weights: Float64Array
    """(flat,) how many items each row counts as in the ranks: 1 for observed rows, more for sampled ones"""
    counts: Float64Array
    """(b,) how often each sampled row of the list counts in the penalty"""
    progress: float
    """Fraction of the training that is done"""
    workers: int = 1
    """Number of workers that share the loops over users and items, usually one for each thread"""


class ActiveItems(NamedTuple):
    """The rows of a batch by item, in the order of the batch; sampled rows after the observed ones."""

    items: Int32Array
    """(t,) the items that occur in the batch"""
    starts: Int64Array
    """(t + 1,) where the rows of each item begin"""
    own: Int64Array
    """(t,) where its observed rows end and its sampled ones begin"""
    visits: Int32Array
    """(flat, 2) position of the row in the flat arrays of the batch, and position of its user in the batch"""


class Lists(NamedTuple):
    """Gradients and losses of the lists of a batch."""

    G: Float32Array
    """(2, flat) G_user and G_item; 0 for rows of the history only. In single precision, as the parameters they multiply"""
    report: Float64Array
    """(b, 2) loss and effective N of each list"""


MAX_ROWS = 2**31 - 1
"""Largest number of rows in a batch: positions are 32-bit integers."""
_POSITION_BITS = 32
_POSITIONS = 2**_POSITION_BITS - 1


class Plan(NamedTuple):
    """How the rows of users become lists."""

    histories: bool
    """Whether rows that are not in the list are laid out as well, for the histories"""
    negatives: int
    """Number of unobserved items sampled into each list"""
    sampling_weights: Int64Array
    """(n_items + 1,) running sum of the integer sampling weights of the items"""
    shared: bool
    """Whether the sampled rows of a list count in the penalty as much as its observed rows together; else once each"""
    progress: float
    """Fraction of the training that is done"""
    seed: np.uint64
    iteration: np.uint64
    first_user: int
    """Seed, iteration, and the number of user 0 among all users: they name the random draws"""
    workers: int = 1
    """As in `Batch`"""


class Places(NamedTuple):
    """The users of a batch and where their rows will be: the arrays of `Batch` that do not depend on the rows."""

    users: Int64Array
    offsets: Int64Array
    first: Int64Array
    own: Int64Array
    keys: UInt64Array


@kernel
def _missing_item(sampling_weights, observed, before, place):
    """The item at `place` in the running sum of the sampling weights of the items that are not in the sorted `observed`.

    before[t] is the sum of the weights of the first t observed items. Weights are integers, so that rounding never chooses
    an observed item.
    """
    low, high = 0, observed.size
    while low < high:  # how many observed items come before it
        middle = (low + high) // 2
        if sampling_weights[observed[middle]] - before[middle] <= place:
            low = middle + 1
        else:
            high = middle
    place += before[low]
    left, right = 0, sampling_weights.size - 1
    while right - left > 1:
        middle = (left + right) // 2
        if sampling_weights[middle] <= place:
            left = middle
        else:
            right = middle
    return left


@kernel
def _sample(key, sampling_weights, observed, items, weights):
    """Fills `items` with unobserved items, and `weights` with how many unobserved items each counts as.

    Self-normalized importance weights: inverse to the sampling weights, and their sum is the number of unobserved items.
    """
    before = np.zeros(observed.size + 1, np.int64)
    for t in range(observed.size):
        before[t + 1] = before[t] + sampling_weights[observed[t] + 1] - sampling_weights[observed[t]]
    total, inverse = sampling_weights[-1] - before[-1], 0.0
    for draw in range(items.size):
        place = draw_below(key, SAMPLING + np.uint64(draw), total)
        item = _missing_item(sampling_weights, observed, before, place)
        items[draw] = item
        weights[draw] = 1.0 / (sampling_weights[item + 1] - sampling_weights[item])
        inverse += weights[draw]
    for draw in range(items.size):
        weights[draw] *= (sampling_weights.size - 1 - observed.size) / inverse


@parallel_kernel
def sample_items(batch, rows, sampling_weights, items, weights):
    """Draws the sampled rows of all lists; `items` and `weights` are those of the batch."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.own[n], batch.offsets[n + 1]
            if hi > lo:
                observed = rows.items[rows.indptr[batch.users[n]] : rows.indptr[batch.users[n] + 1]]
                _sample(batch.keys[n], sampling_weights, observed, items[lo:hi], weights[lo:hi])


@kernel
def _balance_users(users, indptr, user_order, order):
    """Sorts users by descending list length (stably), then applies the permutation `user_order`; `order` is scratch."""
    for n in range(users.size):
        order[n] = ((indptr[users[n]] - indptr[users[n] + 1]) << _POSITION_BITS) | n
    order.sort()
    for n in range(users.size):
        order[n] = users[order[n] & _POSITIONS]
    for n in range(users.size):
        users[n] = order[user_order[n]]


@kernel
def _arrange(rows, plan, user_order, places):
    """Orders the users, computes their random keys, and where the rows, list and sampled items of each one begin."""
    users, offsets, first, own, keys = places
    if user_order.size:
        _balance_users(users, rows.indptr, user_order, own)
    visit_keys(plan.seed, plan.iteration, plan.first_user, users, keys)
    offsets[0] = 0
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
        samples = listed > 0 and hi - lo < plan.sampling_weights.size - 1
        offsets[n + 1] = own[n] + (plan.negatives if samples else 0)


NO_ORDER = np.empty(0, np.int64)


def arrange(users: Int64Array, rows: Any, plan: Plan, user_order: Int64Array = NO_ORDER) -> Places:
    """Where the rows of the users will be: users in the order given, or by list length and then permuted by `user_order`."""
    b = users.size
    users, offsets = np.array(users, np.int64), np.empty(b + 1, np.int64)
    places = Places(users, offsets, np.empty(b, np.int64), np.empty(b, np.int64), np.empty(b, np.uint64))
    _arrange(rows, plan, user_order, places)
    return places


@kernel
def _targets(rows, user, histories, places, targets):
    """Target position of each row of a user, from places = (offset, first) on; -1 for rows that are left out."""
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
    """Copies rows of `source` from `lo` on to their targets."""
    for t in range(targets.size):
        if targets[t] >= 0:
            target[targets[t]] = source[lo + t]


@kernel
def _copy_block(source, lo, target, start, size):
    """Copies `size` rows; a loop, because slices take several times as long to compile."""
    for t in range(size):
        target[start + t] = source[lo + t]


@kernel
def _copy_user(rows, user, histories, places, items, gains, residuals, recency_weights):
    """Copies the rows of one user into the arrays of a batch, from places = (offset, first) on."""
    lo, size, channels = rows.indptr[user], rows.indptr[user + 1] - rows.indptr[user], residuals.shape[1]
    if rows.listed.size == 0:  # all in their own order
        start = places[1]
        _copy_block(rows.items, lo, items, start, size)
        _copy_block(rows.gains, lo, gains, start, size)
        if residuals.size:
            _copy_block(
                rows.residuals.reshape(-1), lo * channels, residuals.reshape(-1), start * channels, size * channels
            )
        if rows.recency_weights.size:
            _copy_block(rows.recency_weights, lo, recency_weights, start, size)
        return
    targets = np.empty(size, np.int64)
    _targets(rows, user, histories, places, targets)
    _copy_rows(rows.items, lo, targets, items)
    _copy_rows(rows.gains, lo, targets, gains)
    if residuals.size:
        for b in range(channels):
            _copy_rows(rows.residuals[:, b], lo, targets, residuals[:, b])
    if rows.recency_weights.size:
        _copy_rows(rows.recency_weights, lo, targets, recency_weights)


@kernel
def _lay_out_user(batch, n, rows, plan):
    """Fills the rows of user n of the batch."""
    first, lo, hi = batch.first[n], batch.own[n], batch.offsets[n + 1]
    if plan.negatives:
        batch.weights[batch.offsets[n] : hi] = 1.0
    if rows.recency_weights.size:
        batch.recency_weights[batch.offsets[n] : hi] = 1.0
    batch.counts[n] = 1.0
    places = (batch.offsets[n], first)
    _copy_user(
        rows, batch.users[n], plan.histories, places, batch.items, batch.gains, batch.residuals, batch.recency_weights
    )
    if hi > lo:
        batch.gains[lo:hi] = 0.0
        if batch.residuals.size:
            batch.residuals[lo:hi] = 0.0
        if plan.shared:
            batch.counts[n] = (lo - first) / (hi - lo)


@parallel_kernel
def _lay_out_users(batch, rows, plan):
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            _lay_out_user(batch, n, rows, plan)


_ONES: dict[Any, Any] = {np.float32: np.ones(0, np.float32), np.float64: np.ones(0)}
"""Arrays that batches share, since every one needs ones, and none changes them."""


def lay_out(places: Places, rows: Any, plan: Plan) -> Batch:
    """The batch: for each user the rows of the history only, those of the list, and space for sampled items."""
    users, offsets, first, own, keys = places
    flat = int(offsets[-1])
    residuals = np.empty((flat if rows.residuals.size else 0, rows.residuals.shape[1]), np.float32)
    for kind, ones in _ONES.items():
        if ones.size < flat:
            _ONES[kind] = np.ones(2 * flat, kind)
    recency_weights = np.empty(flat, np.float32) if rows.recency_weights.size else _ONES[np.float32][:flat]
    weights = np.empty(flat) if plan.negatives else _ONES[np.float64][:flat]
    per_row = np.empty(flat, np.int32), np.empty(flat), residuals, recency_weights
    batch = Batch(
        users, offsets, first, own, *per_row, keys, weights, np.empty(users.size), plan.progress, plan.workers
    )
    _lay_out_users(batch, rows, plan)
    return batch
