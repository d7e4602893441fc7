"""Sessions: what a user does at one go. Items seen together there are closer than two items of a long history.

The events of a user in the order of time, cut wherever more than `gap` seconds passed since the one before. A pair of user
and item is one event, at the time that the feedback kept for it.
"""

import numpy as np

from topnrank._typing import Int64Array
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError


def sessions_of(data: Interactions, gap: float) -> Int64Array:
    """(n_rows,) the number of each row's session, counted through all users in their order."""
    if data.timestamps is None:
        raise DataError("sessions need timestamps and the data has none; name that column, or leave sessions out")
    users = data.user_index
    order = np.lexsort((data.timestamps, users))
    begins = np.ones(len(data), np.bool_)
    begins[1:] = (np.diff(users[order]) != 0) | (np.diff(data.timestamps[order]) > gap)
    numbers = np.empty(len(data), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers
