"""Estimators and Models of `pyspark.ml`: parameters, pipelines, files, and the results of the local classes."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

import topnrank
import topnrank.spark as on_spark
from support.frames_for_tests import EVENTS, RATED, collected, events, ratings
from topnrank import DataError, EventWeights, Interactions, ModelFileError, OutputError, ParameterError, evaluate
from topnrank.models.registry import SPARK_MODELS
from topnrank.spark.ml.estimators import ESTIMATOR_CLASSES
from topnrank.spark.ml.models import MODEL_CLASSES
from topnrank.spark.ml.params import NOT_ON_SPARK, SHARED

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:this model learned to rank the items"),
]
SMALL = {"factors": 4, "epochs": 2, "num_threads": 1}
COLUMNS = {"userCol": "who", "itemCol": "what", "ratingCol": "stars", "timestampCol": "when"}


def renamed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"user": "who", "item": "what", "rating": "stars", "timestamp": "when"})


@pytest.fixture(scope="module")
def frame():
    return ratings()


@pytest.fixture(scope="module")
def data(spark, frame):
    return spark.createDataFrame(renamed(frame)).persist()


@pytest.fixture(scope="module")
def model(data):
    return on_spark.TopNRank(task="rated", **SMALL, **COLUMNS, numBlocks=3).fit(data)


@pytest.fixture(scope="module")
def local(model):
    return model.to_local()


def same_model(found, expected, tolerance=0.0) -> bool:
    """The same arrays, bit for bit, or with a tolerance to sums in another order."""
    arrays = expected.fitted.arrays
    close = {"rtol": tolerance, "atol": tolerance}
    equal = all(np.allclose(found.fitted.arrays[name], array, **close) for name, array in arrays.items())
    ids = (
        found.user_ids_.tolist() == expected.user_ids_.tolist()
        and found.item_ids_.tolist() == expected.item_ids_.tolist()
    )
    return equal and ids and found.fitted.arrays.keys() == arrays.keys()


def test_there_is_a_pair_of_classes_for_every_model():
    assert set(ESTIMATOR_CLASSES) == set(MODEL_CLASSES) == set(SPARK_MODELS.values())
    for kind in SPARK_MODELS.values():
        estimator, made = getattr(on_spark, kind.__name__), getattr(on_spark, f"{kind.__name__}Model")
        names = {param.name for param in estimator().params}
        assert names == {*kind().get_params(), *SHARED} - set(NOT_ON_SPARK)
        assert names == {param.name for param in made().params}
        assert {name: estimator().getOrDefault(name) for name in estimator().local_names()}.items() <= (
            kind().get_params().items()
        )
    assert {"TopNRank", "TopNRankModel", "RankingEvaluator", "get_session"} <= set(dir(on_spark))
    for name in ("Nothing", "SequenceRank"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(on_spark, name)


def test_importing_the_package_does_not_import_pyspark():
    script = "import sys, topnrank, topnrank.spark; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_parameters_keep_the_rules_of_the_local_class():
    with pytest.raises(ParameterError, match="factors must be"):
        on_spark.TopNRank(factors=0)
    with pytest.raises(ParameterError, match="TopNRank has no parameter 'factor'"):
        on_spark.TopNRank(factor=3)
    with pytest.raises(ParameterError, match="coldStartStrategy must be one of 'nan', 'drop'"):
        on_spark.TopNRank(coldStartStrategy="zero")
    estimator = on_spark.TopNRank(factors=7).setUserCol("who").setParams(n=5)
    assert (estimator.getUserCol(), estimator.getOrDefault("n"), estimator.local_model().factors) == ("who", 5, 7)
    other = estimator.copy({estimator.factors: 9})
    assert (other.local_model().factors, other.local_model().n, estimator.local_model().factors) == (9, 5, 7)
    assert "see topnrank.TopNRank.factors" in estimator.explainParam("factors")


def test_a_model_trained_in_the_cluster_is_the_one_of_one_machine(model, local, frame):
    trained = topnrank.TopNRank(task="rated", **SMALL).fit(Interactions.from_frame(frame, columns=RATED))
    assert same_model(local, trained, tolerance=1e-5)
    other = {"fingerprint": "", "history": [], "residual_mean": None}
    assert replace(local.fitted.info, **other) == replace(trained.fitted.info, **other)
    assert (model.rank, model.getOrDefault("factors"), model.getUserCol()) == (4, 4, "who")


def test_transform_adds_scores(spark, model, local, frame):
    rows = spark.createDataFrame(renamed(frame)).limit(20).union(spark.sql("SELECT 'x', 0L, 1D, 0L"))
    found = model.transform(rows)
    assert found.columns == ["who", "what", "stars", "when", "prediction"]
    table = collected(found)
    known = table["who"] != "x"
    np.testing.assert_array_equal(
        table["prediction"][known], local.score(table["who"][known].tolist(), table["what"][known].tolist())
    )
    assert table["prediction"][~known].isna().tolist() == [True]
    assert model.copy({model.coldStartStrategy: "drop"}).transform(rows).count() == 20


def test_lists_have_the_form_of_als(spark, model, local):
    found = model.recommendForAllUsers(3)
    assert found.schema.simpleString() == ("struct<who:string,recommendations:array<struct<what:bigint,rating:float>>>")
    expected = local.recommend(n=3).to_pandas()
    lists = {row["who"]: [(one["what"], one["rating"]) for one in row["recommendations"]] for row in found.collect()}
    assert lists == {user: list(zip(own["item"], own["score"], strict=True)) for user, own in expected.groupby("user")}
    users = spark.createDataFrame([(local.user_ids_[1],), ("nobody",)], "who string")
    (row,) = model.recommendForUserSubset(users, 2, exclude_seen=False).collect()
    assert [one["what"] for one in row["recommendations"]] == (
        local.recommend(local.user_ids_[1], n=2, exclude_seen=False)["item"].to_pylist()
    )


def test_vectors_are_those_of_the_local_model(model, local):
    for found, ids, vectors in (
        (model.itemFactors, local.item_ids_, local.item_factors_),
        (model.userFactors, local.user_ids_, local.user_factors_),
    ):
        rows = {row["id"]: row["features"] for row in found.collect()}
        np.testing.assert_array_equal(np.array([rows[one] for one in ids.tolist()], np.float32), vectors)


def test_models_without_vectors_say_so(data):
    popular = on_spark.Popularity(**COLUMNS).fit(data)
    with pytest.raises(ParameterError, match="PopularityModel has no vectors"):
        _ = popular.itemFactors
    assert popular.recommend(n=1).columns == ["who", "what", "score", "rank"]


def test_evaluate_is_that_of_one_machine(model, local, data, frame):
    expected = evaluate(local, Interactions.from_frame(frame, columns=RATED), metrics="map@3")
    found = model.evaluate(data, metrics="map@3")
    assert found["map@3"] == pytest.approx(expected["map@3"], rel=1e-12)


def test_a_saved_model_opens_with_and_without_spark(spark, model, local, tmp_path):
    path = (tmp_path / "saved").as_uri()
    model.write().save(path)
    assert same_model(topnrank.load(tmp_path / "saved" / "model.safetensors"), local)
    again = on_spark.TopNRankModel.load(path)
    assert again.uid == model.uid
    assert {param.name: value for param, value in again._paramMap.items()}.items() >= {**SMALL, **COLUMNS}.items()
    assert same_model(again.to_local(), local)
    assert again.recommend(n=2).count() == model.recommend(n=2).count()
    with pytest.raises(OutputError, match=r"is there already; .*overwrite\(\)"):
        model.save(path)
    model.write().overwrite().save(path)
    with pytest.raises(ModelFileError, match=r"holds a topnrank\.spark\.ml\.models\.TopNRankModel"):
        on_spark.BPRModel.load(path)


def test_a_model_of_the_library_becomes_one_of_spark(spark, local, tmp_path):
    local.save(tmp_path / "m.safetensors")
    for given in (local, tmp_path / "m.safetensors", (tmp_path / "m.safetensors").as_uri()):
        made = on_spark.TopNRankModel.from_local(given, spark)
        assert same_model(made.to_local(), local)
        assert made.getOrDefault("factors") == 4
    assert made.recommend(n=2).count() == 2 * len(local.user_ids_)
    with pytest.raises(ParameterError, match="the model is a TopNRank; use TopNRankModel"):
        on_spark.BPRModel.from_local(local, spark)
    with pytest.raises(ModelFileError, match="there is no such model file"):
        on_spark.TopNRankModel.from_local(tmp_path / "none", spark)


def test_an_estimator_is_saved_with_objects_among_its_parameters(spark, tmp_path):
    weights = EventWeights({"buy": 1.0, "view": 0.1})
    estimator = on_spark.TopNRank(feedback=weights, optimizer=topnrank.AdaGrad(3.0), regularization={"item": 0.5})
    estimator.save((tmp_path / "e").as_uri())
    again = on_spark.TopNRank.load((tmp_path / "e").as_uri())
    assert again.local_values() == estimator.local_values()
    assert again.uid == estimator.uid


@pytest.mark.parametrize("sessions", [None, 20.0])
def test_events_without_ratings(spark, sessions):
    log = events()
    weights = EventWeights({"buy": 1.0, "view": 0.1, "dislike": -1.0})
    settings = {"task": "catalog", "feedback": weights, "sessions": sessions, **SMALL}
    local = topnrank.TopNRank(**settings)
    local.fit(Interactions.from_frame(log, columns=EVENTS))
    estimator = on_spark.TopNRank(**settings, eventCol="type", timestampCol="timestamp")
    assert same_model(estimator.fit(spark.createDataFrame(log)).to_local(), local, tolerance=1e-5)


def test_a_pipeline_is_fitted_saved_and_loaded(data, local, tmp_path):
    pipeline = Pipeline(stages=[on_spark.TopNRank(task="rated", **SMALL, **COLUMNS)])
    path = (tmp_path / "pipeline").as_uri()
    pipeline.write().overwrite().save(path)
    fitted = Pipeline.load(path).fit(data)
    fitted.save(f"{path}-model")
    again = PipelineModel.load(f"{path}-model")
    assert same_model(again.stages[0].to_local(), local, tolerance=1e-5)  # other blocks
    assert again.transform(data).where("isnan(prediction)").count() == 0


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")  # CrossValidator's own
@pytest.mark.parametrize("ours", [True, False])
def test_cross_validation_picks_the_better_model(data, ours):
    estimator = on_spark.TopNRank(task="rated", **SMALL, **COLUMNS, coldStartStrategy="drop")
    grid = ParamGridBuilder().addGrid(estimator.learning_rate, [1e-6, 0.1]).build()
    evaluator = (
        on_spark.RankingEvaluator(metricName="ndcg@5", userCol="who", itemCol="what", labelCol="stars")
        if ours
        else RegressionEvaluator(labelCol="stars")
    )
    search = CrossValidator(estimator=estimator, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=1)
    found = search.fit(data)
    better = np.argmax(found.avgMetrics) if ours else np.argmin(found.avgMetrics)
    assert found.avgMetrics[0] != found.avgMetrics[1]
    assert found.bestModel.getOrDefault("learning_rate") == [1e-6, 0.1][better]
    if ours:
        assert better == 1


@pytest.mark.parametrize("metric", ["ndcg@5", "ndcg_graded@3", "err@4", "auc", "map"])
def test_the_evaluator_gives_the_numbers_of_evaluate(spark, model, local, frame, metric):
    stranger = frame.head(2).assign(item=[9998, 9999], rating=[5.0, 1.0])  # without a score, so they rank last
    rows = pd.concat([frame, stranger], ignore_index=True)
    expected = evaluate(local, Interactions.from_frame(rows, columns=RATED), metrics=metric)[metric]
    evaluator = on_spark.RankingEvaluator(metricName=metric, userCol="who", itemCol="what", labelCol="stars")
    scored = model.transform(spark.createDataFrame(renamed(rows)))
    assert evaluator.evaluate(scored) == pytest.approx(expected, rel=1e-12)


def test_the_evaluator_refuses_what_it_cannot_measure(data):
    with pytest.raises(ParameterError, match="coverage@5 needs the model"):
        on_spark.RankingEvaluator(metricName="coverage@5")
    evaluator = on_spark.RankingEvaluator(userCol="who", itemCol="what", labelCol="stars")
    with pytest.raises(DataError, match="no column 'prediction'"):
        evaluator.evaluate(data)


def test_bad_data_is_refused_before_training(spark):
    rows = spark.sql("SELECT 'a' user, 1 item, double('nan') rating")
    with pytest.raises(DataError, match="column 'rating': must be a finite number, but 1 of 1 rows"):
        on_spark.TopNRank().fit(rows)
    with pytest.raises(DataError, match="no column 'who'"):
        on_spark.TopNRank(userCol="who").fit(rows)


def test_a_model_is_saved_on_hdfs(spark, hdfs, model, local):
    path = f"{hdfs.address}/models/films"
    model.save(path)
    model.write().overwrite().save(path)
    assert same_model(on_spark.TopNRankModel.load(path).to_local(), local)
    assert same_model(on_spark.TopNRankModel.from_local(f"{path}/model.safetensors", spark).to_local(), local)
