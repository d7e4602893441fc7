"""Statistics of the differences between models: bootstrap intervals over users, paired tests, effect sizes.

The unit is the user: the repeats of one user are averaged before anything is tested, since they share most of their rows and
are not independent. Users are taken as independent draws from the users of interest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank._checks import one_of, require_fraction, require_integer
from topnrank._typing import Float64Array
from topnrank.experiments.compare.result import Comparison
from topnrank.rng import stream

_BLOCK = 2**22
"""Draws of users held at a time."""
_DIGITS = 12
"""Differences are rounded to these digits: averaging leaves noise in the last ones, which would break ties in rank tests."""
STAR_LEVELS = (0.05, 0.01, 0.001)
STAR_RULE = (
    "* where both corrected p values, Student's t and Wilcoxon's, lie below 0.05, ** where both lie below 0.01, "
    "*** where both lie below 0.001"
)
"""Stated in every legend and on every page."""


# -- bootstrap intervals ------------------------------------------------------------------------------------------------


def per_user(values: Float64Array) -> Float64Array:
    """(n_users,) mean over the repeats in which a user's value is defined; NaN where it never is."""
    values = np.atleast_2d(np.asarray(values, np.float64))
    defined = ~np.isnan(values)
    counts = defined.sum(axis=0)
    means = np.full(values.shape[1], np.nan)
    np.divide(np.where(defined, values, 0.0).sum(axis=0), counts, out=means, where=counts > 0)
    return means


def bootstrap_intervals(
    columns: Sequence[Float64Array], *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> list[tuple[float, float]]:
    """A percentile interval of the mean of each column over users, who are drawn with replacement.

    Columns that are defined for the same users, as those of all models are as a rule, share their draws: a sample is a
    vector of counts, and all its means are one product with it.

    Parameters
    ----------
    columns
        Each (n_users,), or (repeats, n_users), which is averaged over repeats first; NaN where a user has no value, and
        (NaN, NaN) for a column with fewer than two values.
    level
        Nominal coverage.
    draws
        Number of samples of users.
    seed
        The same seed gives the same intervals.
    """
    require_fraction("level", level)
    require_integer("draws", draws, 1)
    intervals = [(math.nan, math.nan)] * len(columns)
    if not columns:
        return intervals
    stacked = np.column_stack([per_user(column) for column in columns])
    patterns, pattern_of = np.unique(~np.isnan(stacked), axis=1, return_inverse=True)
    for pattern in range(patterns.shape[1]):
        chosen = np.flatnonzero(pattern_of.ravel() == pattern)
        values = stacked[np.ix_(patterns[:, pattern], chosen)]
        if len(values) >= 2:
            means = _sample_means(values, draws, seed)
            edges = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
            for column, (low, high) in zip(chosen.tolist(), edges.T.tolist(), strict=True):
                intervals[column] = low, high
    return intervals


def _sample_means(values: Float64Array, draws: int, seed: int) -> Float64Array:
    """(draws, n_columns) means of samples of the rows, drawn with replacement."""
    random, n = np.random.Generator(np.random.SFC64(int(stream(seed, "bootstrap").integers(2**63)))), len(values)
    block = max(1, _BLOCK // n)
    means = np.empty((draws, values.shape[1]))
    for first in range(0, draws, block):
        samples = random.integers(0, n, (min(block, draws - first), n), np.int32)
        counts = np.array([np.bincount(sample, minlength=n) for sample in samples], np.float64)
        means[first : first + len(samples)] = counts @ values / n
    return means


# -- paired tests -------------------------------------------------------------------------------------------------------


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

    @property
    def p(self) -> float:
        """The larger corrected p value: stars and verdicts go by it. NaN if there is none; one that is alone counts."""
        return max((p for p in (self.t_holm, self.wilcoxon_holm) if math.isfinite(p)), default=math.nan)

    @property
    def stars(self) -> str:
        """Significance by `STAR_RULE`."""
        return stars(self.p)


def stars(p: float) -> str:
    """*** below 0.001, ** below 0.01, * below 0.05."""
    return "*" * sum(p < level for level in STAR_LEVELS)


def paired_tests(comparison: Comparison, reference: str | None = None) -> list[PairedTest]:
    """The reference (the first row unless named) against every other row by every metric.

    p values are Holm-corrected over all rows and metrics within a protocol; what cannot be tested does not count.
    """
    first = one_of("reference", reference or comparison.models[0], comparison.models)
    tests: list[PairedTest] = []
    for protocol in comparison.protocols:
        pairs = [(second, metric) for second in comparison.models if second != first for metric in comparison.metrics]
        differences = [
            np.round(
                per_user(comparison.values(first, protocol, metric) - comparison.values(second, protocol, metric)),
                _DIGITS,
            )
            for second, metric in pairs
        ]
        family = []
        for (second, metric), values, interval in zip(
            pairs, differences, bootstrap_intervals(differences), strict=True
        ):
            found = _test_statistics(values[~np.isnan(values)])
            if found["users"] == 0 and (failed := [m for m in (first, second) if comparison.error(m) is not None]):
                found["note"] = f"{failed[0]} failed"
            family.append(PairedTest(first, second, protocol, metric, interval=interval, **found))
        t_holm = holm([test.t_p for test in family])
        ranks_holm = holm([test.wilcoxon_p for test in family])
        tests += [
            replace(test, t_holm=float(a), wilcoxon_holm=float(b))
            for test, a, b in zip(family, t_holm, ranks_holm, strict=True)
        ]
    return tests


def _test_statistics(differences: Float64Array) -> dict[str, Any]:
    """Users, mean, t, p values, effect and a note, of the differences of users with a value for both."""
    from scipy import stats

    n = len(differences)
    found: dict[str, Any] = {"users": n, "difference": float(differences.mean()) if n else math.nan}
    unknown = dict.fromkeys(("t", "t_p", "wilcoxon_p", "effect"), math.nan)
    if n < 2:
        return found | unknown | {"note": f"too few users: {n} with a value for both, 2 are needed"}
    if not differences.any():
        return found | {"t": 0.0, "t_p": 1.0, "wilcoxon_p": 1.0, "effect": 0.0, "note": "no user differs"}
    wilcoxon = float(stats.wilcoxon(differences[differences != 0]).pvalue)
    if np.ptp(differences) == 0.0:
        note = "all users differ by the same amount, so that Student's t is not defined"
        return found | unknown | {"wilcoxon_p": wilcoxon, "note": note}
    student = stats.ttest_1samp(differences, 0.0)
    effect = found["difference"] / float(differences.std(ddof=1))
    return found | {
        "t": float(student.statistic),
        "t_p": float(student.pvalue),
        "wilcoxon_p": wilcoxon,
        "effect": effect,
    }


def holm(p: Sequence[float] | Float64Array) -> Float64Array:
    """Holm's step-down correction of p values; NaN stays NaN and does not count."""
    values = np.asarray(p, np.float64)
    corrected = np.full(values.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return corrected
