"""Recommending, scoring and evaluating in the cluster give what one machine gives."""

import numpy as np
import pandas as pd
import pytest

import topnrank
from support.frames_for_tests import EVENTS, RATED, collected, events, ratings
from topnrank import (
    ConversionRate,
    DataError,
    EventWeights,
    Interactions,
    ParameterError,
    TopNRank,
    UnknownIdError,
    evaluate,
)
from topnrank.data.feedback.by_name import feedback_from
from topnrank.evaluation import METRICS
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters
from topnrank.spark.jobs.evaluate import EvaluationOptions, evaluate_blocks
from topnrank.spark.jobs.prepare import prepare_blocks
from topnrank.spark.jobs.recommend import recommend_blocks
from topnrank.spark.jobs.score import score_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:this model learned to rank the items"),
]
WEIGHTS = EventWeights({"buy": 1.0, "view": 0.1, "dislike": -1.0})
ROLES = {"user": "user", "item": "item", "output": "s"}
SMALL = {"factors": 4, "epochs": 2, "num_threads": 1}
EVERY_METRIC = [name if name == "auc" else f"{name}@5" for name in METRICS] + ["ndcg", "coverage@2", "novelty@20"]


def halves(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows; the test rows know a user and two items more, and that user gives the highest rating."""
    held_out = np.random.default_rng(5).random(len(frame)) < 0.4
    unknown_users = frame.head(3).assign(
        user=["new", "new", frame["user"].iloc[0]], item=[frame["item"].iloc[1], 5000, 5001]
    )
    if "rating" in frame:
        unknown_users["rating"] = [6.0, 1.0, 5.0]
    return frame[~held_out], pd.concat([frame[held_out], unknown_users], ignore_index=True)


def table(lists: pd.DataFrame) -> pd.DataFrame:
    return lists.sort_values(["user", "rank"], ignore_index=True)


@pytest.fixture(scope="module")
def rated():
    return halves(ratings())


@pytest.fixture(scope="module")
def model(rated):
    return TopNRank(task="rated", **SMALL).fit(Interactions.from_frame(rated[0], columns=RATED))


@pytest.fixture(scope="module")
def distributed(spark, model):
    found = DistributedModel.of_local(model, spark)
    assert found.n_blocks == 2
    yield found
    found.unpersist()


def test_all_users_get_the_lists_of_one_machine(distributed, model):
    found = collected(recommend_blocks(distributed, n=7))
    pd.testing.assert_frame_equal(table(found), table(model.recommend(n=7).to_pandas()), check_dtype=False)


def test_some_users_and_options_give_the_lists_of_one_machine(spark, distributed, model):
    users = [model.user_ids_[3], model.user_ids_[30], model.user_ids_[31]]
    items = model.item_ids_
    options = {
        "exclude_seen": False,
        "items": items[:20].tolist(),
        "exclude": [str(items[2])],
        "min_score": -0.5,
        "groups": {int(item): int(item) % 2 for item in items},
        "max_per_group": 3,
    }
    asked = spark.createDataFrame([(user,) for user in [*users, users[0]]], "who string")
    found = collected(recommend_blocks(distributed, asked, user_column="who", n=5, **options))
    pd.testing.assert_frame_equal(
        table(found), table(model.recommend(users, n=5, **options).to_pandas()), check_dtype=False
    )


def test_unknown_users_are_an_error_or_left_out(spark, distributed, model):
    asked = spark.createDataFrame([(model.user_ids_[0],), ("nobody",)], "user string")
    with pytest.raises(UnknownIdError, match="does not know 1 of the users, for example 'nobody'"):
        recommend_blocks(distributed, asked)
    assert recommend_blocks(distributed, asked, n=3, unknown="skip").count() == 3


def test_wishes_that_cannot_be_met_are_refused(spark, distributed):
    with pytest.raises(UnknownIdError, match="does not know item 12345"):
        recommend_blocks(distributed, exclude=[12345])
    with pytest.raises(ParameterError, match="items by user is not possible on Spark"):
        recommend_blocks(distributed, items={"u0": [1]})
    with pytest.raises(ParameterError, match="an option"):
        recommend_blocks(distributed, histories={})
    with pytest.raises(ParameterError, match="no column 'user', only 'id'"):
        recommend_blocks(distributed, spark.range(1))


def test_scores_of_pairs_are_those_of_one_machine(spark, distributed, model, rated):
    _, test = rated
    found = collected(score_rows(distributed, spark.createDataFrame(test), **ROLES, drop=False))
    assert list(found.columns) == [*test.columns, "s"]
    known = found["user"].isin(model.user_ids_) & found["item"].isin(model.item_ids_)
    assert (len(found), int(known.sum())) == (len(test), len(test) - 3)
    assert found["s"][~known].isna().all()
    expected = model.score(found["user"][known].tolist(), found["item"][known].tolist())
    np.testing.assert_array_equal(found["s"][known], expected)
    assert score_rows(distributed, spark.createDataFrame(test), **ROLES, drop=True).count() == known.sum()


def test_rows_that_are_others_each_time_they_are_read_have_the_scores_of_their_own(spark, distributed, model):
    items = ", ".join(f"{item}L" for item in model.item_ids_)
    drawn = spark.range(100).selectExpr(
        f"'{model.user_ids_[5]}' AS user",
        f"element_at(array({items}), 1 + int(30 * rand())) AS item",
        "map('a', id) AS other",
    )
    found = collected(score_rows(distributed, drawn, **ROLES, drop=False))
    np.testing.assert_array_equal(found["s"], model.score(model.user_ids_[5], found["item"].tolist()))
    assert sorted(dict(pairs)["a"] for pairs in found["other"]) == list(range(100))


@pytest.mark.parametrize(
    "arguments",
    [
        {"protocol": "rated", "metrics": EVERY_METRIC},
        {"protocol": "catalog", "metrics": EVERY_METRIC, "relevant": 3.0},
        {"protocol": "catalog", "metrics": ["auc", "err"], "exclude_seen": False, "relevant": None},
    ],
)
def test_evaluation_gives_the_numbers_of_one_machine(spark, distributed, model, rated, arguments):
    expected = evaluate(model, Interactions.from_frame(rated[1], columns=RATED), **arguments)
    question = EvaluationOptions(**arguments, per_user=True)
    found = evaluate_blocks(distributed, spark.createDataFrame(rated[1]).repartition(3), RATED, question)
    assert found.values == pytest.approx(expected.values, rel=1e-12)
    assert found.convention == expected.convention
    assert found.to_dict().keys() == expected.to_dict().keys()
    for name in ("n_users", "n_excluded", "n_unknown_users", "n_unknown_items", "n_seen", "undefined"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.per_user.items():
        np.testing.assert_array_equal(found.per_user[name], values)


def test_values_of_users_are_not_collected_unless_asked_for(spark, distributed, rated):
    found = evaluate_blocks(distributed, spark.createDataFrame(rated[1]), RATED)
    assert (found.per_user, len(found.user_ids)) == ({}, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"user": "nobody"},
            "no user of the test data is known to the model: .* such as 'nobody', the model users such",
        ),
        ({"item": 7000}, "no item of the test data is known to the model: .* such as 7000, the model items such as"),
        ({"rating": 2.0}, "rating >= 4, four fifths of the scale 1 to 5: values lie between 2 and 2"),
    ],
)
def test_test_rows_that_say_nothing_are_refused(spark, distributed, rated, change, message):
    test = rated[1].assign(**change).drop_duplicates(["user", "item"])
    with pytest.raises(DataError, match=message):
        evaluate_blocks(distributed, spark.createDataFrame(test), RATED)


def test_training_rows_and_repeated_rows_are_no_test_rows(spark, distributed, rated):
    train = spark.createDataFrame(rated[0])
    with pytest.raises(DataError, match="every test row is also a training row"):
        evaluate_blocks(distributed, train, RATED, EvaluationOptions(protocol="catalog"))
    with pytest.raises(DataError, match="must occur once"):
        evaluate_blocks(distributed, train.union(train), RATED)


MODELS = {
    "factors": TopNRank(task="rated", user_representation="factors", **SMALL),
    "catalog": TopNRank(task="catalog", recency=5.0, **SMALL),
    "random": topnrank.Random(),
    "ease by users": topnrank.EASE(max_items=25),
    "neighbors": topnrank.NeighborRidge(neighbors=5),
    "item mean": topnrank.ItemMean(),
    "order": topnrank.NextItemRidge(
        neighbors=5,
        decays=[0.0, 0.8],
        regularization=5.0,
        transitions=0.1,
        distance_power=1.0,
        smoothing=0.3,
        popularity=-0.1,
        head_share=0.8,
        head_decay=0.6,
    ),
    "item ids": topnrank.ItemIdOrder(),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_scores_as_on_one_machine(spark, name):
    frame = ratings(n_users=20) if name == "ease by users" else ratings()
    train, test = halves(frame)
    model = MODELS[name].fit(Interactions.from_frame(train, columns=RATED))
    distributed = DistributedModel.of_local(model, spark)
    expected = evaluate(model, Interactions.from_frame(test, columns=RATED), protocol="catalog", metrics="ndcg@5")
    question = EvaluationOptions(protocol="catalog", metrics="ndcg@5", per_user=True)
    found = evaluate_blocks(distributed, spark.createDataFrame(test), RATED, question)
    np.testing.assert_array_equal(found.per_user["ndcg@5"], expected.per_user["ndcg@5"])
    lists = collected(recommend_blocks(distributed, n=3))
    pd.testing.assert_frame_equal(table(lists), table(model.recommend(n=3).to_pandas()), check_dtype=False)
    distributed.unpersist()


def from_prepared_blocks(model, data):
    """The items' part of a local model, beside the users' part made of prepared blocks."""
    prepared = prepare_blocks(data, feedback_from(model.recipe_.feedback, model_rows(data)), model.recipe_)
    return DistributedModel.of_blocks(ItemParameters.of(model), data, prepared.blocks, model.recipe_.scorer)


def model_rows(data):
    return data.blocks.first().interactions(data.n_items, data.type_names)


@pytest.mark.parametrize(
    "local",
    [
        TopNRank(task="rated", **SMALL),
        TopNRank(task="catalog", recency=5.0, **SMALL),
        TopNRank(task="catalog", sessions=5.0, **SMALL),
        topnrank.XCLiMF(**SMALL),
    ],
)
def test_users_parts_made_of_training_blocks_are_those_of_fit(spark, local):
    """Item parameters and the prepared blocks of training rows are enough: nothing of the users is collected."""
    train, _ = halves(ratings())
    data = SparkInteractions.from_frame(spark.createDataFrame(train), RATED, blocks=3)
    model = local.fit(Interactions.from_frame(train, columns=RATED))
    distributed = from_prepared_blocks(model, data)
    again = distributed.to_local()
    assert distributed.local is None
    assert again.fitted.arrays.keys() == model.fitted.arrays.keys()
    for name, array in model.fitted.arrays.items():
        np.testing.assert_array_equal(again.fitted.arrays[name], array, err_msg=name)
    np.testing.assert_array_equal(again.fitted.indices, model.fitted.indices)
    assert again.recommend(n=3).equals(model.recommend(n=3))
    data.unpersist()
    distributed.unpersist()


@pytest.mark.parametrize("policy", [WEIGHTS, ConversionRate(target="buy")])
def test_events_weigh_in_the_cluster_what_they_weighted_in_training(spark, policy):
    train, test = halves(events())
    again = train.assign(type="view")
    train = pd.concat([train[train["type"] != "view"], again], ignore_index=True)
    local = TopNRank(task="rated", feedback=policy, type_vectors=True, **SMALL)
    model = local.fit(Interactions.from_frame(train, columns=EVENTS))
    data = SparkInteractions.from_frame(spark.createDataFrame(train), EVENTS, blocks=3)
    if policy is WEIGHTS:
        distributed = from_prepared_blocks(model, data)
    else:
        distributed = DistributedModel.of_local(model, spark, like=data)
    np.testing.assert_array_equal(
        distributed.to_local().fitted.arrays["seen_values"], model.fitted.arrays["seen_values"]
    )
    expected = evaluate(model, model.weigh(Interactions.from_frame(test, columns=EVENTS)), metrics="ndcg@3")
    found = evaluate_blocks(
        distributed, spark.createDataFrame(test), EVENTS, EvaluationOptions(metrics="ndcg@3", per_user=True)
    )
    np.testing.assert_array_equal(found.per_user["ndcg@3"], expected.per_user["ndcg@3"])
    assert found.convention == expected.convention
    data.unpersist()
    distributed.unpersist()
