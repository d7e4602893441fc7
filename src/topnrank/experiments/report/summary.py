"""What a comparison says, before it is written anywhere: rows, paired tests, the verdict, the conventions."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from topnrank._checks import one_of
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import (
    is_better_higher,
    listing,
    metric_label,
    number,
    one_line,
    protocol_label,
    spaced,
    told,
)
from topnrank.experiments.statistics import PairedTest, bootstrap_intervals, paired_tests, per_user

HEADLINE = "ndcg@10"
"""The metric of verdicts and single-metric figures, where it was measured."""
LEVEL = 0.05
"""A difference is called significant where both Holm-corrected p values lie below this."""
MOST_COLUMNS = 8
"""With more metrics than this, tables for reading show the usual cut-offs only."""
USUAL_CUTS = ("1", "3", "5", "10", "20")
CONTROLS = frozenset({"random", "popularity", "itemmean"})
_CANDIDATES = {
    "rated": "each user's own test items are ranked",
    "catalog": "all items but those the user has in training are ranked",
}


def is_control(model: str) -> bool:
    """Whether a name is that of one of the simple controls that stand in every comparison."""
    return re.sub(r"\(.*|[-_ ]", "", model.lower()) in CONTROLS


@final
@dataclass(frozen=True)
class Score:
    """One model, protocol and metric."""

    mean: float
    """Over repeats, of the mean over users."""
    spread: float
    """Standard deviation over repeats; NaN for a single repeat."""
    interval: tuple[float, float]
    """95 % bootstrap interval over users."""
    users: int
    """Users for whom the metric is defined."""
    best: bool
    """Whether no model has a higher mean, in the digits shown; never for metrics of which more is not better."""


@final
@dataclass(frozen=True)
class Row:
    """One model under one protocol."""

    model: str
    scores: dict[str, Score]
    """By metric; empty when every repeat failed."""
    seconds: float
    """Mean time of a fit."""
    note: str
    """Why it failed, wholly or in some repeats; "" if it did not."""


@final
@dataclass(frozen=True)
class Summary:
    """A comparison with everything its tables, figures and page need, each computed once."""

    comparison: Comparison
    reference: str
    """The row that the others are tested against."""
    _tests: dict[str, list[PairedTest]] = field(default_factory=dict)

    @classmethod
    def of(cls, comparison: "Comparison | Summary", reference: str | None = None) -> "Summary":
        """`reference` is the name of a row; the first one by default. A summary with that reference stays as it is."""
        if isinstance(comparison, Summary):
            same = reference is None or reference == comparison.reference
            return comparison if same else cls.of(comparison.comparison, reference)
        if reference is None:
            return cls(comparison, comparison.models[0])
        return cls(comparison, one_of("reference", reference, comparison.models))

    @cached_property
    def headline(self) -> str:
        """The one metric of the verdict: NDCG@10, else the first one of which more is better, else the first."""
        metrics = self.comparison.metrics
        return HEADLINE if HEADLINE in metrics else next(filter(is_better_higher, metrics), metrics[0])

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The metrics of tables for reading: all, or the usual cut-offs of many."""
        metrics = self.comparison.metrics
        if len(metrics) <= MOST_COLUMNS:
            return metrics
        usual = tuple(metric for metric in metrics if metric.partition("@")[2] in ("", *USUAL_CUTS))
        return usual or metrics

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of each protocol, in the order of the comparison."""
        return {protocol: self._rows(protocol) for protocol in self.comparison.protocols}

    def _rows(self, protocol: str) -> list[Row]:
        shape, measured = self.comparison, self.measured[protocol]
        pairs = [(model, metric) for model in measured for metric in shape.metrics]
        means = {pair: shape.mean(pair[0], protocol, pair[1]) for pair in pairs}
        columns = [per_user(shape.values(model, protocol, metric)) for model, metric in pairs]
        intervals = bootstrap_intervals(np.column_stack(columns)) if columns else []
        scores: dict[str, dict[str, Score]] = {model: {} for model in shape.models}
        for (model, metric), values, interval in zip(pairs, columns, intervals, strict=True):
            mean, users = means[model, metric], int((~np.isnan(values)).sum())
            best = all(not round(means[other, metric], 4) > round(mean, 4) for other in measured)
            best = best and math.isfinite(mean) and is_better_higher(metric)
            scores[model][metric] = Score(mean, shape.spread(model, protocol, metric), interval, users, best)
        return [Row(model, scores[model], self.fit_seconds(model), self.failure(model)) for model in shape.models]

    @cached_property
    def measured(self) -> dict[str, list[str]]:
        """The models that have numbers, by protocol."""
        shape = self.comparison
        return {
            protocol: [
                model
                for model in shape.models
                if any(math.isfinite(shape.mean(model, protocol, metric)) for metric in shape.metrics)
            ]
            for protocol in shape.protocols
        }

    @cached_property
    def drawn(self) -> list[str]:
        """The models in the order in which they get colors: those without numbers last, for they hardly need one."""
        failed = [
            model for model in self.comparison.models if not any(model in found for found in self.measured.values())
        ]
        return [model for model in self.comparison.models if model not in failed] + failed

    @cached_property
    def controls(self) -> frozenset[str]:
        """The rows that are simple controls, whatever they are called."""
        kinds = self.comparison.settings.get("kinds", {})
        return frozenset(model for model in self.comparison.models if is_control(str(kinds.get(model, model))))

    def fit_seconds(self, model: str) -> float:
        """Mean over the repeats that did not fail."""
        cells = (self.comparison.cells.get((model, repeat)) for repeat in range(self.comparison.repeats))
        seconds = [cell.fit_seconds for cell in cells if cell is not None and cell.error is None]
        return float(np.mean(seconds)) if seconds else math.nan

    def failure(self, model: str) -> str:
        """Which repeats of a model failed, and why; "" if none did."""
        cells = (self.comparison.cells.get((model, repeat)) for repeat in range(self.comparison.repeats))
        failed = [cell for cell in cells if cell is not None and cell.error is not None]
        if not failed:
            return ""
        why = one_line(failed[0].error or "")
        which = (
            "" if len(failed) == self.comparison.repeats else f" in {len(failed)} of {self.comparison.repeats} repeats"
        )
        return f"failed{which}: {why}"

    def tests(self, protocol: str, reference: str | None = None) -> list[PairedTest]:
        """Paired tests of the reference against every other row that has numbers."""
        first = reference or self.reference
        if first not in self._tests:
            self._tests[first] = paired_tests(self.comparison, first)
        known = set(self.measured[protocol])
        return [test for test in self._tests[first] if test.protocol == protocol and {test.first, test.second} <= known]

    # -- in words -----------------------------------------------------------------------------------------------------

    def verdict(self, protocol: str) -> str:
        """One honest sentence: who is best, and who is not significantly worse."""
        rows = [row for row in self.rows[protocol] if row.scores and math.isfinite(row.scores[self.headline].mean)]
        if not rows:
            return f"On {protocol_label(protocol)} no model gave a number."
        best = max(rows, key=lambda row: row.scores[self.headline].mean)
        if not is_better_higher(self.headline):
            return f"On {protocol_label(protocol)} {metric_label(self.headline)} alone says nothing of who is best."
        tests = [test for test in self.tests(protocol, best.model) if test.metric == self.headline]
        start = f"On {protocol_label(protocol)}, {best.model} is best at {metric_label(self.headline)}"
        claims = [f"{start} ({number(best.scores[self.headline].mean)})", *_claims(tests)]
        if best.model in self.controls and any(row.model not in self.controls for row in rows):
            claims.append("no trained model beats this simple control")
        return "; ".join(claims) + "."

    def conventions(self) -> list[tuple[str, str]]:
        """How the numbers were made, as pairs of a heading and a text."""
        known = self.comparison.facts.get("conventions", {})
        ranking = [
            (
                f"Ranking {protocol_label(name)}",
                one_line(str(known.get(name, f"{_CANDIDATES.get(name, name)}; {_TIES}"))),
            )
            for name in self.comparison.protocols
        ]
        fixed = [
            *ranking,
            ("Means", _MEANS),
            ("Intervals", _INTERVALS),
            ("Tests", f"the reference, {self.reference}, against every other row: {_TESTS}"),
            ("Effect size", "Cohen's d_z: mean difference per user divided by its standard deviation"),
        ]
        return fixed + described(self.comparison.settings)

    def data_facts(self) -> list[tuple[str, str]]:
        """What is known of the data, as pairs of a name and a value."""
        return described(self.comparison.facts)


_TIES = "tied scores count with the expected value under random order"
_MEANS = (
    "mean over users, then over repeats; ± is the standard deviation over repeats; the best mean of a column is bold; "
    "users for whom a metric is not defined (no relevant test item) are left out of it; a difference counts every user "
    "once, whatever the number of repeats, so it can depart from the difference of two means in the last digits"
)
_INTERVALS = "95 % percentile bootstrap over users, after averaging each user's repeats"
_TESTS = (
    "paired over users after averaging the repeats; Student's t and Wilcoxon's signed rank, each Holm-corrected over all "
    "rows and metrics of a protocol; stars where both corrected p values lie below 0.05 (*), 0.01 (**), 0.001 (***)"
)


def larger_p(test: PairedTest) -> float:
    """The larger of the two Holm-corrected p values, or the only one: what stars and verdicts go by."""
    return max((p for p in (test.t_holm, test.wilcoxon_holm) if math.isfinite(p)), default=math.nan)


def _claims(tests: list[PairedTest]) -> list[str]:
    """What the tests of the best row against the others say."""
    untested = [test.second for test in tests if math.isnan(larger_p(test))]
    even = [test.second for test in tests if larger_p(test) >= LEVEL]
    worse = [test for test in tests if larger_p(test) < LEVEL]
    claims = []
    if even:
        claims.append(f"{listing(even)} {'is' if len(even) == 1 else 'are'} not significantly worse")
    if worse:
        nearest = min(worse, key=lambda test: test.difference)
        who, most = f"{nearest.second} is", ""
        if len(worse) > 1:
            who, most = f"the other {len(worse)} are" if even or untested else "every other model is", nearest.second
        by = f"by {number(nearest.difference)} (95 % interval {' to '.join(map(number, nearest.interval))})"
        claims.append(f"{who} significantly worse{f', {most} least' if most else ''}, {by}")
    if untested:
        claims.append(f"{listing(untested)} could not be tested")
    return claims


_ELSEWHERE = ("parameters", "kinds", "identity", "seed", "relevant", "conventions", "list_length_counts")
"""Settings and facts that are told elsewhere, twice, or to machines only."""
_NAMES = {"test": "test part", "seeds_vary": "what the seeds vary", "effective_n": "effective N"}
"""Where the key alone would puzzle a reader."""


def described(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings or facts in words, as pairs of a name and a text."""
    pairs = ((_NAMES.get(key, spaced(key)), told(value)) for key, value in facts.items() if key not in _ELSEWHERE)
    return [(key[:1].upper() + key[1:], value) for key, value in pairs]
