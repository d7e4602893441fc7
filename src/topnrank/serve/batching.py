"""Micro-batching: requests that come within a moment are scored together, where the catalog is so large that it pays.

One user's scores read all item vectors once; those of several users read them once, too. From some 30,000 items on that
is most of a request. A request that no other joins is scored as without batching; of scores that are computed together the
last bit may differ, as between `model.recommend(history=...)` and `model.recommend(histories=...)`.
"""

import asyncio
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array
from topnrank.models.serving.filters import Request
from topnrank.models.serving.histories import Histories
from topnrank.models.serving.recommend import history_scores
from topnrank.serve.models import Served
from topnrank.serve.tastes import History

LARGE = 30_000
"""Items from which on batching pays."""
MOST = 32
"""Histories that are scored together."""


class _Waiting(NamedTuple):
    """A request that waits for its scores."""

    history: History
    done: "asyncio.Future[Float32Array]"


class Batcher:
    """Collects the histories of a moment."""

    def __init__(self, window_ms: float) -> None:
        self._seconds = window_ms / 1000
        self._waiting: dict[tuple[Served, bool], list[_Waiting]] = {}

    def takes(self, served: Served) -> bool:
        """Whether requests to this model are worth the waiting; fitting user vectors has nothing to share."""
        return len(served.catalog) >= LARGE and not served.folds_in

    async def scores(self, served: Served, history: History, *, seen_too: bool) -> Float32Array:
        """(1, n_items) as `Served.scores_of_history`."""
        loop = asyncio.get_running_loop()
        group = self._waiting.setdefault((served, seen_too), [])
        one = _Waiting(history, loop.create_future())
        group.append(one)
        if len(group) == 1:
            loop.call_later(self._seconds, self._score, served, seen_too, group)
        elif len(group) >= MOST:
            self._score(served, seen_too, group)
        return await one.done

    def _score(self, served: Served, seen_too: bool, group: list[_Waiting]) -> None:
        """Scores a group, unless it was full and is done; whose history cannot be scored learns why, and nobody else."""
        if self._waiting.get((served, seen_too)) is not group:
            return
        del self._waiting[served, seen_too]
        try:
            block = _together(served, [one.history for one in group], seen_too=seen_too) if len(group) > 1 else None
        except ValueError:
            block = None
        for place, one in enumerate(group):
            if one.done.done():  # the client went away
                continue
            try:
                if block is None:
                    one.done.set_result(served.scores_of_history(*one.history, seen_too=seen_too))
                else:
                    one.done.set_result(block[place : place + 1])
            except Exception as error:
                one.done.set_exception(error)


def _together(served: Served, histories: list[History], *, seen_too: bool) -> Float32Array:
    """(n, n_items) the scores of several histories."""
    sizes = [history.items.size for history in histories]
    values = [np.full(one.items.size, np.nan) if one.values is None else one.values for one in histories]
    indptr, items = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([one.items for one in histories])
    names = np.arange(len(histories))
    request = Request(1, exclude_seen=not seen_too)
    return history_scores(served.model, Histories(names, indptr, items, np.concatenate(values)), request)
