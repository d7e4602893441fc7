"""The summary of a comparison: all statistics, computed once; every table, figure and page is made from it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from topnrank._checks import one_of
from topnrank.evaluation.result import CANDIDATES
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import (
    format_number,
    format_value,
    is_better_higher,
    join_names,
    metric_label,
    protocol_label,
)
from topnrank.experiments.statistics import (
    STAR_LEVELS,
    STAR_RULE,
    PairedTest,
    bootstrap_intervals,
    paired_tests,
    per_user,
)

HEADLINE = "ndcg@10"
"""The metric of verdicts and single-metric figures, where it was measured."""
MAX_COLUMNS = 8
"""With more metrics than this, tables for reading show the usual cut-offs only."""
USUAL_CUTS = ("1", "3", "5", "10", "20")
CONTROLS = frozenset({"random", "popularity", "recentpopularity", "itemmean"})
"""Names of the simple controls of every comparison, without case, dashes and parentheses."""


class Score(NamedTuple):
    """One model, protocol and metric.

    `mean` and `std` are over repeats, of the mean over users (std is NaN for a single repeat); `interval` is a 95 %
    bootstrap interval over users; `users` counts those for whom the metric is defined; `best`: no model has a higher mean
    in the digits shown, never for metrics of which more is not better.
    """

    mean: float
    std: float
    interval: tuple[float, float]
    users: int
    best: bool


class SummaryRow(NamedTuple):
    """One model under one protocol: scores by metric (none if every repeat failed), mean time of a fit, why it failed."""

    model: str
    scores: dict[str, Score]
    fit_seconds: float
    note: str


@final
@dataclass(frozen=True)
class Summary:
    """A comparison with its statistics, each computed once, when it is first asked for."""

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
        return cls(comparison, one_of("reference", reference or comparison.models[0], comparison.models))

    @cached_property
    def headline(self) -> str:
        """The one metric of the verdict: NDCG@10, else the first one of which more is better, else the first."""
        metrics = self.comparison.metrics
        return HEADLINE if HEADLINE in metrics else next(filter(is_better_higher, metrics), metrics[0])

    @cached_property
    def table_metrics(self) -> tuple[str, ...]:
        """The metrics of tables for reading: all, or the usual cut-offs of many."""
        metrics = self.comparison.metrics
        if len(metrics) <= MAX_COLUMNS:
            return metrics
        return tuple(metric for metric in metrics if metric.partition("@")[2] in ("", *USUAL_CUTS)) or metrics

    @cached_property
    def rows(self) -> dict[str, list[SummaryRow]]:
        """The rows of each protocol, in the order of the comparison."""
        return {protocol: self._rows(protocol) for protocol in self.comparison.protocols}

    def _rows(self, protocol: str) -> list[SummaryRow]:
        shape = self.comparison
        means = {
            (model, metric): shape.mean(model, protocol, metric) for model in shape.models for metric in shape.metrics
        }
        measured = [model for model in shape.models if any(math.isfinite(means[model, m]) for m in shape.metrics)]
        pairs = [(model, metric) for model in measured for metric in shape.metrics]
        columns = [per_user(shape.values(model, protocol, metric)) for model, metric in pairs]
        scores: dict[str, dict[str, Score]] = {model: {} for model in shape.models}
        for (model, metric), values, interval in zip(pairs, columns, bootstrap_intervals(columns), strict=True):
            mean, users = means[model, metric], int((~np.isnan(values)).sum())
            best = math.isfinite(mean) and is_better_higher(metric)
            best = best and not any(round(means[other, metric], 4) > round(mean, 4) for other in measured)
            scores[model][metric] = Score(mean, shape.std(model, protocol, metric), interval, users, best)
        errors = {model: shape.error(model) for model in shape.models}
        notes = {model: f"failed: {error}" if error else "" for model, error in errors.items()}
        return [SummaryRow(model, scores[model], shape.fit_seconds(model), notes[model]) for model in shape.models]

    def measured(self, protocol: str) -> list[SummaryRow]:
        """The rows that have numbers."""
        return [row for row in self.rows[protocol] if row.scores]

    @cached_property
    def controls(self) -> frozenset[str]:
        """The rows that are simple controls, whatever they are called."""
        kinds = self.comparison.settings.get("kinds", {})
        names = {
            model: re.sub(r"\(.*|[-_ ]", "", str(kinds.get(model, model)).lower()) for model in self.comparison.models
        }
        return frozenset(model for model, name in names.items() if name in CONTROLS)

    def tests(self, protocol: str, reference: str | None = None) -> list[PairedTest]:
        """Paired tests of the reference against every other row that has numbers."""
        first = reference or self.reference
        if first not in self._tests:
            self._tests[first] = paired_tests(self.comparison, first)
        known = {row.model for row in self.measured(protocol)}
        return [test for test in self._tests[first] if test.protocol == protocol and {test.first, test.second} <= known]

    def table_tests(self, protocol: str) -> list[PairedTest]:
        """The tests of `table_metrics`, metric by metric, the headline first."""
        order = sorted(self.table_metrics, key=lambda metric: metric != self.headline)
        return [test for metric in order for test in self.tests(protocol) if test.metric == metric]

    # -- in words -----------------------------------------------------------------------------------------------------

    def ranking_title(self, protocol: str) -> str:
        """The heading of a protocol's results: "Ranking rated items"."""
        return f"Ranking {protocol_label(protocol)}"

    def tests_title(self, protocol: str, metric: str = "") -> str:
        """The heading of a table of tests."""
        at = f" at {metric_label(metric)}" if metric else ""
        return f"{self.reference} against the others{at}, {protocol_label(protocol)}"

    def verdict(self, protocol: str) -> str:
        """One sentence: which model is best, and which are not significantly worse."""
        rows = [row for row in self.measured(protocol) if math.isfinite(row.scores[self.headline].mean)]
        label = metric_label(self.headline)
        if not rows:
            return f"On {protocol_label(protocol)} no model gave a number."
        if not is_better_higher(self.headline):
            return f"On {protocol_label(protocol)} {label} alone does not tell which model is best."
        best = max(rows, key=lambda row: row.scores[self.headline].mean)
        tests = [test for test in self.tests(protocol, best.model) if test.metric == self.headline]
        value = format_number(best.scores[self.headline].mean)
        untuned = [row.model for row in rows if row.model not in self.controls and self._at_defaults(row.model)]
        claims = [f"On {protocol_label(protocol)}, {best.model} is best at {label} ({value})", *_claims(tests)]
        if best.model in self.controls and any(row.model not in self.controls for row in rows):
            claims.append("no trained model beats this simple control")
        if untuned:
            claims.append(f"{join_names(untuned)} ran at {'its' if len(untuned) == 1 else 'their'} defaults, not tuned")
        return "; ".join(claims) + "."

    def _at_defaults(self, model: str) -> bool:
        """Whether a row is a model of this library with the parameters that it has by default."""
        from topnrank.experiments.compare.rows import RUN_ONLY, parameters_of
        from topnrank.models.registry import MODELS

        settings = self.comparison.settings
        kind = settings.get("kinds", {}).get(model)
        if kind not in MODELS:
            return False
        usual = parameters_of(MODELS[kind]())
        given: dict[str, Any] = settings["parameters"][model]
        return all(given.get(name) == value for name, value in usual.items() if name not in (*RUN_ONLY, "task", "seed"))

    def convention(self, protocol: str) -> str:
        """How the numbers of a protocol were made: of the first repeat, with the range of users where others differ."""
        facts = self.comparison.facts
        told: str = facts.get("conventions", {}).get(protocol, "")
        users = facts.get("users_counted", {}).get(protocol, [])
        if len(set(users)) > 1:
            told += (
                f" This is the first repeat; the means of all {len(users)} are over {min(users)} to {max(users)} users."
            )
        return told

    def conventions(self) -> list[tuple[str, str]]:
        """How the numbers were made, as pairs of a heading and a text."""
        ranking = [
            (
                self.ranking_title(name),
                self.convention(name) or f"Protocol {CANDIDATES[name]}; {_TIES}",
            )
            for name in self.comparison.protocols
        ]
        tests = f"the reference, {self.reference}, against every other row: {_TESTS}"
        return [*ranking, *_CONVENTIONS, ("Tests", tests), *_in_words(self.comparison.settings)]

    def data_facts(self) -> list[tuple[str, str]]:
        """Sizes of the data and the splits, as pairs of a name and a text."""
        return _in_words(self.comparison.facts)


