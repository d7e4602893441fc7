"""Training on DataFrames: early stopping, checkpoints and progress are those of one machine."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
import topnrank.spark as on_spark
from support.frames_for_tests import EVENTS, RATED, events, ratings
from support.same_model import assert_same_model
from topnrank.data.frames import Columns
from topnrank.models.factor.run import data_digest
from topnrank.models.recent_popularity import item_popularity
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.jobs import popularity as counting
from topnrank.spark.jobs import prepare as preparing
from topnrank.spark.jobs.popularity import item_popularity_of_blocks
from topnrank.spark.jobs.train import HeldOut, train_on_blocks

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
SMALL = {"factors": 4, "epochs": 4, "learning_rate": 0.5, "batch_size": 20}


def halves(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    held_out = np.random.default_rng(5).random(len(frame)) < 0.4
    return frame[~held_out], frame[held_out]


@pytest.fixture
def blocks(spark):
    train, test = halves(ratings())
    data = SparkInteractions.from_frame(spark.createDataFrame(train), RATED, blocks=3)
    yield data, HeldOut(spark.createDataFrame(test), RATED)
    data.unpersist()


@pytest.mark.parametrize("users", ["history", "factors"])
def test_early_stopping_is_that_of_one_machine(blocks, users):
    data, held_out = blocks
    local = tnr.TopNRank(task="rated", user_representation=users, **SMALL)
    distributed = train_on_blocks(local, data, validation=held_out, metric="ndcg@5", patience=1)
    train, test = (tnr.Interactions.from_frame(frame, columns=RATED) for frame in halves(ratings()))
    theirs = local.fit(train, validation=test, metric="ndcg@5", patience=1)
    ours = distributed.to_local()
    assert ours.best_round_ == theirs.best_round_
    assert [record["ndcg@5"] for record in ours.history_] == pytest.approx(
        [record["ndcg@5"] for record in theirs.history_], abs=1e-6
    )
    assert ours.fitted.info.validation == pytest.approx(theirs.fitted.info.validation)
    assert_same_model(ours, theirs)
    distributed.unpersist()


def test_an_estimator_holds_out_the_rows_of_an_indicator_column(spark, blocks):
    data, held_out = blocks
    train, test = halves(ratings())
    both = pd.concat([train.assign(held_out=False), test.assign(held_out=True)], ignore_index=True)
    model = on_spark.TopNRank(
        task="rated", **SMALL, numBlocks=3, timestampCol="timestamp", validationIndicatorCol="held_out", patience=1
    ).fit(spark.createDataFrame(both))
    expected = train_on_blocks(tnr.TopNRank(task="rated", **SMALL), data, validation=held_out, patience=1)
    ours, theirs = model.to_local(), expected.to_local()
    assert ours.history_ == theirs.history_
    for name, array in theirs.fitted.arrays.items():
        np.testing.assert_array_equal(ours.fitted.arrays[name], array, err_msg=name)
    with pytest.raises(tnr.DataError, match=r"no column 'none' \(given as validationIndicatorCol\)"):
        on_spark.TopNRank(task="rated", **SMALL, validationIndicatorCol="none").fit(spark.createDataFrame(both))


def test_what_cannot_be_validated_is_refused(spark, blocks):
    data, held_out = blocks
    relevant = HeldOut(held_out.frame.where("rating >= 4"), RATED)
    with pytest.raises(tnr.DataError, match="held-out rows are relevant"):
        train_on_blocks(tnr.TopNRank(task="rated", **SMALL), data, validation=relevant)
    with pytest.raises(tnr.ParameterError, match="patience must be an integer"):
        train_on_blocks(tnr.TopNRank(task="rated", **SMALL), data, validation=held_out, patience=0)
    with pytest.raises(tnr.ParameterError, match="EASE is not trained in rounds"):
        train_on_blocks(tnr.EASE(), data, validation=held_out)


def test_a_checkpoint_of_one_machine_is_resumed_in_the_cluster(blocks, tmp_path):
    data, _ = blocks
    train = tnr.Interactions.from_frame(halves(ratings())[0], columns=RATED)
    theirs = tnr.TopNRank(task="rated", **SMALL).fit(train, checkpoint=tmp_path)
    seen = []

    class Watch:
        def after_round(self, engine, round_):
            seen.append(round_)
            return False

    distributed = train_on_blocks(tnr.TopNRank(task="rated", **SMALL), data, str(tmp_path), callbacks=[Watch()])
    assert not seen  # it was finished
    assert_same_model(distributed.to_local(), theirs)
    with pytest.raises(tnr.ModelFileError, match="belongs to another run"):
        train_on_blocks(tnr.TopNRank(task="rated", **SMALL | {"factors": 5}), data, str(tmp_path))


@pytest.mark.parametrize(("make", "columns"), [(ratings, RATED), (events, EVENTS)])
def test_the_digest_of_rows_does_not_depend_on_blocks(spark, make, columns):
    whole = data_digest(tnr.Interactions.from_frame(make(), columns=columns))
    data = SparkInteractions.from_frame(spark.createDataFrame(make()), columns, blocks=4)
    n_items, names = data.n_items, data.type_names
    parts = data.blocks.map(lambda block: data_digest(block.interactions(n_items, names), block.first)).collect()
    assert sum(parts) % 2**64 == whole
    data.unpersist()


@pytest.mark.parametrize("columns", [RATED, Columns(user="user", item="item")], ids=["times", "no times"])
def test_popularity_is_that_of_one_machine(spark, columns):
    expected = item_popularity(tnr.Interactions.from_frame(faded(), columns=columns))
    assert (expected.half_life is None) == (columns.timestamp is None)
    for blocks in (1, 3):
        data = SparkInteractions.from_frame(spark.createDataFrame(faded()), columns, blocks=blocks)
        found = item_popularity_of_blocks(data)
        data.unpersist()
        assert found.half_life == expected.half_life
        assert_allclose(found.scores, expected.scores, rtol=1e-5)


def faded() -> pd.DataFrame:
    """The ratings, the upper items early and the lower ones late, so that the latest rows are ranked best by late ones."""
    frame = ratings()
    late = np.random.default_rng(7).random(len(frame)) * 0.5 + 0.5 * (frame["item"] < 0)
    return frame.assign(timestamp=(late * 1e8).astype(int))


def test_a_half_life_chosen_by_some_users_does_not_depend_on_blocks(spark, monkeypatch):
    monkeypatch.setattr(counting, "MOST_ROWS", 300)
    drawn = []
    for blocks in (1, 4):
        data = SparkInteractions.from_frame(spark.createDataFrame(ratings()), RATED, blocks=blocks)
        n_items = data.n_items
        parts = data.blocks.map(lambda block, n=n_items: counting._drawn(counting._pairs(block, n), 0.5)).collect()
        drawn.append([np.concatenate(columns) for columns in zip(*parts, strict=True)])
        assert item_popularity_of_blocks(data).scores.shape == (n_items,)
        data.unpersist()
    assert 0 < len(np.unique(drawn[0][0])) < 40
    for one, other in zip(*drawn, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "local", [tnr.TopNRank(task="rated", **SMALL), tnr.TopNRank(task="catalog", sessions=5.0, **SMALL)]
)
def test_each_block_is_prepared_once(spark, blocks, monkeypatch, local):
    data, _ = blocks
    calls, prepare = spark.sparkContext.accumulator(0), preparing._prepare

    def counted(*arguments):
        calls.add(1)
        return prepare(*arguments)

    monkeypatch.setattr(preparing, "_prepare", counted)
    train_on_blocks(local, data).unpersist()
    assert calls.value == data.n_blocks
