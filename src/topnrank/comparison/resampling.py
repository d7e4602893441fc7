"""Bootstrap intervals of many means over the same users at once: users are drawn once, not once for each mean."""

import numpy as np

from topnrank._typing import Float64Array
from topnrank.rng import stream

_BLOCK = 2**22
"""Draws of users held at a time."""


def bootstrap_intervals(
    columns: Float64Array, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> list[tuple[float, float]]:
    """The intervals that `statistics.bootstrap_interval` gives for each of the `columns`, (n_users, n_columns).

    Columns that are defined for the same users, as those of all models are as a rule, share their draws; a sample is then a
    vector of counts, and all its means are one product with it.
    """
    defined = ~np.isnan(columns)
    kinds, kind_of = np.unique(defined, axis=1, return_inverse=True)
    intervals = [(float("nan"), float("nan"))] * columns.shape[1]
    for kind in range(kinds.shape[1]):
        places = np.flatnonzero(kind_of.ravel() == kind)
        values = columns[np.ix_(kinds[:, kind], places)]
        if len(values) >= 2:
            means = _means(values, draws, seed)
            edges = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
            for place, (low, high) in zip(places.tolist(), edges.T.tolist(), strict=True):
                intervals[place] = low, high
    return intervals


def _means(values: Float64Array, draws: int, seed: int) -> Float64Array:
    """(draws, n_columns) means of samples of the rows, drawn with replacement."""
    random, n = np.random.Generator(np.random.SFC64(int(stream(seed, "bootstrap").integers(2**63)))), len(values)
    block = max(1, _BLOCK // n)
    means = np.empty((draws, values.shape[1]))
    for first in range(0, draws, block):
        samples = random.integers(0, n, (min(block, draws - first), n), np.int32)
        counts = np.array([np.bincount(sample, minlength=n) for sample in samples], np.float64)
        means[first : first + len(samples)] = counts @ values / n
    return means
