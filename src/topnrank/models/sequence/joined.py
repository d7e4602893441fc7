"""The rows of a fitted model and new ones as one, for `partial_fit`."""

from typing import TYPE_CHECKING

import numpy as np

from topnrank._csr import row_owner
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.models.factor.fitted import TIMES

if TYPE_CHECKING:
    from topnrank.models.sequence.model import OrderedModel

WEIGHTS = "seen_weights"
"""The array of the weights of the training rows."""
PLACES = "seen_places"
"""That of where they stood in the file; only of data that keep it."""


def joined(model: "OrderedModel", new: Interactions) -> Interactions:
    """Old and new rows with weights and times, new ids after the old ones; of a pair that comes again the latest row."""
    fitted = model.fitted
    if new.timestamps is None or len(new) == 0:
        raise DataError("partial_fit: the new rows must be some, with timestamps, as those of the training")
    if new.users.is_integer != fitted.users.is_integer or new.items.is_integer != fitted.items.is_integer:
        raise DataError("partial_fit: the ids of the new rows are of another kind (numbers or text) than the model's")
    weighted, _ = model.weighted(new)
    assert weighted.weights is not None
    assert weighted.timestamps is not None
    users, user_codes = IdMap.encode(np.concatenate([fitted.users.ids, weighted.users.ids]))
    items, item_codes = IdMap.encode(np.concatenate([fitted.items.ids, weighted.items.ids]))
    user = user_codes[np.concatenate([row_owner(fitted.indptr), len(fitted.users) + weighted.user_index])]
    item = item_codes[np.concatenate([fitted.indices, len(fitted.items) + weighted.indices])]
    times = np.concatenate([fitted.arrays[TIMES], weighted.timestamps]).astype(np.int64)
    weights = np.concatenate([fitted.arrays[WEIGHTS], weighted.weights])
    pair = user.astype(np.int64) * len(items) + item
    places = None
    if PLACES in fitted.arrays:  # new rows are taken as if they stood below the old ones
        own = fitted.arrays[PLACES].astype(np.int64)
        new_places = np.arange(len(weighted)) if weighted.places is None else weighted.places
        places = np.concatenate([own, own.max() + 1 + new_places])
    order = np.lexsort((times, pair))  # the latest row of a pair is its last
    order = order[np.append(np.diff(pair[order]) != 0, True)]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(user[order], minlength=len(users)))])
    return Interactions(
        users=users,
        items=items,
        indptr=indptr,
        indices=item[order].astype(np.int32),
        weights=weights[order],
        timestamps=times[order],
        places=None if places is None else places[order],
    )
