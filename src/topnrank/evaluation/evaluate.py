"""`evaluate`: how well a model ranks held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, NamedTuple

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import BoolArray, Float64Array, IdArray
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.labels import RELEVANT, Matched, Ranker, match
from topnrank.evaluation.metrics import BEYOND, GRADED, NOTES, Metric, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS, Ranking, rank_catalog, rank_rated
from topnrank.evaluation.result import Evaluation
from topnrank.kernels.jit import threads

_CANDIDATES = {
    "rated": "each user's own test items are ranked",
    "catalog": "all items of the model but the user's training items are ranked",
    "catalog with seen items": "all items of the model are ranked, training items included",
}


def evaluate(
    model: Ranker,
    test: Interactions,
    *,
    protocol: Literal["rated", "catalog"] = "rated",
    metrics: str | Sequence[str] = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20"),
    relevant: float | None = RELEVANT,
    exclude_seen: bool = True,
    num_threads: int = 0,
) -> Evaluation:
    """Rank candidates for every test user and average the metrics over users.

    Tied scores count with the expected value under random order. Users and items are matched by original id.

    Parameters
    ----------
    model
        A fitted model.
    test
        Held-out rows.
    protocol
        "rated" ranks the user's own test items (the paper's protocol); "catalog" all items of the model, never a
        sample of them.
    metrics
        Names such as "ndcg@10", "map", "auc"; without "@k" the whole list counts. Beyond accuracy "coverage@10" (share of
        the items in anybody's top 10), "novelty@10" (self-information of the items there) and "popularity@10" (how much
        more popular they are than the user's training items).
    relevant
        Lowest rating of a relevant row. With None, or where there are no ratings: weight > 0 if the data have
        weights, else every row.
    exclude_seen
        Whether "catalog" leaves out the items each user has in training; test rows among them are left out, too.
    num_threads
        0 for all; the results do not depend on it.
    """
    one_of("protocol", protocol, PROTOCOLS)
    _check_arguments(test, relevant, num_threads)
    wanted = parse_metrics(metrics)
    matched = match(model, test, relevant=relevant, graded=any(metric.kind in GRADED for metric in wanted))
    with threads(num_threads):
        if protocol == "rated":
            ranking = rank_rated(model, matched.labels, wanted)
        else:
            ranking = rank_catalog(model, matched.labels, wanted, exclude_seen=exclude_seen)
    check_rows_left(len(matched.labels.items), ranking.n_seen)
    return _summary(matched, ranking, wanted, candidates_of(protocol, exclude_seen))


def candidates_of(protocol: str, exclude_seen: bool) -> str:
    """What is ranked, in words that begin with the protocol."""
    candidates = "catalog with seen items" if protocol == "catalog" and not exclude_seen else protocol
    return f"{protocol}: {_CANDIDATES[candidates]}"


def check_rows_left(n_rows: int, n_seen: int) -> None:
    """Some test row must not be a training row, where those are left out."""
    if n_rows and n_seen == n_rows:
        raise DataError(
            "every test row is also a training row of the model, so none is left to find; evaluate on held-out "
            "rows, or in Python with exclude_seen=False"
        )


def _check_arguments(test: object, relevant: object, num_threads: object) -> None:
    if not isinstance(test, Interactions):
        raise ParameterError(
            f"evaluate needs Interactions, got {type(test).__name__}; make them with topnrank.read(path) or "
            "Interactions.from_frame(frame)"
        )
    if not (relevant is None or isinstance(relevant, Real)):
        raise ParameterError(f"relevant must be a rating or None, got {relevant!r}")
    if not isinstance(num_threads, Integral) or num_threads < 0:
        raise ParameterError(f"num_threads must be 0 (all) or more, got {num_threads!r}")


@dataclass(frozen=True)
class Counts:
    """What went into the means, and what was left out."""

    rule: str
    """When a row is relevant, in words"""
    n_users: int
    n_excluded: int
    n_unknown_users: int
    n_unknown_items: int
    n_seen: int
    all_relevant: bool
    """Whether every labeled item is relevant"""

    def check(self) -> None:
        """At least one user has a relevant item."""
        if not self.n_users:
            raise DataError(
                f"none of the {self.n_excluded} users that the model knows has a relevant test item left ({self.rule}); "
                "lower relevant or hold out more rows"
            )


def _summary(matched: Matched, ranking: Ranking, metrics: Sequence[Metric], candidates: str) -> Evaluation:
    """Means and counts."""
    counted, by_user = user_values(ranking, metrics)
    counts = Counts(
        matched.rule,
        int(counted.sum()),
        int((~counted).sum()),
        matched.n_unknown_users,
        matched.n_unknown_items,
        ranking.n_seen,
        bool(matched.labels.relevant.all()),
    )
    counts.check()
    by_item = {metric.name: ranking.top.coverage(metric.cut) for metric in metrics if metric.kind == "coverage"}
    undefined = {name: int(np.isnan(values[counted]).sum()) for name, values in by_user.items()}
    means = {
        metric.name: by_item[metric.name] if metric.name in by_item else _mean(by_user[metric.name])
        for metric in metrics
    }
    return summary(counts, means, undefined, candidates, Users(by_user, matched.user_ids))


class Users(NamedTuple):
    """The values of each user."""

    values: dict[str, Float64Array]
    ids: IdArray


def summary(
    counts: Counts, means: dict[str, float], undefined: dict[str, int], candidates: str, users: Users
) -> Evaluation:
    """The result, with its convention in words."""
    return Evaluation(
        values=means,
        per_user=users.values,
        user_ids=users.ids,
        protocol=candidates.partition(":")[0],
        convention=_convention(counts, parse_metrics(list(means)), candidates),
        n_users=counts.n_users,
        n_excluded=counts.n_excluded,
        n_unknown_users=counts.n_unknown_users,
        n_unknown_items=counts.n_unknown_items,
        n_seen=counts.n_seen,
        undefined={name: count for name, count in undefined.items() if count},
    )


def user_values(ranking: Ranking, metrics: Sequence[Metric]) -> tuple[BoolArray, dict[str, Float64Array]]:
    """Which users have a relevant item, and each metric but coverage for each user, NaN for the others."""
    counted = ranking.measured.n_relevant > 0
    return counted, {metric.name: _values(ranking, metric, counted) for metric in metrics if metric.kind != "coverage"}


def _values(ranking: Ranking, metric: Metric, counted: BoolArray) -> Float64Array:
    """(n_users,) values of one metric, NaN for users without a relevant item."""
    if metric.kind in BEYOND:
        return np.where(counted, ranking.top.value(metric), np.nan)
    return ranking.measured.value(metric)


def _mean(values: Float64Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _convention(counts: Counts, metrics: Sequence[Metric], candidates: str) -> str:
    """The convention in words, with the counts of what was left out."""
    protocol = candidates.partition(":")[0]
    notes = [NOTES[kind] for kind in dict.fromkeys(metric.kind for metric in metrics) if kind in NOTES]
    first = "; ".join(
        [
            f"Protocol {candidates}",
            f"relevant: {counts.rule}",
            "gain 1 for a relevant item, cut at k or the end of the list",
            *notes,
            "tied scores count with the expected value under random order",
        ]
    )
    left_out = [f"{counts.n_excluded} without a relevant item", f"{counts.n_unknown_users} unknown to the model"]
    second = f"Mean over {counts.n_users} users; users left out: {', '.join(left_out)}"
    if counts.n_seen:
        second += f"; {counts.n_seen} test rows left out as seen in training"
    if counts.n_unknown_items:
        fate = "rank last" if protocol == "rated" else "count as not found"
        second += f"; {counts.n_unknown_items} test items unknown to the model {fate}"
    if protocol == "rated" and counts.all_relevant:
        second += "; every ranked item is relevant, so all orders have the same ndcg, map, mrr, precision and recall"
    return f"{first}. {second}."
