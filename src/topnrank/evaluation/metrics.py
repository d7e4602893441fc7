"""The metrics by name, and their values from the kernel's sums."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Float64Array, Int64Array
from topnrank.errors import ParameterError
from topnrank.evaluation import _metrics_kernel as kernels

ACCURACY = ("ndcg", "ndcg_graded", "map", "mrr", "err", "precision", "recall", "hit", "auc")
"""Metrics of how high the relevant items rank; more is better."""

BEYOND = ("coverage", "novelty", "popularity")
"""Metrics of which items are in the users' top k, relevant or not."""

METRICS = (*ACCURACY, *BEYOND)
"""Names of the metrics; all but `auc` take a cut-off ("ndcg@10"), and those of `BEYOND` do not work without one."""

OWN = "own"
"""The kind of a metric that is a function of the caller."""

RankedRelevance = Float64Array
"""(n_candidates,) the candidates of one user, best first: 1.0 where relevant, else 0.0."""

GRADED = ("ndcg_graded", "err")
"""Metrics that use the height of a rating, not only whether it is relevant."""

DEFAULT_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")
"""The metrics of the paper."""

NOTES = {
    "ndcg_graded": "ndcg_graded has gain 2^rating - 1",
    "map": "map@k is divided by min(k, relevant items)",
    "err": "err has R = (2^rating - 1) / 2^(highest test rating)",
    "precision": "precision@k is divided by k, also for shorter lists",
    "auc": "auc counts a tie as one half",
    "coverage": "coverage breaks ties by item and counts the items in any known user's top k",
    "novelty": "novelty@k is the mean of -log2(training users with the item / training users) over the top k, ties by item, "
    "an item without training users counting as if it had one",
    "popularity": "popularity@k is the mean number of training users over the top k, ties by item, divided by that over the "
    "user's training items: above 1 the lists are more popular than what the user chose (popularity lift + 1)",
}
"""The definition of each metric whose name is ambiguous."""


@dataclass(frozen=True)
class Metric:
    """One metric as asked for."""

    name: str
    """As the caller spelled it, such as "ndcg@10"."""
    kind: str
    """One of `METRICS`, or `OWN`."""
    cut: int
    """Number of ranks that count; `kernels.WHOLE` for all."""
    function: Callable[[RankedRelevance], float] | None = None
    """What an own metric makes of the list of a user."""

    def identity(self) -> str:
        """The name, of an own metric with a digest of its code."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            return self.name
        content = repr((code.co_code, code.co_consts, code.co_names)).encode()
        return f"{self.name} ({hashlib.blake2b(content, digest_size=8).hexdigest()})"


@dataclass(frozen=True)
class Measured:
    """The kernel's results for `n_users` lists at some cut-offs."""

    cuts: Int64Array
    """(n_cuts,) ascending."""
    sums: Float64Array
    """(n_users, n_cuts, 7), the columns that `topnrank.evaluation._metrics_kernel` names."""
    auc: Float64Array
    """(n_users,)"""
    ideal: Float64Array
    """(n_users, n_cuts) DCG of the best order of graded gains."""
    n_relevant: Float64Array
    """(n_users,) relevant items of each user."""
    length: Int64Array
    """(n_users,) candidates of each user."""
    own: Mapping[str, Float64Array] = field(default_factory=dict)
    """(n_users,) values of own metrics by name."""

    def value(self, metric: Metric) -> Float64Array:
        """The metric of each user, (n_users,); NaN for users without a relevant item, or where it is undefined."""
        if metric.kind == "auc":
            values = self.auc
        elif metric.kind == OWN:
            values = self.own[metric.name]
        else:
            column, divisor = _RATIOS[metric.kind]
            at = int(np.searchsorted(self.cuts, metric.cut))
            numerator, denominator = self.sums[:, at, column], divisor(self, at)
            values = np.full(len(numerator), np.nan)
            np.divide(numerator, denominator, out=values, where=denominator > 0)
        return np.where(self.n_relevant > 0, values, np.nan)


def _ones(measured: Measured, at: int) -> Float64Array:
    return np.ones(len(measured.length))


