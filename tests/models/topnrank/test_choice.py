"""TopNRank for the whole catalog: parts and strengths that are chosen on rows held out inside `fit`."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from topnrank import DivergenceError, Interactions, NeighborRidge, RecentPopularity, TopNRank
from topnrank.evaluation.splits import hold_out
from topnrank.models.recent_popularity import item_popularity
from topnrank.models.topnrank import choice
from topnrank.models.topnrank.recipe import CHOSEN

OPEN = {"task": "catalog", "factors": 4, "negatives": 20, "order": "none", "num_threads": 1}


@pytest.fixture(scope="module")
def data():
    return tnr.synthetic(300, 80, 9000)


@pytest.fixture(scope="module")
def model(data):
    return TopNRank(**OPEN).fit(data)


def learned(model):
    return {name: array.tobytes() for name, array in model.fitted.arrays.items()}


def test_the_choice_is_told_and_kept(model, data, tmp_path):
    chosen = model.fitted.info.chosen
    assert set(chosen) == set(CHOSEN)
    model.save(tmp_path / "m.safetensors")
    loaded = tnr.load(tmp_path / "m.safetensors")
    assert loaded.fitted.info.chosen == chosen
    assert loaded.get_params() == model.get_params()  # "auto" stays
    recipe = loaded.recipe_
    assert recipe.selection.ridge.neighbors == chosen["neighbors"]
    assert recipe.selection.ridge.penalty == chosen["neighbor_penalty"]
    assert (recipe.factor_weight, recipe.popularity) == (chosen["factor_weight"], chosen["popularity"])
    assert loaded.partial_fit(data.take(np.arange(50))).fitted.info.chosen == chosen


def test_the_chosen_neighbors_can_be_fixed(model, data):
    chosen = model.fitted.info.chosen
    fixed = {name: chosen[name] for name in ("neighbors", "neighbor_penalty", "popularity")}
    again = TopNRank(**OPEN | fixed).fit(data)
    assert not set(again.fitted.info.chosen) & set(fixed)
    for name in ("neighbors", "neighbor_weights"):
        assert_array_equal(again.fitted.arrays[name], model.fitted.arrays[name], err_msg=name)


def test_the_choice_has_the_same_bits_for_any_number_of_threads(model, data):
    assert learned(TopNRank(**OPEN | {"num_threads": 2}).fit(data)) == learned(model)


def test_what_the_user_sets_is_not_chosen(data):
    fixed = {"neighbors": 7, "neighbor_penalty": 33.0, "epochs": 2, "factor_weight": 0.4, "popularity": 0.0}
    model = TopNRank(**OPEN | fixed)
    recipe = model.resolve(data)
    assert not recipe.open_settings
    partly = TopNRank(**OPEN | {"neighbors": 7, "epochs": 2}).fit(data)
    assert set(partly.fitted.info.chosen) >= {"neighbor_penalty", "factor_weight", "popularity"}
    assert partly.fitted.arrays["neighbors"].shape[1] == 7
    assert len(partly.history_) in (0, 2)


def test_a_part_that_does_not_help_is_left_out(data, monkeypatch):
    monkeypatch.setattr(choice, "WORTH", 100.0)
    model = TopNRank(**OPEN).fit(data)
    chosen = model.fitted.info.chosen
    assert (chosen["epochs"], chosen["factor_weight"]) == (0, 0.0)
    ridge = NeighborRidge(neighbors=chosen["neighbors"], regularization=chosen["neighbor_penalty"], num_threads=1).fit(
        data
    )
    users = np.arange(data.n_users)
    scale = model.fitted.arrays["neighbor_scale"][0]
    expected = scale * ridge.score_block(users) + chosen["popularity"] * item_popularity(data).scores
    assert_allclose(model.score_block(users), expected, rtol=1e-4, atol=1e-4)


def test_the_sum_is_not_worse_than_the_neighbors_on_the_rows_held_out(data):
    """The rows that decide, and the settings that win there."""
    train, rest = hold_out(data)
    chosen = TopNRank(**OPEN).fit(data).fitted.info.chosen
    alone = NeighborRidge(neighbors=chosen["neighbors"], regularization=chosen["neighbor_penalty"]).fit(train)
    both = TopNRank(**OPEN | {name: value for name, value in chosen.items() if value or name != "epochs"}).fit(train)
    ndcg = [tnr.evaluate(one, rest, protocol="catalog", metrics="ndcg@10")["ndcg@10"] for one in (alone, both)]
    assert ndcg[1] >= choice.BEARABLE * ndcg[0]


def test_days_to_come_are_never_ranked_without_popularity(data):
    """Users without rows have nothing else."""
    timed = replace(data, timestamps=np.random.default_rng(0).integers(0, 10**7, len(data)))
    train, _ = tnr.split_time(timed, test=0.2)
    assert TopNRank(**OPEN).fit(train).fitted.info.chosen["popularity"] >= choice.POPULARITIES[0]


@pytest.mark.parametrize(("number", "value", "left_out"), [(1, 0.4, True), (2, 0.4, False), (2, 0.2, True)])
def test_factors_that_were_best_before_they_learned_are_left_out(number, value, left_out):
    rounds = choice._Rounds(None, None, None, choice.WEIGHTS)
    rounds.model, rounds.value, rounds.enough = choice._Model(number, None, {}), value, 0.3
    assert rounds._is_hopeless() == left_out


def test_without_neighbors_the_factors_are_all_there_is(data):
    chosen = TopNRank(**OPEN, neighbors=0).fit(data).fitted.info.chosen
    assert chosen["factor_weight"] > 0.0
    assert "neighbors" not in chosen


def test_a_weight_of_zero_trains_nothing(data):
    model = TopNRank(**OPEN, factor_weight=0.0).fit(data)
    assert model.history_ == []
    assert not model.item_factors_.any()


def test_a_training_that_diverges_is_told_where_factors_are_asked_for(data):
    with pytest.raises(DivergenceError):
        TopNRank(**OPEN, factor_weight=1.0, learning_rate=1e30, epochs=2).fit(data)


@pytest.mark.parametrize("late", [1, 50])
def test_rows_that_are_nearly_all_of_one_moment(data, late):
    timed = replace(data, timestamps=np.where(np.arange(len(data)) < late, 0, 10**9))
    assert TopNRank(**OPEN).fit(timed).fitted.info.chosen["popularity"] > 0.0


def test_too_few_users_to_choose_by():
    small = tnr.synthetic(20, 30, 300)
    model = TopNRank(**OPEN).fit(small)
    assert model.fitted.info.chosen is None
    assert len(model.history_) == model.recipe_.epochs


def test_validation_where_the_factors_are_left_out(data, monkeypatch):
    monkeypatch.setattr(choice, "WORTH", 100.0)
    model = TopNRank(**OPEN).fit(data, validation=0.2)
    assert 0.0 < model.fitted.info.validation["ndcg@10"] < 1.0
    assert model.best_round_ == 0


def test_a_user_without_rows_gets_what_is_popular_of_late(data):
    known = data.take(data.user_index > 0)  # the first user keeps the number, and has no rows
    model = TopNRank(**OPEN).fit(known)
    half_life = model.fitted.info.half_life_days
    popular = RecentPopularity(half_life=half_life or "never").fit(known)
    mine, theirs = (one.score_block(np.array([0]))[0] for one in (model, popular))
    assert_array_equal(np.argsort(-mine, kind="stable")[:10], np.argsort(-theirs, kind="stable")[:10])


def test_popularity_is_the_logarithm_of_counts():
    data = Interactions.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 3, 1])
    scores = np.log1p(np.array([3.0, 1.0, 1.0]) / (5 / 3))
    assert_allclose(item_popularity(data).scores, scores / scores.std(), rtol=1e-6)
    assert item_popularity(data).half_life is None
