"""partial_fit: what changes at once, what is trained, what stays, and how near it comes to training anew."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from support.catalog_data import SMALL, groups, ratings
from topnrank import DataError, EventWeights, Interactions, ParameterError, TopNRank


def parts(data, chosen):
    """The rows outside `chosen` and those inside, each with only its own ids."""
    return data.take(~chosen).compact(), data.take(chosen).compact()


def late(data):
    """Rows of the last users and the last items: both parts have users and items of their own."""
    return (data.user_index >= data.n_users - 30) | (data.indices >= data.n_items - 5)


@pytest.mark.parametrize("data", [ratings(), groups()], ids=["ratings", "likes"])
@pytest.mark.parametrize("users", ["history", "factors"])
def test_new_users_and_items_are_known_afterwards(data, users):
    before, new = parts(data, late(data))
    model = TopNRank(**SMALL, user_representation=users).fit(before).partial_fit(new)
    data = data.compact()
    assert model.user_ids_.tolist() == data.users.ids.tolist()
    assert model.item_ids_.tolist() == data.items.ids.tolist()
    assert_array_equal(model.seen_indices, data.indices)
    assert np.isfinite(model.score_block(np.arange(data.n_users))).all()


def test_what_was_trained_stays():
    data = ratings()
    before, new = parts(data, late(data))
    model = TopNRank(**SMALL).fit(before)
    old, ids = model.item_factors_.copy(), model.item_ids_.tolist()
    model.partial_fit(new)
    assert_array_equal(model.item_factors_[model.item_numbers(ids)], old)


def test_new_events_count_at_once_as_a_history_does():
    data = ratings()
    chosen = np.zeros(len(data), np.bool_)
    chosen[data.indptr[7]] = True
    model = TopNRank(**SMALL | {"neighbors": 0}).fit(data.take(~chosen)).partial_fit(data.take(chosen))
    rows = slice(data.indptr[7], data.indptr[8])
    scores = model.score_history(data.indices[rows].astype(np.int64), data.ratings[rows].astype(np.float64))
    assert_allclose(model.score_block(np.array([7]))[0], scores, atol=2e-5)


def test_a_pair_that_comes_again_takes_its_new_value():
    data = ratings()
    first = Interactions.from_arrays([data.users.ids[0]], [data.items.ids[data.indices[0]]], ratings=[1.0])
    model = TopNRank(**SMALL).fit(data).partial_fit(first)
    assert model.fitted.arrays["seen_values"][0] == 1.0
    assert len(model.seen_indices) == len(data)


def test_it_comes_near_to_training_anew():
    train, test = tnr.split_per_user(groups(users=240), test=0.3)
    before, new = parts(train, late(train))
    settings = SMALL | {"epochs": 25}
    old = TopNRank(**settings).fit(before)
    stale = tnr.evaluate(old, test, protocol="catalog")
    value = tnr.evaluate(old.partial_fit(new, epochs=25), test, protocol="catalog")["ndcg@10"]
    anew = tnr.evaluate(TopNRank(**settings).fit(train), test, protocol="catalog")["ndcg@10"]
    assert value > 0.9 * anew
    assert stale.n_users < 240  # who came later was unknown


def test_events_are_weighted_as_before():
    weights = EventWeights({"buy": 1.0, "view": 0.25})
    log = Interactions.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 3, 2], types=["buy", "view", "view", "buy", "buy"])
    model = TopNRank(factors=2, epochs=2, negatives=2, neighbors=0, feedback=weights).fit(log)
    model.partial_fit(Interactions.from_arrays([1, 9], [3, 1], types=["view", "buy"]))
    assert sorted(model.fitted.arrays["seen_values"].tolist()) == [0.25, 0.25, 0.25, 1.0, 1.0, 1.0, 1.0]
    assert model.fitted.info.feedback["kind"] == "events"
    with pytest.raises(DataError, match="feedback types"):
        model.partial_fit(Interactions.from_arrays([1], [9]))


def test_later_rows_are_the_latest():
    data = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 3], timestamps=[10, 20, 10, 20])
    model = TopNRank(factors=2, epochs=1, negatives=2, neighbors=2, recency=1.0).fit(data)
    model.partial_fit(Interactions.from_arrays([1, 1], [3, 4], timestamps=[5, 7]))
    assert model.fitted.arrays["seen_recency_weights"].tolist() == [0.125, 0.25, 0.5, 1.0, 0.5, 1.0]


def test_later_rows_may_belong_to_a_session_begun_before():
    data = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 3], timestamps=[10, 900, 10, 20])
    settings = {"factors": 2, "epochs": 1, "negatives": 2, "neighbors": 3, "sessions": 60.0}
    later = Interactions.from_arrays([1, 3], [4, 1], timestamps=[910, 5])
    model = TopNRank(**settings).fit(data).partial_fit(later)
    users, items, times = [1, 1, 1, 2, 2, 3], [1, 2, 4, 1, 3, 1], [10, 900, 910, 10, 20, 5]
    whole = TopNRank(**settings).fit(Interactions.from_arrays(users, items, timestamps=times))
    assert model.fitted.arrays["seen_times"].tolist() == times
    for name in ("neighbors", "neighbor_weights"):
        np.testing.assert_array_equal(model.fitted.arrays[name], whole.fitted.arrays[name])
    with pytest.raises(DataError, match="has sessions, which needs timestamps"):
        model.partial_fit(Interactions.from_arrays([1], [9]))


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        (Interactions.from_arrays([1], [1]), DataError, "trained on ratings"),
        (Interactions.from_arrays(["a"], ["b"], ratings=[3.0]), DataError, "of another kind"),
    ],
)
def test_rows_that_do_not_fit_are_refused(new, error, message):
    model = TopNRank(**SMALL | {"epochs": 1}).fit(ratings())
    with pytest.raises(error, match=message):
        model.partial_fit(new)


def test_plain_descent_is_refused():
    model = TopNRank.paper(iterations=2).fit(ratings())
    with pytest.raises(ParameterError, match="optimizer='adagrad'"):
        model.partial_fit(ratings())
