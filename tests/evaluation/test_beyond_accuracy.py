"""Novelty and popularity of the lists against plain Python, and beside coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fixed_ranker import FixedRanker
from topnrank import Interactions, Popularity, Random, evaluate, split_per_user
from topnrank.errors import ParameterError
from topnrank.evaluation import protocols
from topnrank.evaluation.metrics import parse_metrics
from topnrank.testing.base import small_data

pytestmark = pytest.mark.filterwarnings("ignore:every test row is relevant")
"""Lists of relevant items alone are fine where the arithmetic is tested."""

METRICS = ["novelty@2", "popularity@2", "novelty@5", "popularity@5", "coverage@2"]


def plain(lists, seen):
    """(novelty, popularity) of each list by the formulas, with loops only."""
    trained = [items for items in seen if items]
    users_of = {item: sum(item in items for items in seen) for items in (*lists, *seen) for item in items}
    results = []
    for items, own in zip(lists, seen, strict=True):
        information = [-math.log2(max(users_of[item], 1) / max(len(trained), 1)) for item in items]
        novelty = sum(information) / len(items) if items else math.nan
        shown = [users_of[item] for item in items]
        mine = [users_of[item] for item in own]
        lift = (sum(shown) / len(shown)) / (sum(mine) / len(mine)) if shown and mine else math.nan
        results.append((novelty, lift))
    return np.array(results)


@st.composite
def rankers(draw):
    """Scores with ties, and training items of each user, of whom some have none."""
    n_users, n_items = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    scores = draw(
        st.lists(st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items), min_size=n_users, max_size=n_users)
    )
    seen = draw(st.lists(st.sets(st.integers(1, n_items - 1)), min_size=n_users, max_size=n_users))
    return FixedRanker(scores, seen=[sorted(items) for items in seen]), [sorted(items) for items in seen]


def best(scores, candidates, k):
    return sorted(candidates, key=lambda item: (-scores[item], item))[:k]


@settings(max_examples=80, deadline=None)
@given(rankers(), st.integers(1, 5))
def test_catalog_lists_equal_plain_python(drawn, k):
    model, seen = drawn
    n_users, n_items = model.scores.shape
    test = Interactions.from_arrays(np.arange(n_users), np.zeros(n_users, int))  # item 0 is in nobody's training
    result = evaluate(model, test, protocol="catalog", metrics=[f"novelty@{k}", f"popularity@{k}"])
    free = [[item for item in range(n_items) if item not in items] for items in seen]
    expected = plain([best(model.scores[u], free[u], k) for u in range(n_users)], seen)
    np.testing.assert_allclose(result.per_user[f"novelty@{k}"], expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(result.per_user[f"popularity@{k}"], expected[:, 1], atol=1e-12)
    assert result[f"novelty@{k}"] == pytest.approx(expected[:, 0].mean())
    assert result.undefined.get(f"popularity@{k}", 0) == sum(not items for items in seen)


@settings(max_examples=80, deadline=None)
@given(rankers(), st.integers(1, 5))
def test_rated_lists_equal_plain_python(drawn, k):
    model, seen = drawn
    n_users, n_items = model.scores.shape
    rated = [[item for item in range(n_items) if (item + user) % 3 or item == 0] for user in range(n_users)]
    rows = [(user, item) for user in range(n_users) for item in [*rated[user], 90]]  # the model does not know item 90
    test = Interactions.from_arrays(*zip(*rows, strict=True))
    result = evaluate(model, test, metrics=[f"novelty@{k}", f"popularity@{k}"])
    expected = plain([best(model.scores[u], rated[u], k) for u in range(n_users)], seen)
    np.testing.assert_allclose(result.per_user[f"novelty@{k}"], expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(result.per_user[f"popularity@{k}"], expected[:, 1], atol=1e-12)


def test_values_by_hand():
    # four training users; item 0 has two of them, items 1 and 2 one, item 3 none
    model = FixedRanker([[0, 9, 8, 7]] * 4, seen=[[0], [0, 1], [2], []])
    test = Interactions.from_arrays([0, 3], [3, 3])
    result = evaluate(model, test, protocol="catalog", metrics=["novelty@1", "popularity@1", "novelty@3"])
    assert result.per_user["novelty@1"].tolist() == pytest.approx([math.log2(3)] * 2)  # item 1: one of three users
    assert result.per_user["popularity@1"].tolist() == pytest.approx([1 / 2, math.nan], nan_ok=True)
    assert result.per_user["novelty@3"].tolist() == pytest.approx([math.log2(3)] * 2)
    assert result.undefined == {"popularity@1": 1}
    assert "popularity lift + 1" in result.convention
    assert "-log2" in result.convention


def test_users_without_a_relevant_item_are_left_out():
    model = FixedRanker([[3, 2, 1], [3, 2, 1]], seen=[[2], [1, 2]])
    test = Interactions.from_arrays([0, 1], [0, 0], ratings=[5, 1])
    values = evaluate(model, test, protocol="catalog", metrics="novelty@1").per_user["novelty@1"]
    assert np.isnan(values).tolist() == [False, True]


@pytest.mark.parametrize("protocol", ["rated", "catalog"])
def test_blocks_do_not_change_a_bit(protocol, monkeypatch):
    train, test = split_per_user(small_data(), test=0.5, seed=0)
    model = Random().fit(train)
    whole = evaluate(model, test, protocol=protocol, metrics=METRICS)
    monkeypatch.setattr(protocols, "_BLOCK_BYTES", 4 * train.n_items * 7)
    parts = evaluate(model, test, protocol=protocol, metrics=METRICS, num_threads=1)
    assert parts.values == whole.values
    assert all(parts.per_user[name].tobytes() == values.tobytes() for name, values in whole.per_user.items())


def test_popular_items_are_popular_and_not_novel():
    train, test = split_per_user(small_data(), test=0.5, seed=0)
    names = ["novelty@10", "popularity@10", "coverage@10"]
    popular, random = (
        evaluate(model.fit(train), test, protocol="catalog", metrics=names) for model in (Popularity(), Random())
    )
    assert popular["popularity@10"] > random["popularity@10"] + 0.2
    assert popular["novelty@10"] < random["novelty@10"]
    assert popular["coverage@10"] < random["coverage@10"]


@pytest.mark.parametrize("kind", ["novelty", "popularity"])
def test_they_need_a_cut(kind):
    with pytest.raises(ParameterError, match=f"{kind} needs a cut-off, such as '{kind}@10', got '{kind}'"):
        parse_metrics(kind)
