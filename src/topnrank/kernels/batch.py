"""A batch of users as flat arrays: its records, its layout, and the items sampled for it."""

from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array, UInt64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.random import SAMPLING, draw_below, visit_keys
from topnrank.kernels.work_stealing import claim, new_work

# ----------------------------------------------------------------------------------------------------
# The few tuples of arrays that kernels take, so that none needs twenty arguments.


class Batch(NamedTuple):
    """The users of one visit, their rows laid out one user after another ("flat").

    The rows of a user: those of the history only | the own rows of the list | items sampled for the list. Rows
    offsets[n] .. own[n] are the user's history, rows first[n] .. offsets[n + 1] the list that the objective sees.
    """

    users: Int64Array
    """(b,)"""
    offsets: Int64Array
    """(b + 1,) where each user's rows begin in the flat arrays"""
    first: Int64Array
    """(b,) where the list begins"""
    own: Int64Array
    """(b,) where the user's own rows end and the sampled ones begin"""
    items: Int32Array
    """(flat,)"""
    gains: Float64Array
    """(flat,) 0 for sampled rows"""
    residuals: Float32Array
    """(flat, channels) 0 for sampled rows; or empty"""
    recency_weights: Float32Array
    """(flat,) how much a row counts in the user's history: 1, or less for what is long past"""
    keys: UInt64Array
    """(b,) what the random draws of each list are named by"""
    weights: Float64Array
    """(flat,) how many items each row stands for in the ranks: 1 for own rows, more for sampled ones"""
    counts: Float64Array
    """(b,) how many visits each sampled row of the list counts as, for the penalty"""
    progress: float
    """Share of the training that is done"""
    workers: int = 1
    """Who share the turns of the loops over users and items, usually one for each thread"""


class ActiveItems(NamedTuple):
    """The batch seen from the items: who visits each touched item, in the batch's order, sampled rows after the others."""

    items: Int32Array
    """(t,) the touched items"""
    starts: Int64Array
    """(t + 1,) where each item's visits begin"""
    own: Int64Array
    """(t,) where its visits by rows of the users' own end and those by sampled rows begin"""
    visits: Int32Array
    """(flat, 2) position of the visit in the batch's flat arrays, and of the visiting user in the batch"""


class Lists(NamedTuple):
    """What an objective says about the lists of a batch."""

    G: Float32Array
    """(2, flat) G_user and G_item; 0 for rows of the history only. They are multiplied by parameters of 32 bits: 64 would
    only take memory"""
    report: Float64Array
    """(b, 2) loss and effective N of each list"""


# ----------------------------------------------------------------------------------------------------
# A batch of users as flat arrays.


MAX_ROWS = 2**31 - 1
"""Of a batch: places are numbers of 32 bits."""
_POSITION_BITS = 32
_POSITIONS = 2**_POSITION_BITS - 1


class Plan(NamedTuple):
    """How rows become lists."""

    histories: bool
    """Whether rows that are not listed are laid out as well, for the histories"""
    negatives: int
    """Unobserved items sampled into each list"""
    sampling_weights: Int64Array
    """(n_items + 1,) running sum of the whole numbers that the chances of the items to be sampled are proportional to"""
    shared: bool
    """Whether the sampled rows of a list count together as many visits as its own rows; else one each"""
    progress: float
    """Share of the training that is done"""
    seed: np.uint64
    iteration: np.uint64
    first_user: int
    """Seed, iteration, and the number of user 0 among all users, by which the random draws are named"""
    workers: int = 1
    """As in `Batch`"""


class Places(NamedTuple):
    """Whose rows lie where in a batch; the arrays of `Batch` that are there before its rows are."""

    users: Int64Array
    offsets: Int64Array
    first: Int64Array
    own: Int64Array
    keys: UInt64Array


@kernel
def _missing_item(sampling_weights, observed, before, place):
    """The item that is not in the sorted array `observed` and in whose share of the chances `place` falls.

    Only missing items have a share; before[t] is the sum of the chances of the first t observed items. Whole numbers, so
    that no rounding ever chooses an observed item.
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
    """Fills `items` with items that are not observed, and `weights` with how many of them each stands for.

    Self-normalized importance weights: the weight falls as the chance rises, and their sum is the number of items that
    are not observed.
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
    """Draws the sampled rows of every list of the batch; `items` and `weights` are the batch's own."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.own[n], batch.offsets[n + 1]
            if hi > lo:
                observed = rows.items[rows.indptr[batch.users[n]] : rows.indptr[batch.users[n] + 1]]
                _sample(batch.keys[n], sampling_weights, observed, items[lo:hi], weights[lo:hi])


@kernel
def _deal(users, indptr, deal, order):
    """The users from the longest list to the shortest, equals as they came, then in the order `deal`; `order` is scratch."""
    for n in range(users.size):
        order[n] = ((indptr[users[n]] - indptr[users[n] + 1]) << _POSITION_BITS) | n
    order.sort()
    for n in range(users.size):
        order[n] = users[order[n] & _POSITIONS]
    for n in range(users.size):
        users[n] = order[deal[n]]


@kernel
def _arrange(rows, plan, deal, places):
    """Deals the users, names their draws, and finds where each one's rows, list and sampled items begin."""
    users, offsets, first, own, keys = places
    if deal.size:
        _deal(users, rows.indptr, deal, own)
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


def arrange(users: Int64Array, rows: Any, plan: Plan, deal: Int64Array = NO_ORDER) -> Places:
    """The places of the users' rows: as the users come, or by length and then in the order `deal`."""
    b = users.size
    users, offsets = np.array(users, np.int64), np.empty(b + 1, np.int64)
    places = Places(users, offsets, np.empty(b, np.int64), np.empty(b, np.int64), np.empty(b, np.uint64))
    _arrange(rows, plan, deal, places)
    return places


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
def _copy_user(rows, user, histories, places, items, gains, residuals, recency_weights):
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
    """All rows of the batch's user n."""
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


_ONES = {np.dtype(kind): np.ones(0, kind) for kind in (np.float32, np.float64)}


def ones(size: int, kind: type[np.floating[Any]]) -> Any:
    """`size` ones to be read only: the first of an array that is kept, since batch after batch needs as many."""
    kept = _ONES[np.dtype(kind)]
    if kept.size < size:
        kept = _ONES[np.dtype(kind)] = np.ones(2 * size, kind)
    return kept[:size]


def lay_out(places: Places, rows: Any, plan: Plan) -> Batch:
    """The batch: for each user the rows of the history only, those of the list, and room for sampled items."""
    users, offsets, first, own, keys = places
    flat = int(offsets[-1])
    residuals = np.empty((flat if rows.residuals.size else 0, rows.residuals.shape[1]), np.float32)
    recency_weights = np.empty(flat, np.float32) if rows.recency_weights.size else ones(flat, np.float32)
    weights = np.empty(flat) if plan.negatives else ones(flat, np.float64)
    per_row = np.empty(flat, np.int32), np.empty(flat), residuals, recency_weights
    batch = Batch(
        users, offsets, first, own, *per_row, keys, weights, np.empty(users.size), plan.progress, plan.workers
    )
    _lay_out_users(batch, rows, plan)
    return batch
