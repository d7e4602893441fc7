"""Who and what is counted, and the errors."""

import json
import warnings

import numpy as np
import pytest

from support.fixed_ranker import FixedRanker
from topnrank.data.feedback.liked import LikedRule
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, DivergenceError, ParameterError, TopNRankWarning
from topnrank.evaluation import evaluate

pytestmark = pytest.mark.filterwarnings("ignore:every test row is relevant")
"""Lists of relevant items alone are fine where the arithmetic is tested."""

SCORES = [[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]]


def rows(users, items, **columns):
    return Interactions.from_arrays(users, items, **columns)


def test_users_without_a_relevant_item_are_excluded_and_counted():
    result = evaluate(FixedRanker(SCORES), rows([0, 0, 1], [0, 1, 0], ratings=[5.0, 1.0, 2.0]), metrics="ndcg@1")
    assert (result.n_users, result.n_excluded, result["ndcg@1"]) == (1, 1, 1.0)
    assert np.isnan(result.per_user["ndcg@1"]).tolist() == [False, True]
    assert "Mean over 1 users; users left out: 1 without a relevant item, 0 unknown" in result.convention


def test_unknown_users_are_counted():
    result = evaluate(FixedRanker(SCORES), rows([1, 7, 8], [3, 3, 3]), metrics="hit@1")
    assert (result.n_users, result.n_unknown_users, result.user_ids.tolist()) == (1, 2, [1])


def test_numbers_that_say_nothing_are_told():
    all_relevant, some = rows([0, 0], [0, 1]), rows([0, 0], [0, 1], ratings=[5.0, 1.0])
    with pytest.warns(TopNRankWarning, match="every test row is relevant .* nothing is measured"):
        told = evaluate(FixedRanker(SCORES), all_relevant, metrics="ndcg")
    assert told.all_relevant
    assert "all orders have the same ndcg" in told.convention
    assert "all orders" not in evaluate(FixedRanker(SCORES), some, metrics="ndcg").convention
    by_catalog = evaluate(FixedRanker(SCORES), all_relevant, metrics="ndcg", protocol="catalog")
    assert "all orders" not in by_catalog.convention


