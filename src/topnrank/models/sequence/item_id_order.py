"""ItemIdOrder: the control that knows no order but that of item ids."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from topnrank._typing import Float32Array, FloatArray, Int32Array, IntArray
from topnrank.data.interactions import Interactions
from topnrank.data.order import TimedItems, oldest_first, rule_of_ties, times_of
from topnrank.models.base import FitInfo, Fitted, Model

LAST = "user_last_item"
"""Name of the array in the fitted model."""


@final
@dataclass(eq=False, kw_only=True)
class ItemIdOrder(Model):
    """Ranks items by how near their ids follow that of the user's last item; smaller ids come after all larger ones.

    A control: no taste, no counts. Where it is good, ids were given in the order that is asked for (release dates, or rows
    sorted by id before somebody numbered them), and models that know order may be right for that reason. Needs timestamps.
    """

    name: ClassVar[str] = "item-id-order"
    summary: ClassVar[str] = "control of order: items whose ids follow that of the user's last item"

    def fit(self, data: Interactions) -> Self:
        """Learns the last item of each user; of several at one moment the last in the file, or where that is unknown any."""
        self.check()
        events = TimedItems.of(data, times_of(data, type(self).__name__, "Popularity"))
        order = oldest_first(data, events, rule_of_ties(data), 0)
        last: Any = np.zeros(data.n_users, np.int32)  # a number, not a measure, among the learned arrays
        last[events.users[order]] = data.indices[events.rows[order]]  # the latest is written last
        pairs = data.take(data.pair_starts)
        self._fitted = Fitted.of(pairs, {LAST: last}, FitInfo(fingerprint=data.fingerprint()))
        return self

    def score_block(self, users: IntArray) -> Float32Array:
        """How near each id follows the last one."""
        return self._after(self._last[users][:, None], np.arange(len(self.item_map))[None, :])

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The same for pairs."""
        return self._after(self._last[users], np.asarray(items))

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """For a user never seen, whose items are given from the oldest to the latest."""
        return self._after(np.asarray(items)[-1:], np.arange(len(self.item_map)))

    @property
    def _last(self) -> Int32Array:
        return np.asarray(self.fitted.arrays[LAST], np.int32)

    def _after(self, last: IntArray, items: IntArray) -> Float32Array:
        """Minus the steps from `last` up to the item, around the end of the ids."""
        steps = np.mod(np.asarray(items, np.int64) - last, len(self.item_map))
        return np.asarray(-steps, np.float32)
