"""Many rows on their way to CSR: numbers for ids, and the order by user and item."""

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Int32Array, Int64Array
from topnrank.kernels.jit import kernel, parallel_kernel, prange

_ROW_BITS = 32
_ROW_MASK = 2**_ROW_BITS - 1


@kernel
def mark_present(ids: Int64Array, low: int, present: BoolArray) -> None:
    """present[id - low] = True for every id."""
    for row in range(ids.size):
        present[ids[row] - low] = True


@parallel_kernel
def number_ids(ids: Int64Array, low: int, numbers: Int32Array, codes: Int32Array) -> None:
    """codes[row] = numbers[ids[row] - low]."""
    for row in prange(ids.size):
        codes[row] = numbers[ids[row] - low]


@parallel_kernel
def falls(users: Int32Array, cells: Int32Array) -> int:
    """How often the pair (user, cell) does not rise from row to row."""
    count = 0
    for row in prange(1, users.size):
        equal = users[row] == users[row - 1]
        count += (users[row] < users[row - 1]) | (equal & (cells[row] <= cells[row - 1]))
    return count


@kernel
def deal_out(users: Int32Array, cells: Int32Array, indptr: Int64Array, keys: Int64Array) -> None:
    """A counting sort by user: keys[p], for the p of indptr[u] to indptr[u + 1], hold cell and row of the rows of u."""
    free = indptr[:-1].copy()
    for row in range(users.size):
        user = users[row]
        keys[free[user]] = (np.int64(cells[row]) << _ROW_BITS) | row
        free[user] += 1


@parallel_kernel
def sort_within(indptr: Int64Array, keys: Int64Array) -> int:
    """Sorts the keys of each user, equal cells by row; returns how many cells repeat the one before."""
    repeats = 0
    for user in prange(indptr.size - 1):
        own = keys[indptr[user] : indptr[user + 1]]
        own.sort()
        for place in range(1, own.size):
            repeats += (own[place] >> _ROW_BITS) == (own[place - 1] >> _ROW_BITS)
    return repeats


@parallel_kernel
def cells_of(keys: Int64Array, cells: Int32Array) -> None:
    """The cells of sorted keys."""
    for place in prange(keys.size):
        cells[place] = keys[place] >> _ROW_BITS


@parallel_kernel
def gather(keys: Int64Array, values: Float32Array | Int64Array, out: Float32Array | Int64Array) -> None:
    """The values of the rows of sorted keys."""
    for place in prange(keys.size):
        out[place] = values[keys[place] & _ROW_MASK]
