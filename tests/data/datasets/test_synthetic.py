import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.data.datasets import _synthetic_kernel as kernels
from topnrank.data.datasets.demo import demo_data, demo_titles
from topnrank.data.datasets.synthetic import Planted, Recipe, plant, synthetic
from topnrank.errors import ParameterError
from topnrank.rng import stream


@pytest.fixture(scope="module")
def planted() -> Planted:
    return plant(Recipe(users=1500, items=800, ratings=120_000, seed=3))


@st.composite
def shapes(draw):
    users, items = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    return users, items, draw(st.integers(1, users * items))


@settings(max_examples=60, deadline=None)
@given(shape=shapes(), seed=st.integers(0, 5), min_list=st.integers(0, 25), factors=st.integers(1, 4))
def test_every_shape_gives_exactly_the_rows_asked_for(shape, seed, min_list, factors):
    users, items, ratings = shape
    data = synthetic(users, items, ratings, seed=seed, min_list=min_list, factors=factors)
    assert (data.n_users, data.n_items, len(data)) == shape
    pairs = data.user_index.astype(np.int64) * items + data.indices
    assert np.all(np.diff(pairs) > 0)
    assert data.indices.min() >= 0
    assert data.indices.max() < items
    assert set(data.ratings.tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0}


def test_the_default_is_fifty_ratings_for_each_user():
    assert len(synthetic(40, 200)) == 40 * 50
    assert len(synthetic(40, 7)) == 40 * 4


def test_equal_recipes_give_equal_data_whatever_the_threads():
    before = numba.get_num_threads()
    many = synthetic(300, 100, seed=1).fingerprint()
    numba.set_num_threads(1)
    try:
        assert synthetic(300, 100, seed=1).fingerprint() == many
    finally:
        numba.set_num_threads(before)
    assert synthetic(300, 100, seed=2).fingerprint() != many


