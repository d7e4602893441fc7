"""How a comparison's names and numbers are written for people: metrics, means, p values, times, settings."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_KINDS = {
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
_PROTOCOLS = {
    "rated": "rated items",
    "catalog": "the whole catalog",
}
MOST_LISTED = 12
"""A longer list of numbers is told by its least, median and greatest."""


def metric_label(metric: str) -> str:
    """A metric as papers write it: "NDCG@10" for "ndcg@10"."""
    kind, at, cut = metric.partition("@")
    return f"{_KINDS.get(kind, kind)}{at}{cut}"


def is_better_higher(metric: str) -> bool:
    """Whether the model with the highest value of a metric is the best one; novelty and popularity only describe."""
    return metric.partition("@")[0] not in _NEUTRAL


def protocol_label(protocol: str) -> str:
    """What a protocol ranks: "rated items" for "rated"."""
    return _PROTOCOLS.get(protocol, protocol)


def number(value: float, digits: int = 4) -> str:
    """A value with fixed digits, "-" where it is not defined."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def signed(value: float, digits: int = 4) -> str:
    """A difference with its sign; what rounds to nothing has none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def probability(p: float) -> str:
    """A p value: three digits, "<0.001" below."""
    if not math.isfinite(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def stars(p: float) -> str:
    """*** below 0.001, ** below 0.01, * below 0.05."""
    return "*" * sum(p < bound for bound in (0.05, 0.01, 0.001))


def duration(seconds: float) -> str:
    """A time in the unit that reads best."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1.0:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{1000 * seconds:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5997 else f"{seconds / 3600:.1f} h"


def listing(names: Sequence[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shortened(name: str, most: int) -> str:
    """A long name with its middle left out, so that what differs at either end stays."""
    if len(name) <= most:
        return name
    head = (most - 1) * 3 // 5
    return f"{name[:head]}…{name[-(most - 1 - head) :]}"


def short_labels(names: Sequence[str], most: int) -> dict[str, str]:
    """Every name in about `most` letters and no two alike: names that would be alike show where they part."""
    short = {name: shortened(name, most) for name in names}
    labels: dict[str, str] = {}
    for name in names:
        alike = [other for other in short if short[other] == short[name]]
        label = short[name] if len(alike) == 1 else _from_parting(name, alike, most)
        turn = 2
        while label in labels.values():  # names that part more than once
            label, turn = f"{short[name]} #{turn}", turn + 1
        labels[name] = label
    return labels


def _from_parting(name: str, alike: Sequence[str], most: int) -> str:
    """The beginning of a name, and what follows the part that it shares with others."""
    parting = (
        next(place for place in range(most + max(map(len, alike))) if len({other[:place] for other in alike}) > 1) - 1
    )
    label = f"{name[: min(most // 3, parting)]}…{name[parting:]}"
    return label if len(label) <= most else f"{label[: most - 1]}…"


def one_line(text: str) -> str:
    """An error message on one line."""
    return " ".join(text.split())


def told(value: Any) -> str:
    """A setting or fact in one line: thousands in groups, few digits, mappings and lists spelled out."""
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, Mapping):
        return _told_mapping(value)
    if isinstance(value, list | tuple):
        return _told_list(value)
    return one_line(str(value))


def _told_mapping(value: Mapping[Any, Any]) -> str:
    keys = [str(key) for key in value]
    if len(keys) > MOST_LISTED and all(key.replace(".", "", 1).isdigit() for key in keys):
        return f"{len(keys)} values from {min(keys, key=float)} to {max(keys, key=float)}"
    texts = (f"({told(item)})" if isinstance(item, Mapping | list) and item else told(item) for item in value.values())
    return ", ".join(f"{spaced(key)} {text}" for key, text in zip(keys, texts, strict=True)) or "none"


def _told_list(value: Sequence[Any]) -> str:
    numbers = all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    if len(value) > 1 and numbers and len(set(value)) == 1:
        return f"{told(value[0])} each time"
    if len(value) > MOST_LISTED and numbers:
        least, middle, most = (float(edge) for edge in np.quantile(value, [0.0, 0.5, 1.0]))
        return f"{len(value)} values, least {told(least)}, median {told(middle)}, greatest {told(most)}"
    return ", ".join(told(item) for item in value) or "none"


def spaced(key: object) -> str:
    """A key as words."""
    return str(key).replace("_", " ")
