"""Models of order in the cluster: the sums of blocks, and the models of one machine."""

import numpy as np
import pytest
from pyspark.sql import functions as sf

import topnrank
import topnrank.spark as on_spark
from support.frames_for_tests import EVENTS, RATED, collected, events, ratings
from topnrank import DataError, EventWeights, Interactions

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
COUNTS = {"distance_power": 1.0, "smoothing": 0.3, "popularity": -0.1, "head_share": 0.8, "head_decay": 0.5}
BESIDE = {"undirected": 0.3, "recency": 8.0, "recent_popularity": 0.2, "repeats": 0.1}
RIDGE = {**COUNTS, **BESIDE, "decays": [0.0, 0.8], "regularization": 3.0, "shrink": 1.0, "transitions": 0.1}
MODELS = [
    ("Transitions", {**COUNTS, **BESIDE, "half_life": 1e8}),
    ("Transitions", {"undirected": "auto", "recent_popularity": "auto"}),
    ("NextItemRidge", {**RIDGE, "neighbors": 5, "sessions": 1e8}),
    ("NextItemRidge", {**RIDGE, "neighbors": 30, "transitions": 0.0}),
]


def tied():
    """Ratings of few moments, so that most rows share theirs with another one of the user."""
    frame = ratings(n_users=40, n_items=30, n_rows=600)
    frame["timestamp"] = frame["timestamp"] // 10**8
    return frame


def check_same(found, expected):
    """The same model, to the rounding of sums in another order."""
    assert found.user_ids_.tolist() == expected.user_ids_.tolist()
    assert found.item_ids_.tolist() == expected.item_ids_.tolist()
    assert found.settings_ == expected.settings_
    assert found.fitted.arrays.keys() == expected.fitted.arrays.keys()
    for name, array in expected.fitted.arrays.items():
        np.testing.assert_allclose(found.fitted.arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("name", "settings"), MODELS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_model_of_order_is_the_one_of_one_machine(spark, name, settings, blocks):
    frame = tied()
    local = getattr(topnrank, name)(**settings).fit(Interactions.from_frame(frame, columns=RATED))
    data = spark.createDataFrame(frame)
    made = getattr(on_spark, name)(**settings, timestampCol="timestamp", numBlocks=blocks).fit(data)
    assert made.distributed.local is None  # no model of the driver, which would need all rows
    check_same(made.to_local(), local)
    if blocks == 3 and "smoothing" in settings:
        lists = collected(made.recommend(n=3)).sort_values(["user", "rank"])
        expected = local.recommend(n=3).to_pandas()
        scores = {user: own["score"].tolist() for user, own in expected.groupby("user")}
        assert {user: pytest.approx(own["score"].tolist(), rel=1e-4) for user, own in lists.groupby("user")} == scores


def test_event_types_weigh_the_past(spark):
    log = events()
    settings = {**COUNTS, "feedback": EventWeights({"buy": 1.0, "view": 0.3, "dislike": -1.0}), "dislikes": 0.5}
    local = topnrank.Transitions(**settings).fit(Interactions.from_frame(log, columns=EVENTS))
    estimator = on_spark.Transitions(**settings, eventCol="type", timestampCol="timestamp", numBlocks=2)
    check_same(estimator.fit(spark.createDataFrame(log)).to_local(), local)


def test_nobody_likes_anything(spark):
    rows = spark.createDataFrame(ratings()).withColumn("weight", sf.lit(-1.0))
    estimator = on_spark.Transitions(**COUNTS, weightCol="weight", timestampCol="timestamp", feedback="weights")
    with pytest.raises(DataError, match="none of the 600 rows has a weight above 0"):
        estimator.fit(rows.drop("rating"))