_TIES = "tied scores count with the expected value under random order"
_CONVENTIONS = (
    (
        "Means",
        "mean over users, then over repeats; ± is the standard deviation over repeats; the best mean of a column is bold; "
        "users for whom a metric is not defined (no relevant test item) are left out of it; a difference counts every user "
        "once, whatever the number of repeats, so it can depart from the difference of two means in the last digits",
    ),
    ("Intervals", "95 % percentile bootstrap over users, after averaging each user's repeats"),
    ("Effect size", "Cohen's d_z: mean difference per user divided by its standard deviation"),
)
_TESTS = (
    "paired over users after averaging the repeats; Student's t and Wilcoxon's signed rank, each Holm-corrected over all "
    f"rows and metrics of a protocol; {STAR_RULE}"
)


def _claims(tests: list[PairedTest]) -> list[str]:
    """What the tests of the best row against the others say."""
    untested = [test.second for test in tests if math.isnan(test.p)]
    even = [test.second for test in tests if test.p >= STAR_LEVELS[0]]
    worse = [test for test in tests if test.p < STAR_LEVELS[0]]
    claims = []
    if even:
        claims.append(f"{join_names(even)} {'is' if len(even) == 1 else 'are'} not significantly worse")
    if worse:
        nearest = min(worse, key=lambda test: test.difference)
        who, most = f"{nearest.second} is", ""
        if len(worse) > 1:
            who = f"the other {len(worse)} are" if even or untested else "every other model is"
            most = f", {nearest.second} least"
        by = f"by {format_number(nearest.difference)} (95 % interval {' to '.join(map(format_number, nearest.interval))})"
        claims.append(f"{who} significantly worse{most}, {by}")
    if untested:
        claims.append(f"{join_names(untested)} could not be tested")
    return claims


_LEFT_OUT = ("parameters", "kinds", "identity", "seed", "relevant", "conventions", "list_length_counts")
"""Settings and facts that are written in another place, or are for machines only."""
_NAMES = {"test": "test part", "seeds_vary": "what the seeds vary", "effective_n": "effective N"}
"""Where the key alone would puzzle a reader."""


def _in_words(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings or facts as pairs of a name and a text."""
    names = {key: _NAMES.get(key, key.replace("_", " ")) for key in facts if key not in _LEFT_OUT}
    return [(name[:1].upper() + name[1:], format_value(facts[key])) for key, name in names.items()]