def test_lists_and_popularity_are_heavy_tailed(planted):
    data = planted.interactions
    lengths = np.diff(data.indptr)
    assert lengths.min() >= 20
    assert np.median(lengths) < 0.75 * lengths.mean()
    assert lengths.max() > 4 * lengths.mean()
    counts = np.sort(np.bincount(data.indices, minlength=data.n_items))[::-1]
    assert counts[: data.n_items // 10].sum() > 0.3 * len(data)
    assert counts[data.n_items // 2 :].sum() < 0.2 * len(data)


def test_the_shortest_list_is_lowered_where_ratings_are_few():
    lengths = np.diff(synthetic(8000, 500, 13_000).indptr)
    assert lengths.min() == 1
    assert lengths.max() >= 5


@pytest.mark.parametrize(
    ("half_stars", "shares"),
    [
        (False, [0.056, 0.108, 0.261, 0.349, 0.226]),
        (True, [0.012, 0.034, 0.014, 0.071, 0.044, 0.215, 0.110, 0.278, 0.077, 0.145]),
    ],
)
def test_stars_have_the_shares_of_movielens(half_stars, shares):
    data = synthetic(400, 200, half_stars=half_stars)
    values, counts = np.unique(data.ratings, return_counts=True)
    assert_array_equal(values, np.linspace(5 / len(shares), 5, len(shares)))
    assert_allclose(counts / len(data), shares, atol=1e-3)


def test_times_differ_within_a_user_and_do_not_follow_the_item_numbers(planted):
    data = planted.interactions
    order = np.lexsort((data.timestamps, data.user_index))
    same_user = np.diff(data.user_index[order]) == 0
    assert np.all(np.diff(data.timestamps[order])[same_user] > 0)
    later = np.diff(data.timestamps)[np.diff(data.user_index) == 0] > 0
    assert 0.48 < later.mean() < 0.52
    years = (data.timestamps.max() - data.timestamps.min()) / (365 * 86_400)
    assert 2 < years < 8


def test_both_ways_of_choosing_follow_the_same_law():
    rng = np.random.default_rng(0)
    tastes, genres = rng.normal(size=(1, 3)).astype(np.float32), rng.random((12, 3)).astype(np.float32)
    cumulative = np.cumsum(np.arange(1, 13)) / 78
    first = np.searchsorted(cumulative, np.arange(12) / 12, side="right").astype(np.int32)
    market = kernels.Market(cumulative, first, tastes, genres, 1.5)
    n_draws, length = 5000, 4
    meeting, racing = np.zeros(12), np.zeros(12)
    meet_stream, race_stream = stream(0, "meet"), stream(0, "race")
    chosen = np.empty(length, np.int32)
    for _ in range(n_draws):
        kernels._meet_and_take(market, 0, chosen, np.full(12, -1, np.int32), meet_stream)
        meeting[chosen] += 1
        kernels._race_all(market, 0, chosen, race_stream)
        racing[chosen] += 1
    assert meeting.sum() == racing.sum() == n_draws * length
    assert_allclose(meeting / n_draws, racing / n_draws, atol=5 * np.sqrt(2 * 0.25 / n_draws))


def test_users_take_what_they_like_and_the_popular_is_better(planted):
    data = planted.interactions
    rng = np.random.default_rng(0)
    users = data.user_index
    taken = planted.score(users, data.indices) - planted.item_quality[data.indices]
    shuffled = rng.permutation(data.indices)
    assert taken.mean() > (planted.score(users, shuffled) - planted.item_quality[shuffled]).mean() + 0.1
    counts = np.bincount(data.indices, minlength=data.n_items)
    assert np.corrcoef(np.log(counts + 1), planted.item_quality)[0, 1] > 0.2


def held_out_ndcg(data, test, score):
    """Mean NDCG@10 of ranking each user's rows in `test` by `score`, (n_rows,); relevant are 4 stars and more."""
    discount, values = 1 / np.log2(np.arange(2, 12)), []
    for user in range(data.n_users):
        rows = np.arange(data.indptr[user], data.indptr[user + 1])
        rows = rows[test[rows]]
        relevant = data.ratings[rows] >= 4
        if relevant.any():
            top = relevant[np.argsort(-score[rows])][:10]
            ideal = discount[: min(relevant.sum(), 10)].sum()
            values.append(discount[: top.size] @ top / ideal)
    return np.mean(values)


def baseline_quality(planted):
    """NDCG@10 of random, popularity, damped item mean, and the planted truth, after an even split of the rows."""
    data, rng = planted.interactions, np.random.default_rng(0)
    test = rng.random(len(data)) < 0.5
    train_items, train_ratings = data.indices[~test], data.ratings[~test]
    counts = np.bincount(train_items, minlength=data.n_items)
    sums = np.bincount(train_items, train_ratings, minlength=data.n_items)
    item_mean = (sums + 5 * train_ratings.mean()) / (counts + 5)
    scores = rng.random(len(data)), counts[data.indices], item_mean[data.indices]
    truth = planted.score(data.user_index, data.indices)
    return [held_out_ndcg(data, test, score) for score in (*scores, truth)]


def test_simple_baselines_stand_in_the_order_of_movielens(planted):
    random, popularity, item_mean, truth = baseline_quality(planted)
    assert popularity > random + 0.05
    assert item_mean > popularity + 0.05
    assert truth > item_mean + 0.03


def test_noise_hides_the_truth():
    clear, noisy = (baseline_quality(plant(Recipe(users=200, items=150, noise=noise)))[-1] for noise in (0.0, 3.0))
    assert clear > noisy + 0.1


def test_score_is_quality_plus_taste(planted):
    expected = planted.item_quality[5] + planted.user_factors[7] @ planted.item_factors[5]
    assert_allclose(planted.score(np.array([7]), np.array([5])), [expected], rtol=1e-6)
    assert_allclose(np.linalg.norm(planted.item_factors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"users": 0}, "users must be an integer of at least 1, got 0"),
        ({"items": -3}, "items must be an integer of at least 1, got -3"),
        ({"items": 2.5}, "items must be an integer of at least 1, got 2.5"),
        ({"ratings": 0}, "ratings must be an integer of at least 1, got 0"),
        ({"users": 3, "items": 4, "ratings": 13}, "ratings must be at most users x items = 12, got 13"),
        ({"factors": 0}, "factors must be an integer of at least 1, got 0"),
        ({"min_list": -1}, "min_list must be an integer of at least 0, got -1"),
        ({"seed": True}, "seed must be an integer of at least 0, got True"),
        ({"noise": float("nan")}, "noise must be a finite number of at least 0, got nan"),
        ({"taste": "much"}, "taste must be a finite number of at least 0, got 'much'"),
    ],
)
def test_impossible_recipes_are_refused_in_one_sentence(wrong, message):
    with pytest.raises(ParameterError, match=message):
        synthetic(**wrong)


def test_demo_has_a_unique_title_for_each_film():
    data, titles = demo_data(), demo_titles()
    assert (data.n_users, data.n_items, len(data)) == (600, 300, 30_000)
    assert sorted(titles) == data.items.ids.tolist()
    assert len({title.split(" (")[0] for title in titles.values()}) == 300
    assert titles == demo_titles()


def test_demo_users_keep_to_their_genres():
    """A user's liked films fall into one genre more often than a random draw of films does."""
    data, titles = demo_data(), demo_titles()
    genre = np.unique([titles[item].rsplit(", ", 1)[1] for item in data.items.ids.tolist()], return_inverse=True)[1]
    liked = data.ratings == 5
    table = np.zeros((data.n_users, genre.max() + 1))
    np.add.at(table, (data.user_index[liked], genre[data.indices[liked]]), 1)
    table = table[table.sum(axis=1) >= 5]
    overall = table.sum(axis=0).max() / table.sum()
    assert (table.max(axis=1) / table.sum(axis=1)).mean() > overall + 0.15
