"""`evaluate`: how well a model ranks held-out rows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from topnrank._checks import one_of, require_integer
from topnrank._typing import BoolArray, Float64Array
from topnrank.data.feedback.liked import Relevant
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DataError, TopNRankWarning
from topnrank.evaluation.foreign import RankedLists, as_ranker
from topnrank.evaluation.labels import check_overlap, match, relevance
from topnrank.evaluation.metrics import ACCURACY, DEFAULT_METRICS, GRADED, Metric, Metrics, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS, Ranking, rank_catalog, rank_rated
from topnrank.evaluation.result import Evaluation
from topnrank.kernels.jit import threads


def evaluate(
    model: Any,
    test: Interactions,
    *,
    train: Interactions | None = None,
    protocol: Literal["auto", "rated", "catalog"] = "auto",
    metrics: Metrics = DEFAULT_METRICS,
    relevant: Relevant = "auto",
    exclude_seen: bool = True,
    num_threads: int = 0,
) -> Evaluation:
    """Rank candidates for every test user and average the metrics over users.

    Tied scores count with the expected value under random order. Users and items are matched by original id.

    Parameters
    ----------
    model
        A fitted model; or a fitted object with the method `score(users, items)`, or a frame of lists made elsewhere with the
        columns user, item and rank (or score; else the best first). What is not in a list counts as not found.
    test
        Held-out rows.
    train
        The rows that an object of another library, or the lists, were made from. Models of this library know them. Without
        them nothing is left out of lists as seen.
    protocol
        "rated" ranks the user's own test items (the paper's protocol); "catalog" all items of the model, never a
        sample of them. "auto" is what the model was trained for; "catalog" for models without training.
    metrics
        Names such as "ndcg@10", "map", "auc"; without "@k" the whole list counts. Beyond accuracy "coverage@10" (fraction
        of the items in anybody's top 10), "novelty@10" (self-information of the items there) and "popularity@10" (how much
        more popular they are than the user's training items). Or a function of your own: it gets the candidates of a user,
        best first, as an array of 1.0 (relevant) and 0.0, tied ones in random order, and returns a number; NaN leaves the
        user out of its mean.
    relevant
        Lowest rating of a relevant row. "auto" is the rule that the model learned by; of a model without one, the upper
        fifth of the scale of the test ratings. With None, or where there are no ratings: weight > 0 if the data have
        weights, else every row.
    exclude_seen
        Whether "catalog" leaves out the items each user has in training; test rows among them are left out, too.
    num_threads
        0 for all; the results do not depend on it.

    Raises
    ------
    DataError
        If no row is relevant, no user or item of the test data is known to the model, or no relevant row is left.
    """
    test = test if isinstance(test, Interactions) else as_interactions(test, "evaluate")
    require_integer("num_threads", num_threads)
    model = model if hasattr(model, "score_block") else as_ranker(model, train)
    asked, ask = "", None if test.timestamps is None else getattr(model, "for_rows", None)
    if ask is not None:  # a model of several scores: which of them the times of the rows ask for
        model, asked = ask(test)
    chosen = one_of("protocol", protocol, ("auto", *PROTOCOLS))
    chosen = str(getattr(model, "task_", "catalog")) if chosen == "auto" else chosen  # what it was trained for
    wanted = parse_metrics(metrics)
    relevant_test = relevance(test, relevant, getattr(model, "liked_rule_", None))
    matched = match(model, test, relevant_test.flags, graded=any(metric.kind in GRADED for metric in wanted))
    check_overlap(model, test, matched)
    if isinstance(model, RankedLists):
        matched = replace(matched, labels=model.only_listed(matched.labels))
    if any(metric.kind in ACCURACY for metric in wanted) and (complaint := relevant_test.complaint(chosen)):
        warnings.warn(complaint, TopNRankWarning, stacklevel=2)
    labels = matched.labels
    with threads(num_threads):
        if chosen == "rated":
            ranking = rank_rated(model, labels, wanted)
        else:
            ranking = rank_catalog(model, labels, wanted, exclude_seen=exclude_seen)
    check_rows_left(len(labels.items), ranking.n_seen)
    counted, per_user = user_values(ranking, wanted)
    means = means_over(per_user, counted)
    coverage = {metric.name: ranking.top.coverage(metric.cut) for metric in wanted if metric.kind == "coverage"}
    n_users = int(counted.sum())
    tested, has_rows = np.unique(labels.items[labels.items >= 0]), np.ones(len(labels.users), np.bool_)
    known = model.fitted
    if len(known.indices):
        has_rows, tested = np.diff(known.indptr)[labels.users] > 0, tested[~np.isin(tested, known.indices)]
    return Evaluation(
        values={metric.name: (means | coverage)[metric.name] for metric in wanted},
        per_user=per_user,
        user_ids=matched.user_ids,
        protocol=chosen,
        exclude_seen=exclude_seen,
        rule=relevant_test.rule,
        all_relevant=bool(labels.relevant.all()),
        n_users=n_users,
        n_excluded=len(counted) - n_users,
        n_unknown_users=matched.n_unknown_users,
        n_unknown_items=matched.n_unknown_items,
        n_users_without_rows=int((counted & ~has_rows).sum()),
        n_items_without_rows=len(tested) if len(known.indices) else 0,
        known=means_over(per_user, has_rows) | coverage,
        n_seen=ranking.n_seen,
        undefined={name: gap for name, values in per_user.items() if (gap := n_users - int((~np.isnan(values)).sum()))},
        asked=asked,
        ties=test.ties,
    )


def means_over(per_user: Mapping[str, Float64Array], users: BoolArray) -> dict[str, float]:
    """The mean of each metric over those of the `users` for whom it is defined; NaN if there is none."""
    defined = {name: values[users & ~np.isnan(values)] for name, values in per_user.items()}
    return {name: float(values.mean()) if len(values) else float("nan") for name, values in defined.items()}


def check_rows_left(n_rows: int, n_seen: int) -> None:
    """Raise DataError if every test row is left out as a training row."""
    if n_rows and n_seen == n_rows:
        raise DataError(
            "every test row is also a training row of the model, so none is left to find; evaluate on held-out "
            "rows, or in Python with exclude_seen=False"
        )


def user_values(ranking: Ranking, metrics: Sequence[Metric]) -> tuple[BoolArray, dict[str, Float64Array]]:
    """(n_users,) whether each user has a relevant item, and each metric but coverage for each user, NaN for the others."""
    counted = ranking.measured.n_relevant > 0
    values = {}
    for metric in metrics:
        if metric.kind in ("novelty", "popularity"):
            values[metric.name] = np.where(counted, ranking.top.value(metric), np.nan)
        elif metric.kind != "coverage":
            values[metric.name] = ranking.measured.value(metric)
    return counted, values
