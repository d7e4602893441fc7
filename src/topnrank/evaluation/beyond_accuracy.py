"""Metrics of the items in the users' top k, relevant or not: coverage, novelty, popularity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topnrank._csr import row_owner
from topnrank._typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray
from topnrank.evaluation.labels import Ranker
from topnrank.evaluation.metrics import Metric
from topnrank.kernels.top_items import top_items


class ItemCounts(NamedTuple):
    """Numbers of users in the training data."""

    by_item: Float64Array
    """(n_items,) training users of each item"""
    users: int
    """All users with at least one training row"""


@dataclass(frozen=True)
class ListMeans:
    """The mean over each user's top k of one number per item."""

    numbers: Float64Array
    """(n_items,)"""
    sums: Float64Array
    """(n_users,) over the items so far"""
    counts: Int64Array
    """(n_users,) of the items so far"""

    @classmethod
    def empty(cls, numbers: Float64Array, n_users: int) -> "ListMeans":
        """Without items."""
        return cls(numbers, np.zeros(n_users), np.zeros(n_users, np.int64))

    def add(self, owner: IntArray, items: IntArray) -> None:
        """Add `items` of the users at the positions `owner`, ascending."""
        if len(owner):
            first, size = int(owner[0]), int(owner[-1] - owner[0]) + 1
            sums = np.bincount(owner - first, weights=self.numbers[items], minlength=size)
            self.sums[first : first + size] += sums
            self.counts[first : first + size] += np.bincount(owner - first, minlength=size)

    def value(self) -> Float64Array:
        """(n_users,) means, NaN for users without items."""
        means = np.full(len(self.sums), np.nan)
        np.divide(self.sums, self.counts, out=means, where=self.counts > 0)
        return means


@dataclass(frozen=True)
class TopLists:
    """Counts over the users' top k, for every k that a metric needs; ties are broken by item."""

    n_items: int
    shown: dict[int, BoolArray]
    """(n_items,) for each k of coverage: whether the item is in some user's top k"""
    means: dict[tuple[str, int], ListMeans]
    """By kind and k"""
    profiles: Float64Array
    """(n_users,) mean number of training users over each user's own training items; empty if not wanted"""

    @classmethod
    def of(
        cls, metrics: Sequence[Metric], model: Ranker, users: Int64Array, item_counts: ItemCounts | None = None
    ) -> "TopLists":
        """Empty, for those of `metrics` that need it; `users` are indices in the model.

        `item_counts` are those of all training data, where `model` knows only a part of the users.
        """
        n_items = len(model.fitted.items)
        shown = {metric.cut: np.zeros(n_items, np.bool_) for metric in metrics if metric.kind == "coverage"}
        wanted = {(metric.kind, metric.cut) for metric in metrics if metric.kind in ("novelty", "popularity")}
        if not wanted:
            return cls(n_items, shown, {}, np.empty(0))
        seen_by, n_users = training_users(model) if item_counts is None else item_counts
        information = np.log2(max(n_users, 1)) - np.log2(np.maximum(seen_by, 1.0))
        numbers = {"novelty": information, "popularity": seen_by}
        means = {(kind, cut): ListMeans.empty(numbers[kind], len(users)) for kind, cut in wanted}
        return cls(n_items, shown, means, _profiles(model, users, seen_by))

    @property
    def depth(self) -> int:
        """The largest k."""
        return min(max((*self.shown, *(cut for _, cut in self.means)), default=0), self.n_items)

    def add(self, owner: IntArray, items: IntArray, ranks: IntArray) -> None:
        """Count `items`, -1 for none, at 0-based `ranks` of the lists of the users at the positions `owner`, ascending."""
        for cut, shown in self.shown.items():
            shown[items[(ranks < cut) & (items >= 0)]] = True
        for (_, cut), means in self.means.items():
            chosen = (ranks < cut) & (items >= 0)
            means.add(owner[chosen], items[chosen])

    def add_block(self, first: int, block: Float32Array) -> None:
        """Count the best of a block of scores, NaN for no candidate; its rows are the users from position `first` on."""
        if self.depth:
            best = top_items(block, self.depth)
            owner = np.repeat(np.arange(first, first + len(best)), self.depth)
            self.add(owner, best.ravel(), np.tile(np.arange(self.depth), len(best)))

    def coverage(self, cut: int) -> float:
        """Fraction of the catalog in some user's top `cut`."""
        return float(self.shown[cut].mean())

    def value(self, metric: Metric) -> Float64Array:
        """(n_users,) novelty or popularity of each user's list; NaN without items, or without training rows."""
        means = self.means[metric.kind, metric.cut].value()
        return means if metric.kind == "novelty" else means / self.profiles


def needs_item_counts(metrics: Sequence[Metric]) -> bool:
    """Whether one of `metrics` needs the number of training users of each item."""
    return any(metric.kind in ("novelty", "popularity") for metric in metrics)


def training_users(model: Ranker) -> ItemCounts:
    """Training users of each item, and of all; rows of one pair count once."""
    known = model.fitted
    pairs = np.unique(row_owner(known.indptr) * len(known.items) + known.indices)
    counts = np.bincount(pairs % len(known.items), minlength=len(known.items))
    return ItemCounts(counts.astype(np.float64), int((np.diff(known.indptr) > 0).sum()))


def _profiles(model: Ranker, users: Int64Array, seen_by: Float64Array) -> Float64Array:
    """(n_users,) mean of `seen_by` over each user's training items; NaN without any."""
    known = model.fitted
    sums = np.bincount(row_owner(known.indptr), weights=seen_by[known.indices], minlength=len(known.users))
    sizes, means = np.diff(known.indptr), np.full(len(sums), np.nan)
    np.divide(sums, sizes, out=means, where=sizes > 0)
    return np.asarray(means[users])
