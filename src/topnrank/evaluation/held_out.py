"""Held-out rows on which many candidates are measured: how settings are chosen inside `fit`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array, IntArray
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.evaluation.evaluate import user_values
from topnrank.evaluation.labels import Labels, match
from topnrank.evaluation.metrics import GRADED, Metric, parse_metrics
from topnrank.evaluation.protocols import rank_catalog, users_at_once

JUDGED_BY = "ndcg@10"
"""By what settings are chosen where nobody asks for another metric."""
FEWEST_USERS = 50
"""Fewer users with liked rows held out say too little to choose anything by."""


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of some users, with the training rows that are no candidates: all that ranking needs of a model."""

    fitted: Interactions
    block: Float32Array

    def score_block(self, users: IntArray) -> Float32Array:
        """The scores of these users."""
        assert len(users) == len(self.block)
        return self.block

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Asked for by the protocol of rated items alone."""
        raise AssertionError("whole catalogs are ranked here, never pairs")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Liked rows held out of training, and what ranking them among all other items needs to know."""

    known: _Scored
    labels: Labels
    metric: Metric

    @classmethod
    def of(cls, train: Interactions, held_out: Interactions, liked: Float64Array, metric: str) -> Self:
        """`liked` says which of the held-out rows count; users without such a row are left out."""
        (wanted,) = parse_metrics([metric])
        if wanted.kind == "coverage":
            raise ParameterError(
                f"validation: {metric} is one number for all lists; choose a metric of each user's list"
            )
        counted = np.bincount(held_out.user_index, weights=liked, minlength=held_out.n_users) > 0
        rows = counted[held_out.user_index]
        known = _Scored(train, np.empty((0, 0), np.float32))
        matched = match(known, held_out.take(rows), liked[rows], graded=wanted.kind in GRADED)
        return cls(known, matched.labels, wanted)

    @property
    def n_users(self) -> int:
        """Users who are ranked for."""
        return len(self.labels.users)

    def some(self, users: int) -> Self:
        """The rows of so many users, evenly from all of them."""
        if users >= self.n_users:
            return self
        positions = np.linspace(0, self.n_users - 1, users).astype(np.int64)
        return replace(self, labels=self.labels.of_users(positions))

    def means(self, candidates: Callable[[Int64Array], Iterable[Float32Array]]) -> Float64Array:
        """(n_candidates,) means of the metric over users; `candidates` gives (len(users), n_items) scores of each."""
        return np.asarray(np.nanmean(self.of_users(candidates), axis=1), np.float64)

    def of_users(self, candidates: Callable[[Int64Array], Iterable[Float32Array]]) -> Float64Array:
        """(n_candidates, n_users) the metric of each user."""
        values: list[list[Float64Array]] = []
        size = users_at_once(len(self.known.fitted.items))
        for first in range(0, self.n_users, size):
            part = self.labels.between(first, min(first + size, self.n_users))
            rankings = (
                rank_catalog(replace(self.known, block=block), part, [self.metric], exclude_seen=True)
                for block in candidates(part.users)
            )
            values.append([user_values(ranking, [self.metric])[1][self.metric.name] for ranking in rankings])
        return np.concatenate(values, axis=1)