def test_unknown_items_rank_last_when_rated():
    data = rows([0, 0, 0], [3, 8, 9], ratings=[1.0, 5.0, 1.0])
    result = evaluate(FixedRanker([[-4.0, -3.0, -2.0, -1.0]]), data, metrics=["mrr", "hit@1", "hit@2"])
    assert result.n_unknown_items == 2
    assert result["mrr"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (result["hit@1"], result["hit@2"]) == (0, 0.5)
    assert "2 test items unknown to the model rank last" in result.convention


def test_unknown_items_stay_unfound_in_the_catalog():
    result = evaluate(FixedRanker(SCORES), rows([0, 0], [0, 9]), protocol="catalog", metrics=["recall", "auc", "map"])
    assert (result["recall"], result["auc"], result["map"]) == (0.5, 0.5, 0.5)
    assert "1 test items unknown to the model count as not found" in result.convention


def test_ids_are_matched_by_value_not_by_position():
    model = FixedRanker(SCORES, user_ids=["ann", "bob"], item_ids=["a", "b", "c", "d"])
    result = evaluate(model, rows(["bob", "bob", "zoe"], ["a", "d", "d"], ratings=[1.0, 5.0, 5.0]), metrics="ndcg@1")
    assert (result["ndcg@1"], result.user_ids.tolist()) == (1.0, ["bob"])


@pytest.mark.parametrize(("users", "items", "what"), [([5], [0], "user.* 5.* 0;"), ([0], [9], "item.* 9.* 0;")])
def test_no_overlap_shows_an_id_of_each_side(users, items, what):
    with pytest.raises(DataError, match=f"no {what}"):
        evaluate(FixedRanker(SCORES), rows(users, items))


def test_test_rows_seen_in_training_are_left_out_and_counted():
    model = FixedRanker(SCORES, seen=[[0, 1], []])
    data = rows([0, 0], [0, 2])
    result = evaluate(model, data, protocol="catalog", metrics="mrr")
    assert (result["mrr"], result.n_seen) == (1.0, 1)
    assert "1 test rows left out as seen in training" in result.convention
    kept = evaluate(model, data, protocol="catalog", metrics="map", exclude_seen=False)
    assert (kept["map"], kept.n_seen) == (pytest.approx((1 + 2 / 3) / 2), 0)
    assert "training items included" in kept.convention
    with pytest.raises(DataError, match="also a training row"):
        evaluate(model, rows([0, 0], [0, 1]), protocol="catalog", metrics="mrr")


def test_repeated_training_rows_of_an_item_count_once():
    model = FixedRanker(SCORES, seen=[[0, 0, 0], []])
    assert evaluate(model, rows([0], [3]), protocol="catalog", metrics="mrr")["mrr"] == 1 / 3


def test_relevance_comes_from_ratings_then_weights_then_rows():
    model, users, items = FixedRanker(SCORES), [0, 0], [0, 1]
    ratings, weights = [2.0, 5.0], [1.0, -1.0]
    both = rows(users, items, ratings=ratings, weights=weights)
    assert evaluate(model, both, metrics="mrr")["mrr"] == 0.5
    assert evaluate(model, both, metrics="mrr", relevant=2)["mrr"] == 1
    by_weight = evaluate(model, both, metrics=["mrr", "precision"], relevant=None)
    assert (by_weight["precision"], "relevant: weight > 0" in by_weight.convention) == (0.5, True)
    plain = evaluate(model, rows(users, items), protocol="catalog", metrics="precision@1")
    assert (plain["precision@1"], "relevant: every test row" in plain.convention) == (1, True)


def test_several_feedback_types_of_an_item_are_one_candidate():
    data = rows([0, 0, 0], [0, 0, 1], types=["view", "buy", "view"], weights=[0.0, 1.0, 0.0])
    result = evaluate(FixedRanker(SCORES), data, metrics=["precision", "auc"])
    assert (result["precision"], result["auc"]) == (0.5, 1.0)


def test_graded_metrics_without_ratings_have_grade_one():
    result = evaluate(FixedRanker(SCORES), rows([0, 0], [0, 1], weights=[0.0, 1.0]), metrics=["ndcg_graded", "err"])
    assert result["ndcg_graded"] == pytest.approx(1 / np.log2(3))
    assert result["err"] == pytest.approx(0.5 / 2)


def test_undefined_auc_is_counted():
    data = rows([0, 0, 1, 1], [0, 1, 0, 1], ratings=[5.0, 5.0, 5.0, 1.0])
    result = evaluate(FixedRanker(SCORES), data, metrics=["auc", "ndcg"])
    assert (result["auc"], result.undefined) == (0.0, {"auc": 1})
    alone = evaluate(FixedRanker(SCORES), rows([0, 0], [0, 1]), metrics=["auc"])
    assert np.isnan(alone["auc"])
    assert json.loads(json.dumps(alone.to_dict(), allow_nan=False))["values"] == {"auc": None}


def test_result_reads_well_and_names_its_metrics():
    result = evaluate(FixedRanker(SCORES), rows([0, 0], [0, 1], ratings=[5.0, 1.0]), metrics=["ndcg@1", "map"])
    assert str(result).splitlines()[:2] == ["ndcg@1  1.0000", "map     1.0000"]
    assert str(result).endswith(result.convention)
    assert result.to_dict()["protocol"] == "rated"
    with pytest.raises(ParameterError, match="'ndcg@1', 'map'"):
        result["ndcg@2"]


@pytest.mark.parametrize("protocol", ["rated", "catalog"])
def test_nan_scores_name_the_model(protocol):
    model = FixedRanker([[np.nan, 1.0], [1.0, 2.0]])
    with pytest.raises(DivergenceError, match="FixedRanker gives NaN as the score of user 0 and item 0"):
        evaluate(model, rows([0, 1], [0, 1]), protocol=protocol)


def test_infinite_scores_are_scores():
    model = FixedRanker([[-np.inf, 0.0, np.inf, -np.inf]])
    for protocol in ("rated", "catalog"):
        assert evaluate(model, rows([0, 0], [0, 2]), protocol=protocol, metrics="mrr")["mrr"] == 1.0


def test_a_model_may_return_a_read_only_block():
    model = FixedRanker(SCORES, seen=[[0], []])
    model.score_block = lambda users: np.broadcast_to(np.float32([3, 2, 1, 0]), (len(users), 4))
    assert evaluate(model, rows([0, 0], [0, 1]), protocol="catalog", metrics="mrr")["mrr"] == 1.0


def test_bad_arguments_are_named():
    model, data = FixedRanker(SCORES), rows([0, 0], [0, 1], ratings=[0.2, 0.9])
    with pytest.raises(DataError, match=r"rating >= 4: values lie between 0.2 and 0.9; set relevant"):
        evaluate(model, data, relevant=4)
    with pytest.raises(ParameterError, match="'rated', 'catalog'"):
        evaluate(model, data, protocol="catalogue")
    with pytest.raises(ParameterError, match="num_threads"):
        evaluate(model, data, num_threads=-1, relevant=0.5)
    with pytest.raises(ParameterError, match="finite"):
        evaluate(model, data, relevant=float("nan"))
    with pytest.raises(DataError, match="no rows"):
        evaluate(model, data.take(np.zeros(2, dtype=bool)))
    with pytest.raises(DataError, match="0 and 1000, got -3 to 5"):
        evaluate(model, rows([0, 0], [0, 1], ratings=[-3.0, 5.0]), metrics="err")
    with pytest.raises(DataError, match="none of the 1 users"):
        evaluate(model, rows([0, 9], [0, 1], ratings=[1.0, 5.0]))


# -- what a model was trained for, and whom it has never seen --------------------------------------------------------------


def test_a_model_is_measured_on_its_own_task():
    model, data = FixedRanker(SCORES), rows([0, 0], [0, 1], ratings=[5.0, 1.0])
    assert evaluate(model, data, metrics="mrr").protocol == "rated"
    model.task_ = "catalog"
    assert evaluate(model, data, metrics="mrr").protocol == "catalog"
    del FixedRanker.task_
    try:
        del model.task_
        assert evaluate(model, data, metrics="mrr").protocol == "catalog"
    finally:
        FixedRanker.task_ = "rated"


def test_a_model_is_measured_by_its_own_rule():
    model, data = FixedRanker(SCORES), rows([0, 0, 0], [0, 1, 2], ratings=[8.0, 4.0, 1.0])
    assert evaluate(model, data, metrics="mrr").rule == "rating >= 8, four fifths of the scale 1 to 8"
    model.liked_rule_ = LikedRule(4.0)
    assert evaluate(model, data, metrics="mrr").rule == "rating >= 4"
    assert evaluate(model, data, metrics="mrr", relevant=1.5).rule == "rating >= 1.5"


def test_a_rule_that_takes_nearly_all_is_told():
    ratings = [1.0, *range(4, 10), *range(4, 10), *range(4, 10)]
    data = rows([0] * 19, range(19), ratings=ratings)
    model = FixedRanker([list(range(19))])
    with pytest.warns(
        TopNRankWarning, match=r"94.7% of the test rows count .*their ratings are 1 to 9.*set relevant to"
    ):
        evaluate(model, data, relevant=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(model, data)


def test_users_and_items_without_training_rows_are_told_apart():
    model = FixedRanker(SCORES, seen=[[2], []])
    model.task_ = "catalog"
    result = evaluate(model, rows([0, 1, 1], [3, 2, 3]), metrics=["mrr", "hit@1"])
    assert (result.n_users, result.n_users_without_rows, result.n_items_without_rows) == (2, 1, 1)
    alone = evaluate(model, rows([0], [3]), metrics=["mrr", "hit@1"])
    assert result.known == alone.values == alone.known
    assert result.values != result.known
    assert "1 of the 2 users have no training row; over the 1 others: mrr " in result.convention
    assert "1 test items have no training row" in result.convention
    assert result.to_dict()["known"] == result.known
    assert "no training row" not in evaluate(model, rows([0], [2]), metrics="mrr", exclude_seen=False).convention
