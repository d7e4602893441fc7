"""The paper's protocol on MovieLens 100K: two models without parameters against values known beforehand."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.fixed_ranker import FixedRanker
from topnrank.data.interactions import Interactions
from topnrank.evaluation import evaluate, split_per_user


@pytest.fixture(scope="module")
def ml_100k():
    folder = os.environ.get("TOPNRANK_DATA")
    if folder is None:
        pytest.skip("TOPNRANK_DATA is not set: it names a folder with ml-100k.parquet")
    return Interactions.from_frame(pq.read_table(Path(folder) / "ml-100k.parquet")).filter(min_user_items=10)


def ndcg(data, item_scores):
    """NDCG@1 and @10, mean of three splits; `item_scores` makes a score for each item from the training part."""
    means = []
    for seed in range(3):
        train, test = split_per_user(data, test=0.5, seed=seed)
        model = FixedRanker(np.tile(item_scores(train), (data.n_users, 1)))
        model.fitted = train.take(np.empty(0, np.int64))
        means.append(list(evaluate(model, test, metrics=["ndcg@1", "ndcg@10"]).values.values()))
    return np.mean(means, axis=0)


def damped_mean(train):
    """Item mean, drawn to the mean of all ratings as by five more ratings of that value."""
    overall = train.ratings.mean()
    sums = np.bincount(train.indices, weights=train.ratings, minlength=train.n_items)
    return (sums + 5 * overall) / (np.bincount(train.indices, minlength=train.n_items) + 5)


@pytest.mark.realdata
def test_item_mean_has_its_known_value(ml_100k):
    np.testing.assert_allclose(ndcg(ml_100k, damped_mean), [0.821, 0.803], atol=0.01)


@pytest.mark.realdata
def test_constant_scores_give_the_share_of_relevant_items(ml_100k):
    # exact, where a single random order per split scatters by about 0.01 around it
    shares = np.bincount(ml_100k.user_index, weights=ml_100k.ratings >= 4) / np.diff(ml_100k.indptr)
    first, _ = ndcg(ml_100k, lambda train: np.zeros(train.n_items))
    np.testing.assert_allclose(first, shares.mean(), atol=0.005)
