"""TopNRank for the catalog knows what comes next, where rows have times and order says something."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from topnrank import Interactions, ParameterError, TopNRank

SMALL = {"factors": 4, "epochs": 1, "neighbors": 8, "neighbor_penalty": 20.0, "popularity": 0.01, "factor_weight": 0.1}


def walks(users=250, items=30, length=8, directed=True):
    """Users who walk up the items one by one; or the same items in an order that says nothing."""
    drawn, rows = np.random.default_rng(0), []
    for user in range(users):
        own = (drawn.integers(items) + np.arange(length)) % items
        own = own if directed else drawn.permutation(own)
        rows += [(user, int(item), 1000 * time + 37 * user) for time, item in enumerate(own)]
    owners, numbers, times = (list(column) for column in zip(*rows, strict=True))
    return Interactions.from_arrays(owners, numbers, timestamps=times)


@pytest.fixture(scope="module")
def fitted():
    train, test = tnr.split_last(walks())
    return TopNRank(**SMALL).fit(train), train, test


def test_order_is_used_where_held_out_last_items_say_so(fitted):
    model, train, test = fitted
    assert model.fitted.info.chosen["order"] == "counts"
    without = TopNRank(**SMALL, order="none").fit(train)
    ours, flat = (tnr.evaluate(one, test, metrics="ndcg@10") for one in (model, without))
    assert ours["ndcg@10"] > flat["ndcg@10"] + 0.1
    assert "asked for what comes next" in ours.convention
    assert "asked" not in flat.convention.split("Mean over")[0].partition("tied scores")[2]
    unordered = TopNRank(**SMALL).fit(walks(directed=False))
    assert unordered.fitted.info.chosen["order"] == "none"
    assert unordered.fitted.info.following is None


def test_rows_of_any_time_are_ranked_as_without_order():
    train, test = tnr.split_per_user(walks(), test=0.3)
    model, without = (TopNRank(**SMALL, order=order).fit(train) for order in ("counts", "none"))
    assert model.fitted.info.following is not None
    ours, flat = (tnr.evaluate(one, test, metrics="ndcg@10") for one in (model, without))
    assert ours["ndcg@10"] == flat["ndcg@10"]
    assert "asked for rows of any time" in ours.convention
    train, test = tnr.split_time(walks(), test=0.3)
    later = tnr.evaluate(TopNRank(**SMALL, order="counts").fit(train), test, metrics="ndcg@10")
    assert "asked for rows of any time" in later.convention


def test_histories_explanations_and_files(fitted, tmp_path):
    model, train, _ = fitted
    assert model.recommend(history=[3, 10], n=1)["item"].to_pylist() == [11]
    assert model.recommend(history=[10, 3], n=1)["item"].to_pylist() == [4]
    user = 7
    own = slice(*train.indptr[user : user + 2])
    history = train.indices[own][np.argsort(train.timestamps[own])].astype(np.int64)
    known = model.score_block(np.array([user]))[0]
    assert_allclose(known, model.score_history(history, None), rtol=1e-4, atol=1e-5)
    assert_allclose(known[:5], model.score_pairs(np.full(5, user), np.arange(5)), rtol=1e-5)
    table = model.explain(history=[3, 10], item=11).to_pylist()
    assert (table[0]["because"], table[0]["what"]) == (10, "transitions")
    assert sum(row["part"] for row in table) == pytest.approx(
        model.score_history(np.array([3, 10]), None)[11], abs=1e-5
    )
    model.save(tmp_path / "model")
    again = tnr.load(tmp_path / "model")
    assert_array_equal(again.score_block(np.arange(20)), model.score_block(np.arange(20)))


def test_new_rows_are_the_past_at_once(fitted):
    model = TopNRank(**SMALL).fit(fitted[1])
    settings = model.fitted.info.following
    model.partial_fit(Interactions.from_arrays([999, 999], [3, 10], timestamps=[1, 2]))
    assert model.fitted.info.following == settings
    assert model.recommend(999, n=1)["item"].to_pylist() == [11]


def test_the_regression_may_be_asked_for():
    train, test = tnr.split_last(walks(users=120))
    model = TopNRank(**SMALL, order="ridge").fit(train)
    assert "decays" in model.fitted.info.following
    assert tnr.evaluate(model, test, metrics="ndcg@10")["ndcg@10"] > 0.8
    with pytest.raises(ParameterError, match="order are for the whole catalog"):
        TopNRank(task="rated", order="counts").check()
