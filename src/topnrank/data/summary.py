"""The distribution of activity over users and items: quantiles, shares, histogram bins."""

from dataclasses import dataclass
from typing import final

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Float64Array, Int32Array, Int64Array
from topnrank.data.interactions import Interactions

_QUANTILES = {"min": 0.0, "10 %": 0.1, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "90 %": 0.9, "99 %": 0.99, "max": 1.0}


@final
@dataclass(frozen=True, eq=False)
class Distribution:
    """How many rows each user, or each item, has; several types of one (user, item) pair count once."""

    counts: Int64Array
    """(n,) one for each user or item that has any."""

    @classmethod
    def over_users(cls, data: Interactions) -> "Distribution":
        """List lengths: items of each user."""
        return cls._of(data.user_index[data.pair_starts], data.n_users)

    @classmethod
    def over_items(cls, data: Interactions) -> "Distribution":
        """Popularity: users of each item."""
        return cls._of(data.indices[data.pair_starts], data.n_items)

    @classmethod
    def _of(cls, codes: Int32Array, size: int) -> "Distribution":
        counts = np.bincount(codes, minlength=size)
        return cls(counts[counts > 0])

    def quantiles(self) -> dict[str, float]:
        """From the shortest to the longest, and the mean."""
        values = np.quantile(self.counts, list(_QUANTILES.values()))
        return {**dict(zip(_QUANTILES, values.tolist(), strict=True)), "mean": float(self.counts.mean())}

    def top_share(self, fraction: float) -> float:
        """Fraction of all rows that belong to the `fraction` of owners with the most; at least one owner."""
        busiest = np.sort(self.counts)[::-1][: max(1, round(fraction * len(self.counts)))]
        return float(busiest.sum() / self.counts.sum())

    def gini(self) -> float:
        """The Gini coefficient: 0 when all have the same, near 1 when one has everything."""
        ordered = np.sort(self.counts).astype(np.float64)
        n = len(ordered)
        return float(2.0 * (np.arange(1, n + 1) @ ordered) / (n * ordered.sum()) - (n + 1) / n)

    def tenths(self) -> Float64Array:
        """Share of all rows of each tenth of the owners, the busiest tenth first; (10,)."""
        ordered = np.sort(self.counts)[::-1]
        edges = np.round(np.linspace(0, len(ordered), 11)).astype(np.int64)
        running = indptr_from_counts(ordered)
        shares: Float64Array = np.diff(running[edges]) / running[-1]
        return shares

    def bins(self) -> dict[str, int]:
        """How many owners have 1, 2-4, 5-9, 10-19, 20-49, ... rows; without empty bins at both ends."""
        edges = _edges(int(self.counts.max()))
        found = np.histogram(self.counts, edges)[0]
        filled = np.flatnonzero(found)
        return {_span(int(edges[k]), int(edges[k + 1]) - 1): int(found[k]) for k in range(filled[0], filled[-1] + 1)}


def _edges(largest: int) -> Int64Array:
    """1, 2, 5, 10, 20, 50, ... up to the first beyond `largest`."""
    edges = [1]
    while edges[-1] <= largest:
        edges.append(edges[-1] * 5 // 2 if str(edges[-1])[0] == "2" else edges[-1] * 2)
    return np.array(edges, dtype=np.int64)


def _span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"
