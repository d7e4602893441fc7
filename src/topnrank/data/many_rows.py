"""Encoding and sorting of millions of rows by kernels; below `MANY` rows NumPy is used, with the same results.

Kernels are imported inside the functions: importing Numba takes longer than reading a small file.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topnrank._csr import indptr_from_counts, row_owner
from topnrank._typing import Int32Array, Int64Array, IntArray

MANY = 1_000_000
"""From so many rows on kernels are faster, even in a process that must import Numba for them."""
_MAX_ROWS, _MAX_CELLS = 2**32, 2**31


def encode_dense(chunks: Sequence[IntArray], low: int, high: int) -> tuple[Int64Array, Int32Array]:
    """The distinct values of all chunks, from `low` to `high`, ascending, and the number of each value."""
    from topnrank.data._csr_kernels import mark_present, number_ids

    present = np.zeros(high - low + 1, np.bool_)
    for chunk in chunks:
        mark_present(chunk, low, present)
    numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
    codes = np.empty(sum(chunk.size for chunk in chunks), np.int32)
    first = 0
    for chunk in chunks:
        number_ids(chunk, low, numbers, codes[first : first + chunk.size])
        first += chunk.size
    return np.flatnonzero(present) + low, codes


def is_ascending(users: Int32Array, cells: Int32Array) -> bool:
    """Whether the pairs (user, cell) rise strictly from row to row."""
    from topnrank.data._csr_kernels import falls

    return bool(falls(users, cells) == 0)


class CsrOrder:
    """The rows by user and cell, a number below `n_cells`, of at most 2^32 rows; equal ones in their own order."""

    def __init__(self, users: Int32Array, cells: Int32Array, n_users: int) -> None:
        from topnrank.data._csr_kernels import deal_out, sort_within

        counts = np.bincount(users, minlength=n_users)
        self.indptr = indptr_from_counts(counts)
        self.keys = np.empty(users.size, np.int64)
        deal_out(users, cells, self.indptr, self.keys)
        self.has_repeats = bool(sort_within(self.indptr, self.keys))

    @staticmethod
    def fits(n_rows: int, n_cells: int) -> bool:
        """Whether row and cell fit into one number."""
        return n_rows < _MAX_ROWS and n_cells < _MAX_CELLS

    def users(self) -> Int32Array:
        """User of each row in the new order."""
        return row_owner(self.indptr, np.int32)

    def cells(self) -> Int32Array:
        """Cell of each row in the new order."""
        from topnrank.data._csr_kernels import cells_of

        cells = np.empty(self.keys.size, np.int32)
        cells_of(self.keys, cells)
        return cells

    def of(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Some values in the new order."""
        from topnrank.data._csr_kernels import gather

        ordered = np.empty_like(values)
        gather(self.keys, values, ordered)
        return ordered
