"""`evaluate`: how well a model ranks held-out rows."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Literal

import numpy as np

from topnrank._typing import BoolArray, Float64Array
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError, one_of
from topnrank.evaluation.labels import RELEVANT, Matched, Ranker, match
from topnrank.evaluation.metrics import BEYOND, GRADED, NOTES, Metric, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS, Ranking, rank_catalogue, rank_rated
from topnrank.evaluation.result import Evaluation
from topnrank.kernels._jit import threads

_CANDIDATES = {
    "rated": "each user's own test items are ranked",
    "catalogue": "all items of the model but the user's training items are ranked",
    "catalogue with seen items": "all items of the model are ranked, training items included",
}


def evaluate(
    model: Ranker,
    test: Interactions,
    *,
    protocol: Literal["rated", "catalogue"] = "rated",
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
        "rated" ranks the user's own test items (the paper's protocol); "catalogue" all items of the model, never a
        sample of them.
    metrics
        Names such as "ndcg@10", "map", "auc"; without "@k" the whole list counts. Beyond accuracy "coverage@10" (share of
        the items in anybody's top 10), "novelty@10" (self-information of the items there) and "popularity@10" (how much
        more popular they are than the user's training items).
    relevant
        Lowest rating of a relevant row. With None, or where there are no ratings: weight > 0 if the data have
        weights, else every row.
    exclude_seen
        Whether "catalogue" leaves out the items each user has in training; test rows among them are left out, too.
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
            ranking = rank_catalogue(model, matched.labels, wanted, exclude_seen=exclude_seen)
    candidates = "catalogue with seen items" if protocol == "catalogue" and not exclude_seen else protocol
    return _summary(matched, ranking, wanted, protocol=protocol, candidates=_CANDIDATES[candidates])


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


def _summary(
    matched: Matched, ranking: Ranking, metrics: Sequence[Metric], *, protocol: str, candidates: str
) -> Evaluation:
    """Means and counts."""
    counted = ranking.measured.n_relevant > 0
    if not counted.any():
        raise DataError(
            f"none of the {len(counted)} users that the model knows has a relevant test item left ({matched.rule}); "
            "lower relevant or hold out more rows"
        )
    by_user = {metric.name: _values(ranking, metric, counted) for metric in metrics if metric.kind != "coverage"}
    by_item = {metric.name: ranking.top.coverage(metric.cut) for metric in metrics if metric.kind == "coverage"}
    undefined = {name: int(np.isnan(values[counted]).sum()) for name, values in by_user.items()}
    return Evaluation(
        values={
            metric.name: by_item[metric.name] if metric.name in by_item else _mean(by_user[metric.name])
            for metric in metrics
        },
        per_user=by_user,
        user_ids=matched.user_ids,
        protocol=protocol,
        convention=_convention(matched, ranking, metrics, protocol=protocol, candidates=candidates),
        n_users=int(counted.sum()),
        n_excluded=int((~counted).sum()),
        n_unknown_users=matched.n_unknown_users,
        n_unknown_items=matched.n_unknown_items,
        n_seen=ranking.n_seen,
        undefined={name: count for name, count in undefined.items() if count},
    )


def _values(ranking: Ranking, metric: Metric, counted: BoolArray) -> Float64Array:
    """(n_users,) values of one metric, NaN for users without a relevant item."""
    if metric.kind in BEYOND:
        return np.where(counted, ranking.top.value(metric), np.nan)
    return ranking.measured.value(metric)


def _mean(values: Float64Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _convention(
    matched: Matched, ranking: Ranking, metrics: Sequence[Metric], *, protocol: str, candidates: str
) -> str:
    """The convention in words, with the counts of what was left out."""
    n_users = int((ranking.measured.n_relevant > 0).sum())
    notes = [NOTES[kind] for kind in dict.fromkeys(metric.kind for metric in metrics) if kind in NOTES]
    first = "; ".join(
        [
            f"Protocol {protocol}: {candidates}",
            f"relevant: {matched.rule}",
            "gain 1 for a relevant item, cut at k or the end of the list",
            *notes,
            "tied scores count with the expected value under random order",
        ]
    )
    left_out = [
        f"{len(matched.user_ids) - n_users} without a relevant item",
        f"{matched.n_unknown_users} unknown to the model",
    ]
    second = f"Mean over {n_users} users; users left out: {', '.join(left_out)}"
    if ranking.n_seen:
        second += f"; {ranking.n_seen} test rows left out as seen in training"
    if matched.n_unknown_items:
        fate = "rank last" if protocol == "rated" else "count as not found"
        second += f"; {matched.n_unknown_items} test items unknown to the model {fate}"
    if protocol == "rated" and matched.labels.relevant.all():
        second += "; every ranked item is relevant, so all orders have the same ndcg, map, mrr, precision and recall"
    return f"{first}. {second}."
