"""The kernel's exact expectations against brute force over all orders of tied candidates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fixed_ranker import FixedRanker, expected_metric
from topnrank.data.interactions import Interactions
from topnrank.evaluation import evaluate
from topnrank.evaluation._metrics_kernel import stop_chances

pytestmark = [
    pytest.mark.filterwarnings("ignore:every test row is relevant"),
    pytest.mark.filterwarnings("ignore:.* of the test rows count as relevant"),
]
"""Lists of relevant items alone are fine where the arithmetic is tested."""

KINDS = ("ndcg", "ndcg_graded", "map", "mrr", "err", "precision", "recall", "hit")
NAMES = [f"{kind}{cut}" for kind in KINDS for cut in ("@1", "@2", "@4", "")]

scores = st.sampled_from([-1.0, 0.0, 0.5])
ratings = st.sampled_from([0, 1, 2, 3, 4, 5])


def _cut(name):
    return int(name.partition("@")[2]) if "@" in name else None


def _auc(candidates, n_unretrieved=0):
    """Pairs won, ties one half; an unretrieved relevant item loses all."""
    good = [score for score, relevant, _ in candidates if relevant]
    bad = [score for score, relevant, _ in candidates if not relevant]
    won = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    pairs = (len(good) + n_unretrieved) * len(bad)
    return won / pairs if pairs else np.nan


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(scores, ratings), min_size=1, max_size=6).filter(lambda rows: any(r >= 4 for _, r in rows)))
def test_rated_lists_equal_the_mean_over_all_orders(rows):
    candidates = [(score, rating >= 4, rating) for score, rating in rows]
    data = Interactions.from_arrays([0] * len(rows), range(len(rows)), ratings=[float(r) for _, r in rows])
    result = evaluate(FixedRanker([[score for score, _ in rows]]), data, relevant=4, metrics=[*NAMES, "auc"])
    labels = [row[1:] for row in candidates]
    for name in NAMES:
        expected = expected_metric(
            name.partition("@")[0], candidates, labels, cut=_cut(name), highest=max(r for _, r in rows)
        )
        assert result[name] == pytest.approx(expected, abs=1e-12), name
    assert result["auc"] == pytest.approx(_auc(candidates), nan_ok=True)


items = st.tuples(scores, st.sampled_from(["seen", "blank", "test"]), ratings)


@settings(max_examples=60, deadline=None)
@given(st.lists(items, min_size=1, max_size=6), st.lists(ratings, max_size=2))
def test_catalog_lists_equal_the_mean_over_all_orders(catalog, unknown):
    tested = {item: rating for item, (_, kind, rating) in enumerate(catalog) if kind == "test"}
    tested |= {len(catalog) + extra: rating for extra, rating in enumerate(unknown)}
    if not any(item < len(catalog) for item in tested) or not any(rating >= 4 for rating in tested.values()):
        return
    data = Interactions.from_arrays([0] * len(tested), list(tested), ratings=[float(r) for r in tested.values()])
    seen = [item for item, (_, kind, _) in enumerate(catalog) if kind == "seen"]
    model = FixedRanker([[score for score, _, _ in catalog]], seen=[seen])
    result = evaluate(model, data, relevant=4, protocol="catalog", metrics=[*NAMES, "auc"])
    grades = [(score, tested.get(item, 0)) for item, (score, kind, _) in enumerate(catalog) if kind != "seen"]
    candidates = [(score, grade >= 4, grade) for score, grade in grades]
    labels = [(rating >= 4, rating) for rating in tested.values()]
    for name in NAMES:
        expected = expected_metric(
            name.partition("@")[0], candidates, labels, cut=_cut(name), highest=max(tested.values())
        )
        assert result[name] == pytest.approx(expected, abs=1e-12), name
    assert result["auc"] == pytest.approx(_auc(candidates, sum(r >= 4 for r in unknown)), nan_ok=True)


def test_stop_chances_of_a_large_group_add_up():
    stop = np.linspace(0.0, 1.0, 40)
    chances, past = stop_chances(stop, 200, 200)
    assert chances.sum() + past == pytest.approx(1.0)
    assert past == pytest.approx(np.prod(1 - stop), abs=1e-15)
    assert chances[0] == pytest.approx(stop.sum() / 200)
