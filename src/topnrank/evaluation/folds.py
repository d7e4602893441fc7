"""Folds for scikit-learn's searches: every user has rows in training and in the test part."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from topnrank._checks import require_integer
from topnrank._typing import Int64Array
from topnrank.data.frames import as_table, resolve_columns
from topnrank.rng import stream


@final
class UserFolds:
    """A splitter for `cv=` of `GridSearchCV` and the like: each user's items are dealt to `n_splits` folds at random.

    X is a frame; its columns of users and items are found by their usual names or named here. Rows of one user and item stay
    together, and the only item of a user stays in training.
    """

    def __init__(self, n_splits: int = 5, *, seed: int = 0, user: str | None = None, item: str | None = None) -> None:
        self.n_splits = require_integer("n_splits", n_splits, 2)
        self.seed, self.user, self.item = require_integer("seed", seed), user, item

    def __repr__(self) -> str:
        return f"UserFolds(n_splits={self.n_splits}, seed={self.seed})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Positions of the training and the test rows of each fold."""
        folds = self._fold_of_rows(X)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def _fold_of_rows(self, frame: Any) -> Int64Array:
        """(n_rows,) -1 for rows that are in no test part."""
        table = as_table(frame)
        columns = resolve_columns(table.column_names, {"user": self.user, "item": self.item})
        users, items = (
            table[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
            for name in (columns.user, columns.item)
        )
        pairs, rows = np.unique(users * (items.max(initial=0) + 1) + items, return_inverse=True)
        owners = pairs // (items.max(initial=0) + 1)
        random = stream(self.seed, "folds")
        order = np.lexsort((random.random(len(pairs)), owners))
        counts = np.bincount(owners)
        place = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = random.integers(0, self.n_splits, len(counts))
        folds = np.empty(len(pairs), np.int64)
        folds[order] = (place + np.repeat(first, counts)) % self.n_splits
        folds[counts[owners] == 1] = -1
        return folds[rows]