def _best_binary(measured: Measured, at: int) -> Float64Array:
    """DCG of the list with all relevant items on top."""
    places = np.minimum(measured.n_relevant, measured.cuts[at]).astype(np.int64)
    discounts = 1.0 / np.log2(np.arange(places.max(initial=0)) + 2.0)
    best: Float64Array = np.concatenate(([0.0], np.cumsum(discounts)))[places]
    return best


def _places(measured: Measured, at: int) -> Float64Array:
    cut = measured.cuts[at]
    return (measured.length if cut == kernels.WHOLE else np.full(len(measured.length), cut)).astype(np.float64)


_RATIOS: dict[str, tuple[int, Callable[[Measured, int], Float64Array]]] = {
    "ndcg": (kernels.DCG, _best_binary),
    "ndcg_graded": (kernels.GRADED_DCG, lambda measured, at: measured.ideal[:, at]),
    "map": (kernels.PRECISIONS, lambda measured, at: np.minimum(measured.n_relevant, measured.cuts[at])),
    "mrr": (kernels.FIRST, _ones),
    "err": (kernels.ERR, _ones),
    "precision": (kernels.FOUND, _places),
    "recall": (kernels.FOUND, lambda measured, at: measured.n_relevant),
    "hit": (kernels.HIT, _ones),
}
"""Column of the sums, and the divisor at the cut-off of the given position."""


Metrics = str | Callable[[RankedRelevance], float] | Sequence[str | Callable[[RankedRelevance], float] | Metric]
"""Names of metrics, or functions of a user's ranked relevance."""


def parse_metrics(names: Metrics) -> tuple[Metric, ...]:
    """The metrics of `names`, each once, in the given order; a single one may stand alone."""
    unique = dict.fromkeys((names,) if isinstance(names, str) or callable(names) else names)
    if not unique:
        raise ParameterError(f"metrics must name at least one of {', '.join(METRICS)}, such as 'ndcg@10', got none")
    metrics = []
    for name in unique:
        if not isinstance(name, str):
            metrics.append(name if isinstance(name, Metric) else _own(name))
            continue
        kind, at, cut = str(name).partition("@")
        one_of("the metric before '@'", kind, METRICS)
        if at and not re.fullmatch(r"0*[1-9][0-9]{0,8}", cut):
            raise ParameterError(f"the cut-off of a metric must be an integer of at least 1, got {name!r}")
        if at and kind == "auc":
            raise ParameterError(f"auc is a metric of the whole list and takes no cut-off, got {name!r}; ask for 'auc'")
        if not at and kind in BEYOND:
            raise ParameterError(f"{kind} needs a cut-off, such as '{kind}@10', got '{kind}'")
        metrics.append(Metric(str(name), kind, int(cut) if at else kernels.WHOLE))
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ParameterError("metrics: two functions have the same name; give each one its own (__name__)")
    return tuple(metrics)


def _own(given: Callable[[RankedRelevance], float]) -> Metric:
    """A function as a metric."""
    if not callable(given):
        raise ParameterError(f"a metric must be a name such as 'ndcg@10' or a function, got {given!r}")
    name = str(getattr(given, "__name__", type(given).__name__))
    if name.partition("@")[0] in METRICS:
        raise ParameterError(
            f"metrics: {name!r} is the name of a metric of this library; give the function another one"
        )
    return Metric(name, OWN, kernels.WHOLE, given)


def cuts_of(metrics: Sequence[Metric]) -> Int64Array:
    """The distinct cut-offs of the metrics, ascending; (1,) when only `auc` or `BEYOND` are wanted."""
    cuts = {metric.cut for metric in metrics if metric.kind in _RATIOS}
    return np.array(sorted(cuts or {1}), dtype=np.int64)


def depth_of(metrics: Sequence[Metric]) -> int:
    """Down to which rank the ranks of labels must be exact; `auc` needs the whole list."""
    return kernels.WHOLE if any(metric.kind in ("auc", OWN) for metric in metrics) else int(cuts_of(metrics)[-1])
