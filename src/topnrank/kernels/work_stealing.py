"""Turns of a parallel loop that threads take from each other when their own are done.

Each worker has a range of the turns and takes them one by one; then it helps the others. So a turn is mostly taken by the
worker who took it in the loop before, in whose cache its rows are, and yet nobody waits long at the end: cores of a shared
machine are not equally fast. Who takes a turn decides nothing but the time; turns write only their own rows.

    turns = new_turns(workers)
    for worker in prange(workers):
        for n in taken(turns, worker, size):
            ...
"""

from typing import Any

import numpy as np

from topnrank.kernels.jit import generator_kernel, kernel, leaf_kernel, numba  # type: ignore[attr-defined]

_LINE = 16
"""Numbers of 8 bytes between counters, two cache lines: cores do not share what they count with."""


def _count_up(work: Any, worker: int) -> int:
    """turns[worker, 0] += 1 at once for all threads; returns what it was."""
    work[worker, 0] += 1
    return int(work[worker, 0]) - 1


if numba is not None:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def _count_up(context, work, worker):
        """See above."""

        def emit(context, builder, signature, args):
            array = context.make_array(work)(context, builder, args[0])
            shape, strides = (cgutils.unpack_tuple(builder, part, 2) for part in (array.shape, array.strides))
            zero = context.get_constant(types.intp, 0)
            place = cgutils.get_item_pointer2(
                context, builder, array.data, shape, strides, work.layout, [args[1], zero]
            )
            return builder.atomic_rmw("add", place, context.get_constant(types.int64, 1), "monotonic")

        return types.int64(work, types.intp), emit


@kernel
def new_work(workers):
    """No turn taken yet; a row for each worker."""
    return np.zeros((workers, _LINE), np.int64)


@leaf_kernel
def _next_task(work, worker, size):
    """The next of `size` turns that nobody has taken: of the worker's own, then of those who come after; -1 without one."""
    workers = work.shape[0]
    for shift in range(workers):
        owner = (worker + shift) % workers
        turn = size * owner // workers + _count_up(work, owner)
        if turn < size * (owner + 1) // workers:
            return turn
    return -1


@generator_kernel
def claim(work, worker, size):
    """The turns that the worker takes, of those from 0 to `size` - 1; all workers together take each once."""
    turn = _next_task(work, worker, size)
    while turn >= 0:
        yield turn
        turn = _next_task(work, worker, size)
