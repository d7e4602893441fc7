"""NeighborRidge beyond the conformance suite: what it scores, fades, explains and refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from support.catalog_data import groups, ratings
from topnrank import DataError, Interactions, NeighborRidge, ParameterError

SMALL = {"neighbors": 8, "regularization": 5.0}


def test_scores_are_sums_of_weights_over_the_likes():
    data = ratings()
    model = NeighborRidge(**SMALL).fit(data)
    items, weights = model.fitted.arrays["neighbors"], model.fitted.arrays["neighbor_weights"]
    W = np.zeros((data.n_items, data.n_items))
    np.put_along_axis(W, items.astype(np.int64), weights, axis=1)
    likes = np.zeros((data.n_users, data.n_items))
    liked = data.ratings >= 4
    likes[data.user_index[liked], data.indices[liked]] = 1.0
    assert_allclose(model.score_block(np.arange(data.n_users)), likes @ W.T, atol=1e-5)


def test_it_finds_the_groups():
    train, test = tnr.split_per_user(groups(), test=0.3)
    assert tnr.evaluate(NeighborRidge(**SMALL).fit(train), test, protocol="catalog")["ndcg@10"] > 0.5


def test_recency_fades_likes():
    data = Interactions.from_arrays([1, 1, 2, 2, 3, 3], [1, 2, 1, 3, 2, 3], timestamps=[1, 2, 1, 2, 1, 2])
    plain, faded = (NeighborRidge(neighbors=2, regularization=1.0, recency=r).fit(data) for r in (None, 1.0))
    parts = plain.score_history(np.array([0]), None), plain.score_history(np.array([1]), None)
    assert_allclose(faded.score_history(np.array([0, 1]), None), 0.5 * parts[0] + parts[1], atol=1e-6)
    assert_allclose(faded.score_block(np.array([0]))[0], 0.5 * parts[0] + parts[1], atol=1e-6)
    with pytest.raises(DataError, match="recency needs timestamps"):
        NeighborRidge(recency=1.0).fit(groups())


def visits():
    """A log in which users look at one pair of items in the morning and another, unrelated one in the evening."""
    drawn, rows = np.random.default_rng(0), []
    for user in range(200):
        for part, start in enumerate((0, 40_000)):
            first = 2 * int(drawn.integers(0, 10)) + 20 * part
            rows += [(user, first, start), (user, first + 1, start + int(drawn.integers(1, 60)))]
    users, items, times = zip(*rows, strict=True)
    return Interactions.from_arrays(users, items, timestamps=times)


def test_items_are_near_by_the_sessions_they_share():
    data = visits()
    by_users, by_sessions = (NeighborRidge(**SMALL, sessions=gap).fit(data) for gap in (None, 60.0))
    neighbors = by_sessions.fitted.arrays["neighbors"]
    partner = np.arange(data.n_items) ^ 1
    others = neighbors != np.arange(data.n_items)[:, None]
    assert (others.sum(axis=1) == 1).all()
    assert_array_equal(neighbors[others], partner)
    assert (by_users.fitted.arrays["neighbors"] != neighbors).any()
    assert sorted(by_sessions.recommend(history=[0, 22], n=2)["item"].to_pylist()) == [1, 23]


def test_a_gap_that_ends_no_session_changes_nothing():
    data = visits()
    plain, sessions = (NeighborRidge(**SMALL, sessions=gap).fit(data) for gap in (None, 1e6))
    users = np.arange(data.n_users)
    assert_allclose(sessions.score_block(users), plain.score_block(users), atol=1e-6)


def test_sessions_need_times():
    with pytest.raises(DataError, match="sessions need timestamps"):
        NeighborRidge(sessions=60.0).fit(groups())


def test_a_history_without_a_like_is_refused():
    model = NeighborRidge(**SMALL).fit(ratings())
    with pytest.raises(ParameterError, match="no item of this history counts as liked"):
        model.recommend(history=[(int(model.item_ids_[0]), 1.0)])


@pytest.mark.parametrize(
    "settings",
    [{"neighbors": 0}, {"regularization": 0.0}, {"shrink": -1.0}, {"longest": 0}, {"recency": 0.0}, {"sessions": 0.0}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        NeighborRidge(**settings)
