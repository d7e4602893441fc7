"""SGD and AdaGrad steps of rows of parameters; a rule is three numbers: whether AdaGrad, the rate, the decay 2 lambda."""

import numpy as np

from topnrank.kernels.jit import kernel, leaf_kernel, parallel_kernel, prange, summing_kernel

CHUNKS = 2**6
"""Parts of the loop over active items, each with its own scratch; each item steps alone, so bits do not depend on it."""
BLOCK = 16
"""Items that stay together: a chunk has every `CHUNKS`-th block, so that all chunks have about equally much to do."""
SUM = (False, -1.0, 0.0)
"""The rule under which a step from 0 leaves the sum of the gradients, exactly: plain descent by -1 without a penalty."""


@leaf_kernel
def _place_of(chunk):
    """The bits of a chunk's number in reverse: adjacent blocks go to distant chunks, and so to different threads."""
    place = 0
    for bit in range(6):
        place |= ((chunk >> bit) & 1) << (5 - bit)
    return place


@leaf_kernel
def chunk_size(chunk, size):
    """How many of `size` items are in a chunk."""
    whole, rest = divmod(size, CHUNKS * BLOCK)
    return whole * BLOCK + min(max(rest - _place_of(chunk) * BLOCK, 0), BLOCK)


@leaf_kernel
def place_in_chunk(chunk, turn):
    """The item at position `turn` of a chunk."""
    return (turn // BLOCK * CHUNKS + _place_of(chunk)) * BLOCK + turn % BLOCK


@summing_kernel
def dot(x, y):
    """Inner product of two vectors in their own precision."""
    total = x.dtype.type(0)
    for d in range(x.size):
        total += x[d] * y[d]
    return total


@leaf_kernel
def add_two(out, a, x, b, y):
    """out += a x + b y: two rows at once, so that `out` is read and written half as often."""
    for d in range(out.size):
        out[d] += a * x[d] + b * y[d]


@leaf_kernel
def step_row(rule, visits, gradient, row, accumulator):
    """Adds `visits` times the penalty to `gradient` and steps `row`; returns the squared distance moved.

    Plain descent: row -= rate * g. AdaGrad: accumulator += g^2, row -= rate * g / sqrt(accumulator), per coordinate.
    `gradient` is left holding the step, because only a loop without a running sum vectorizes.
    """
    rate = np.float32(rule[1])
    decay = np.float32(rule[2] * visits)
    if rule[0] > 0.0:
        for d in range(row.size):
            g = gradient[d] + decay * row[d]
            accumulator[d] += g * g
            g = rate * g / np.sqrt(accumulator[d])
            gradient[d] = g
            row[d] -= g
    else:
        for d in range(row.size):
            g = rate * (gradient[d] + decay * row[d])
            gradient[d] = g
            row[d] -= g
    return dot(gradient, gradient)


@kernel
def step_number(rule, visits, gradient, values, accumulators, i):
    """`step_row` for the single number values[i]."""
    g = np.float32(gradient + rule[2] * visits * values[i])
    delta = np.float32(rule[1]) * g
    if rule[0] > 0.0:
        accumulators[i] += g * g
        delta /= np.sqrt(accumulators[i])
    values[i] -= delta
    return delta * delta


@parallel_kernel
def step_rows(rule, items, visits, gradients, values, accumulators, moved):
    """`step_row` of the rows `items` by known gradient sums; visits (n,), gradients (n, k), which are left as the steps."""
    for t in prange(items.size):
        moved[t] = step_row(rule, visits[t], gradients[t], values[items[t]], accumulators[items[t]])


@parallel_kernel
def add_rows(places, rows, totals):
    """totals[places[t]] += rows[t]; each place occurs once."""
    for t in prange(places.size):
        for d in range(rows.shape[1]):
            totals[places[t], d] += rows[t, d]


@kernel
def add_up(report, moved_users, moved_items, total):
    """total = the sums of the two columns of `report`, and the sum of all distances moved."""
    total[:] = 0.0
    for n in range(report.shape[0]):
        total[0] += report[n, 0]
        total[1] += report[n, 1]
    for moved in (moved_users, moved_items):
        for distance in moved:
            total[2] += distance
