"""Groups of neighbouring rows: the order that makes them, the winning row of each, and sums."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topnrank._typing import Float32Array, Int64Array
from topnrank.errors import DataError

_SIGNLESS_BITS = 63
"""Of an int64 that is not negative."""


class Valued(Protocol):
    """Rows with what can be added up, and their times."""

    @property
    def ratings(self) -> Float32Array | None:
        """(n_rows,)"""

    @property
    def weights(self) -> Float32Array | None:
        """(n_rows,)"""

    @property
    def timestamps(self) -> Int64Array | None:
        """(n_rows,)"""


def sort_stably(keys: Int64Array) -> Int64Array:
    """Sorts `keys`, which are not negative, in place; returns the order of a stable argsort, (len(keys),).

    Where key and position fit one integer together, sorting that integer is several times faster than an argsort.
    """
    position_bits = len(keys).bit_length()
    if int(keys.max()).bit_length() + position_bits > _SIGNLESS_BITS:
        order = np.argsort(keys, kind="stable")
        keys[:] = keys[order]
        return order
    keys <<= position_bits
    keys |= np.arange(len(keys))
    keys.sort()
    order = keys & ((1 << position_bits) - 1)
    keys >>= position_bits
    return order


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


def totals(rows: Valued, starts: Int64Array) -> dict[str, Any]:
    """Of each group the sums of ratings and weights and the latest timestamp, by field; None where there are none."""
    latest = None if rows.timestamps is None else np.maximum.reduceat(rows.timestamps, starts)
    return {
        "ratings": _sums(rows.ratings, starts),
        "weights": _sums(rows.weights, starts),
        "timestamps": latest,
    }


def _sums(values: Float32Array | None, starts: Int64Array) -> Float32Array | None:
    """The sum of each group, (groups,), added up in float64; None for no values."""
    if values is None:
        return None
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(values.astype(np.float64), starts).astype(np.float32)
    if not np.isfinite(totals).all():
        raise DataError("ratings or weights of one user and item add up beyond the range of float32; scale them down")
    return totals
