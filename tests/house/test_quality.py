"""Quality on MovieLens 100K in the paper's protocol: half of each user's ratings for training, the rest ranked."""

import numpy as np
import pytest

from topnrank import ItemMean, Popularity, Random, TopNRank, evaluate, read, split_per_user

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def results(realdata):
    data = read(realdata / "ml-100k.parquet").filter(min_user_items=10)
    train, test = split_per_user(data, test=0.5, seed=0)
    models = (Random(), Popularity(), ItemMean(), TopNRank(task="rated"))
    return {model.name: evaluate(model.fit(train), test, protocol="rated") for model in models}


def test_the_models_stand_in_order(results):
    values = [results[name]["ndcg@10"] for name in ("random", "popularity", "item-mean", "top-n-rank")]
    assert values == sorted(values)
    assert np.diff(values).min() > 0.01


def test_top_n_rank_reaches_its_quality(results):
    assert results["top-n-rank"]["ndcg@10"] >= 0.82


def test_item_mean_is_where_it_is_known_to_be(results):
    assert 0.80 <= results["item-mean"]["ndcg@10"] <= 0.81


def test_random_is_where_chance_is(results):
    assert 0.60 <= results["random"]["ndcg@10"] <= 0.63


def test_the_mean_is_that_of_the_users(results):
    for result in results.values():
        values = result.per_user["ndcg@10"]
        assert result["ndcg@10"] == pytest.approx(np.nanmean(values))
        assert result.n_users == np.isfinite(values).sum()
