"""Groups of neighbouring rows: the winning row of each, and sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import Float32Array, Int64Array
from topnrank.errors import DataError


def winners(starts: Int64Array, length: int, criteria: Sequence[NDArray[Any]]) -> Int64Array:
    """The row of each group that is largest by the first criterion, ties by the next, the last such row in the end.

    Parameters
    ----------
    starts
        First row of each group, (groups,).
    length
        Number of rows.
    criteria
        Arrays of shape (length,).
    """
    if length == 0:
        return starts
    sizes = np.diff(starts, append=length)
    best = np.ones(length, dtype=np.bool_)
    for values in criteria:
        standing = np.where(best, values, values.min())
        best &= values == np.repeat(np.maximum.reduceat(standing, starts), sizes)
    return np.maximum.reduceat(np.where(best, np.arange(length), -1), starts)


def sums(values: Float32Array | None, starts: Int64Array) -> Float32Array | None:
    """The sum of each group, (groups,), added up in float64; None for no values."""
    if values is None:
        return None
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(values.astype(np.float64), starts).astype(np.float32)
    if not np.isfinite(totals).all():
        raise DataError("ratings or weights of one user and item add up beyond the range of float32; scale them down")
    return totals
