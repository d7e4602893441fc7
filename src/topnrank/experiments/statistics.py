"""What can be said about the differences between models: intervals over users, paired tests, effect sizes.

The unit is the user: repeats of one user are averaged before anything is tested, since they share most of their rows and
are not independent. Users themselves are taken as independent draws from the users one cares about.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Float64Array
from topnrank.errors import ParameterError
from topnrank.experiments.compare.result import Comparison
from topnrank.rng import stream

# ----------------------------------------------------------------------------------------------------
# Bootstrap intervals of many means over the same users at once: users are drawn once, not once for each mean.


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


_DIGITS = 12
"""Differences are rounded so: averaging leaves noise in the last digits, which would break ties in the rank test."""


def per_user(values: Float64Array) -> Float64Array:
    """(n_users,) mean over the repeats in which a user's value is defined; NaN where it never is."""
    values = np.atleast_2d(np.asarray(values, np.float64))
    defined = ~np.isnan(values)
    counts = defined.sum(axis=0)
    means = np.full(values.shape[1], np.nan)
    np.divide(np.where(defined, values, 0.0).sum(axis=0), counts, out=means, where=counts > 0)
    return means


def bootstrap_interval(
    values: Float64Array, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the mean over users, who are drawn with replacement; (NaN, NaN) for fewer than two.

    Parameters
    ----------
    values
        (n_users,), or (repeats, n_users), which is averaged over repeats first; NaN where a user has no value.
    level
        Coverage aimed at.
    draws
        Number of samples of users.
    seed
        The same seed gives the same interval.
    """
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must be a share between 0 and 1, both excluded, got {level!r}")
    if draws < 1:
        raise ParameterError(f"draws must be a whole number of at least 1, got {draws!r}")
    return bootstrap_intervals(per_user(values)[:, None], level=level, draws=draws, seed=seed)[0]


@dataclass(frozen=True)
class PairedTest:
    """Two models by one metric: the difference per user, first minus second, after averaging the repeats."""

    first: str
    second: str
    protocol: str
    metric: str
    users: int
    """Users with a value for both"""
    difference: float
    """Mean over users"""
    interval: tuple[float, float]
    """95 % bootstrap interval of it"""
    t: float
    """Student's t"""
    t_p: float
    """Two-sided"""
    wilcoxon_p: float
    """Signed ranks, two-sided, users without a difference left out"""
    effect: float
    """Cohen's d_z: the difference in standard deviations of the differences"""
    t_holm: float = math.nan
    """Corrected for all rows and metrics of the protocol"""
    wilcoxon_holm: float = math.nan
    note: str = ""
    """Why a number is missing, or ''"""


def paired_tests(comparison: Comparison, reference: str | None = None) -> list[PairedTest]:
    """The reference (the first row unless named) against every other row by every metric.

    p-values are Holm-corrected over all rows and metrics within a protocol; what cannot be tested is not counted.
    """
    first = one_of("reference", reference or comparison.models[0], comparison.models)
    tests: list[PairedTest] = []
    for protocol in comparison.protocols:
        pairs = [(second, metric) for second in comparison.models if second != first for metric in comparison.metrics]
        differences = [_differences(comparison, (first, second), protocol, metric) for second, metric in pairs]
        intervals = bootstrap_intervals(np.column_stack(differences)) if pairs else []
        family = [
            replace(_test(comparison, (first, second), (protocol, metric), values), interval=interval)
            for (second, metric), values, interval in zip(pairs, differences, intervals, strict=True)
        ]
        t_holm = holm(np.array([test.t_p for test in family]))
        ranks_holm = holm(np.array([test.wilcoxon_p for test in family]))
        tests += [
            replace(test, t_holm=float(a), wilcoxon_holm=float(b))
            for test, a, b in zip(family, t_holm, ranks_holm, strict=True)
        ]
    return tests


def holm(p: Float64Array) -> Float64Array:
    """Holm's step-down correction of p-values; NaN stays NaN and does not count."""
    p = np.asarray(p, np.float64)
    corrected = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected


def _differences(comparison: Comparison, pair: tuple[str, str], protocol: str, metric: str) -> Float64Array:
    """(n_users,) first minus second after averaging the repeats; NaN where a user has no value for both."""
    both = [comparison.values(name, protocol, metric) for name in pair]
    return np.round(per_user(both[0] - both[1]), _DIGITS)


def _test(
    comparison: Comparison, pair: tuple[str, str], measure: tuple[str, str], differences: Float64Array
) -> PairedTest:
    """One test, not corrected yet, without its interval; `measure` is protocol and metric."""
    differences = differences[~np.isnan(differences)]
    n, unknown = len(differences), (math.nan, math.nan)
    if n < 2:
        failed = [f"{name} failed" for name in pair if comparison.error(name) is not None]
        note = failed[0] if failed and n == 0 else f"too few users: {n} with a value for both, 2 are needed"
        difference = float(differences.mean()) if n else math.nan
        nothing: dict[str, Any] = dict.fromkeys(("t", "t_p", "wilcoxon_p", "effect"), math.nan)
        return PairedTest(*pair, *measure, n, difference, unknown, **nothing, note=note)
    return PairedTest(*pair, *measure, n, float(differences.mean()), unknown, **_statistics(differences))


def _statistics(differences: Float64Array) -> dict[str, Any]:
    """t, p-values and effect of at least two differences."""
    from scipy import stats  # inside: its import takes half a second

    if not differences.any():
        return {"t": 0.0, "t_p": 1.0, "wilcoxon_p": 1.0, "effect": 0.0, "note": "no user differs"}
    wilcoxon = float(stats.wilcoxon(differences[differences != 0]).pvalue)
    deviation = float(differences.std(ddof=1))
    if np.ptp(differences) == 0.0:
        note = "all users differ by the same amount, so that Student's t is not defined"
        return {"t": math.nan, "t_p": math.nan, "wilcoxon_p": wilcoxon, "effect": math.nan, "note": note}
    student = stats.ttest_1samp(differences, 0.0)
    effect = float(differences.mean()) / deviation
    return {"t": float(student.statistic), "t_p": float(student.pvalue), "wilcoxon_p": wilcoxon, "effect": effect}
