"""Recency: what a user did lately counts more in the history than what is long past.

    rho_uj = 2^-(later_uj / half-life),   later_uj = how many of the user's items are later than j

Counted in items, not in days, so that one number suits users of every pace. It says how histories and likes are summed up,
in training and in prediction, and how much an item of a training list counts: what stands at the end of a history is most
like what is asked for next. It needs the order of events, so it makes sense where the next items are wanted.
"""

import numpy as np

from topnrank._typing import Float32Array
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError

FAINTEST = 1e-6
"""However long past, an event is not nothing."""


def strengths_by_time(data: Interactions, half_life: float) -> Float32Array:
    """(n_rows,) rho of each row; rows of the same moment count alike."""
    if data.timestamps is None:
        raise DataError("recency needs timestamps and the data has none; name that column, or leave recency out")
    order = np.lexsort((-data.timestamps, data.user_index))  # latest first
    times, users = data.timestamps[order], data.user_index[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (times[1:] != times[:-1]) | (users[1:] != users[:-1])
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))  # where rows of this moment begin
    later = np.empty(len(order), np.int64)
    later[order] = start - data.indptr[users]
    return strengths_by_age(later, half_life)


def strengths_by_age(later: np.ndarray[tuple[int, ...], np.dtype[np.int64]], half_life: float) -> Float32Array:
    """rho of items that `later` others came after."""
    return np.maximum(np.exp2(-later / half_life), FAINTEST).astype(np.float32)


def strengths_in_order(size: int, half_life: float) -> Float32Array:
    """rho of a history of `size` items given from the oldest to the latest."""
    return strengths_by_age(np.arange(size)[::-1], half_life)
