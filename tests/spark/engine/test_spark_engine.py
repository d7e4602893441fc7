"""Training on a real cluster gives the CPU engine's model, for every model, any number of blocks and both item sides."""

import json
import shutil
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from support.same_model import assert_same_model
from support.settings import settings
from topnrank.engines import make_engine
from topnrank.models.factor.model import FactorModel
from topnrank.models.factor.prepare import prepare
from topnrank.models.registry import MODELS

DATA = tnr.synthetic(60, 25, seed=4)
LENGTH = {"epochs": 1, "batch_size": 35, "factors": 4}
ROUTED = {"broadcastLimit": 1}
REDUCED = {"reduceLimit": 1}


def fit_both(model, data=DATA):
    return model.set_params(engine="spark").fit(data), type(model)(**model.get_params() | {"engine": "cpu"}).fit(data)


@pytest.mark.parametrize("name", sorted(name for name, kind in MODELS.items() if issubclass(kind, FactorModel)))
def test_every_model(spark, name):
    with settings(spark, blocks=3):
        assert_same_model(*fit_both(MODELS[name](**LENGTH)))


CASES = {
    "history, one block": (tnr.TopNRank(task="rated", **LENGTH), {"blocks": 1}),
    "history, more blocks than users": (tnr.TopNRank(task="rated", **LENGTH), {"blocks": 70}),
    "history, reduced": (tnr.TopNRank(task="rated", **LENGTH), {"blocks": 3} | REDUCED),
    "factors, more blocks than users": (
        tnr.TopNRank(task="rated", user_representation="factors", **LENGTH),
        {"blocks": 70},
    ),
    "factors, routed": (tnr.TopNRank(task="rated", user_representation="factors", **LENGTH), {"blocks": 3} | ROUTED),
    "paper, reduced": (
        tnr.TopNRank.paper(factors=4, iterations=2, tolerance=0.0, batch_size=0.5),
        {"blocks": 2} | REDUCED,
    ),
    "catalog, routed": (tnr.TopNRank(task="catalog", **LENGTH), {"blocks": 3} | ROUTED),
    "sampled, routed": (tnr.BPR(negatives=4, **LENGTH), {"blocks": 2} | ROUTED),
}


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_blocks_and_both_item_sides(spark, case):
    model, given = CASES[case]
    with settings(spark, **given):
        assert_same_model(*fit_both(model))


@pytest.mark.parametrize("given", [{}, ROUTED], ids=["broadcast", "routed"])
def test_lineage_is_cut_with_a_checkpoint_directory_and_without(spark, given, tmp_path):
    model = tnr.TopNRank(task="rated", user_representation="factors", **LENGTH | {"epochs": 2})
    with settings(spark, blocks=2, checkpointInterval=2, **given):
        ours, theirs = fit_both(model)
        assert_same_model(ours, theirs)
        spark.sparkContext.setCheckpointDir(tmp_path.as_uri())
        try:
            again = type(model)(**model.get_params()).fit(DATA)
        finally:
            spark.sparkContext._jsc.sc().setCheckpointDir(None)
    assert any(path.name.startswith("rdd-") for path in tmp_path.rglob("*"))
    for name, array in ours.fitted.arrays.items():
        assert_array_equal(again.fitted.arrays[name], array)  # the same number of blocks: the same bits


def test_a_checkpoint_directory_that_is_not_shared_is_named_before_training(spark):
    """Below /proc/self/cwd every process has a folder of its own."""
    spark.sparkContext.setCheckpointDir("file:///proc/self/cwd/topnrank-checkpoints-of-one-node")
    own = Path(spark.sparkContext.getCheckpointDir().removeprefix("file:"))
    try:
        with pytest.raises(tnr.ParameterError, match="storage that all nodes share"):
            tnr.TopNRank(task="rated", engine="spark", **LENGTH).fit(DATA)
    finally:
        spark.sparkContext._jsc.sc().setCheckpointDir(None)
        shutil.rmtree(own.parent, ignore_errors=True)


def test_stages_have_names_in_sparks_pages_and_other_jobs_keep_theirs(spark):
    context = spark.sparkContext
    context.setJobDescription("the caller's own")
    tnr.TopNRank(task="rated", engine="spark", **LENGTH).fit(DATA)
    assert context.getLocalProperty("spark.job.description") == "the caller's own"
    context.setLocalProperty("spark.job.description", None)
    with urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages") as answer:
        described = {stage.get("description") for stage in json.load(answer)}
    assert "topnrank: iteration 1, 35 users" in described


def test_rows_travel_only_where_they_are_needed(spark):
    """Two users of a large catalog need the rows of their own items, not all of them."""
    n_items = 5000
    users, items = np.repeat([0, 1], 6), np.r_[np.arange(6), 10 + np.arange(6)]
    far = np.r_[users, np.full(2, 2)], np.r_[items, [n_items - 2, n_items - 1]]
    data = tnr.Interactions.from_arrays(*far, ratings=np.tile([1.0, 5.0], 7))
    recipe = tnr.TopNRank(task="rated", factors=8).resolve(data)
    prepared = prepare(data, recipe.feedback, recipe.selection)
    problem = recipe.problem(prepared.rows, prepared.frozen)
    with settings(spark, blocks=2, **ROUTED):
        engine = make_engine("spark", problem, recipe.start_state(data.n_users, data.n_items))
        engine.step(np.array([0]))
    row = 4 * (3 * 8 + 1) + 4  # three vectors of 8 floats, a bias, and the item's number
    assert engine.traffic.down == 6 * row


def test_validation_and_callbacks_work_as_on_one_machine(spark):
    seen = []

    class Watch:
        def after_round(self, engine, round_):
            seen.append(engine.state.parameters["item_factors"].copy())
            return False

    train, held_out = tnr.split_per_user(DATA, test=0.3, seed=1)
    fits = {"validation": held_out, "patience": 2, "callbacks": [Watch()]}
    with settings(spark, blocks=2):
        ours = tnr.TopNRank(task="rated", engine="spark", **LENGTH).fit(train, **fits)
    theirs = tnr.TopNRank(task="rated", **LENGTH).fit(train, **fits)
    assert ours.best_round_ == theirs.best_round_
    assert len(seen) == 2
    assert_allclose(seen[0], seen[1], atol=1e-5)


@pytest.mark.realdata
@pytest.mark.parametrize("users", ["history", "factors"])
def test_movielens_1m_gives_the_model_and_the_metrics_of_one_machine(spark, realdata, users):
    train, test = tnr.split_per_user(tnr.read(realdata / "ml-1m.parquet"), seed=0)
    ours, theirs = fit_both(
        tnr.TopNRank(task="rated", user_representation=users, factors=10, epochs=2, batch_size=0.5), train
    )
    assert_same_model(ours, theirs)
    metrics = ["ndcg@10", "map@10"]
    expected = tnr.evaluate(theirs, test, metrics=metrics)
    found = tnr.evaluate(ours, test, metrics=metrics)
    assert [found[name] for name in metrics] == pytest.approx([expected[name] for name in metrics], abs=1e-4)
