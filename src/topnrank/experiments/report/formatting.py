"""Text and JSON forms of a comparison's names and numbers: metrics, means, p values, times, settings, paired tests."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from topnrank.experiments.report.summary import Score
    from topnrank.experiments.statistics import PairedTest

_METRICS = {
    "ndcg": "NDCG",
    "ndcg_graded": "graded NDCG",
    "map": "MAP",
    "mrr": "MRR",
    "err": "ERR",
    "precision": "Precision",
    "recall": "Recall",
    "hit": "Hit rate",
    "auc": "AUC",
    "novelty": "Novelty",
    "popularity": "Popularity",
}
_NEUTRAL = ("novelty", "popularity")
"""Metrics of which more is not better."""
_PROTOCOLS = {"rated": "rated items", "catalog": "the whole catalog"}
MAX_LISTED = 12
"""A longer list of numbers is written as its minimum, median and maximum."""
TEST_HEADER = (
    "Metric",
    "Against",
    "Difference",
    "95 % interval",
    "p, Student's t",
    "p, Wilcoxon",
    "Effect size",
    "Users",
)
"""Columns of a table of paired tests; the p values are Holm-corrected."""


def metric_label(metric: str) -> str:
    """A metric as papers write it: "NDCG@10" for "ndcg@10"."""
    kind, at, cut = metric.partition("@")
    return f"{_METRICS.get(kind, kind)}{at}{cut}"


def is_better_higher(metric: str) -> bool:
    """Whether the model with the highest value of a metric is the best one; novelty and popularity only describe."""
    return metric.partition("@")[0] not in _NEUTRAL


def protocol_label(protocol: str) -> str:
    """What a protocol ranks: "rated items" for "rated"."""
    return _PROTOCOLS.get(protocol, protocol)


def format_number(value: float, digits: int = 4) -> str:
    """A value with fixed digits, "-" where it is not defined."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def format_signed(value: float, digits: int = 4) -> str:
    """A difference with its sign; what rounds to zero has none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def format_mean(score: "Score") -> str:
    """A mean with its standard deviation over repeats, where there are several."""
    return format_number(score.mean) + (f" ± {std}" if (std := format_number(score.std)) != "-" else "")


def format_interval(low: float, high: float) -> str:
    """Both ends of an interval."""
    return f"{format_number(low)} to {format_number(high)}"


def format_p(p: float) -> str:
    """A p value: three digits, "<0.001" below."""
    if not math.isfinite(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def format_seconds(seconds: float) -> str:
    """A time in the unit that reads best."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1.0:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{1000 * seconds:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5997 else f"{seconds / 3600:.1f} h"


def format_test(test: "PairedTest") -> list[str]:
    """A paired test as the cells of `TEST_HEADER`."""
    low, high = test.interval
    return [
        metric_label(test.metric),
        test.second,
        f"{format_signed(test.difference)} {test.stars}".strip(),
        f"{format_signed(low)} to {format_signed(high)}" if math.isfinite(low + high) else "-",
        format_p(test.t_holm),
        format_p(test.wilcoxon_holm),
        format_signed(test.effect, 2),
        f"{test.users:,}" + (f" ({test.note})" if test.note else ""),
    ]


def format_value(value: Any) -> str:
    """A setting or fact in one line: thousands in groups, few digits, mappings and lists spelled out."""
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, Mapping):
        keys = [str(key) for key in value]
        if len(keys) > MAX_LISTED and all(key.replace(".", "", 1).isdigit() for key in keys):
            return f"{len(keys)} values from {min(keys, key=float)} to {max(keys, key=float)}"
        texts = [
            f"({format_value(item)})" if isinstance(item, Mapping | list) and item else format_value(item)
            for item in value.values()
        ]
        return ", ".join(f"{key.replace('_', ' ')} {text}" for key, text in zip(keys, texts, strict=True)) or "none"
    if isinstance(value, list | tuple):
        numbers = all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
        if len(value) > 1 and numbers and len(set(value)) == 1:
            return f"{format_value(value[0])} each time"
        if len(value) > MAX_LISTED and numbers:
            low, middle, high = (format_value(float(edge)) for edge in np.quantile(value, [0.0, 0.5, 1.0]))
            return f"{len(value)} values, minimum {low}, median {middle}, maximum {high}"
        return ", ".join(format_value(item) for item in value) or "none"
    return " ".join(str(value).split())


def jsonable(value: Any) -> Any:
    """`value` with plain numbers, and None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def join_names(names: Sequence[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shorten(name: str, length: int) -> str:
    """A long name with its middle left out, so that what differs at either end stays."""
    if len(name) <= length:
        return name
    head = (length - 1) * 3 // 5
    return f"{name[:head]}…{name[-(length - 1 - head) :]}"


def short_labels(names: Sequence[str], length: int) -> dict[str, str]:
    """Every name in about `length` letters, no two alike: names that would be alike show where they begin to differ."""
    short = {name: shorten(name, length) for name in names}
    labels: dict[str, str] = {}
    for name in names:
        label, alike = short[name], [other for other in short if short[other] == short[name]]
        if len(alike) > 1:
            shared = 0
            while len({other[: shared + 1] for other in alike}) == 1:
                shared += 1
            label = f"{name[: min(length // 3, shared)]}…{name[shared:]}"
            label = label if len(label) <= length else f"{label[: length - 1]}…"
        turn = 2
        while label in labels.values():  # names that differ in several places
            label, turn = f"{short[name]} #{turn}", turn + 1
        labels[name] = label
    return labels
