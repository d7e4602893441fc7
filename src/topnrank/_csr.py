"""Row pointers of CSR matrices: the rows of owner u (a user, an item, a list) are indptr[u] to indptr[u + 1]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import BoolArray, Int64Array, IntArray


def indptr_from_counts(counts: IntArray | BoolArray) -> Int64Array:
    """(n + 1,) row pointers of owners with so many rows each."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def row_owner(indptr: IntArray, dtype: type[np.signedinteger[Any]] = np.int64) -> NDArray[Any]:
    """(n_rows,) number of the owner of each row."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=dtype), np.diff(indptr))


def masked_indptr(indptr: IntArray, kept: BoolArray) -> Int64Array:
    """(n + 1,) row pointers after all rows outside the mask `kept`, (n_rows,), were removed."""
    return indptr_from_counts(kept)[indptr]
