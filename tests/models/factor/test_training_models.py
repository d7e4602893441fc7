"""What fit refuses and what it leaves; histories and new users."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from support.rank_losses import Twin
from topnrank import (
    BiasedMF,
    Centered,
    DataError,
    Interactions,
    ItemMean,
    ParameterError,
    Popularity,
    Random,
    Threshold,
    TopNRank,
    UnknownIdError,
    evaluate,
)
from topnrank.testing.base import small_data, small_split

TRAIN, TEST = small_split()
PARAMETERS = {"task": "rated", "factors": 6, "epochs": 4, "seed": 1}

pytestmark = pytest.mark.filterwarnings("ignore:this model learned to rank the items")


def interactions(ratings=None, weights=None, users=(1, 1, 2, 2), items=(1, 2, 1, 3)):
    return Interactions.from_arrays(list(users), list(items), ratings=ratings, weights=weights)


# -- data that cannot teach an order ----------------------------------------------------------------------------------


def test_unary_data_are_refused_for_rated_items():
    with pytest.raises(
        DataError, match=r"within every user all weights are equal .*task='catalog'.*learns from likes alone"
    ):
        TopNRank(task="rated").fit(interactions())


def test_equal_weights_are_refused_for_rated_items():
    with pytest.raises(DataError, match="within every user all weights are equal"):
        TopNRank(task="rated").fit(interactions(weights=[1.0, 1.0, 3.0, 3.0]))


def test_zero_weights_are_refused():
    with pytest.raises(DataError, match="within every user all weights are equal"):
        BiasedMF().fit(interactions(weights=[0.0, 0.0, 0.0, 0.0]))


def test_equal_ratings_are_refused():
    with pytest.raises(DataError, match="all 4 ratings are 4: there is no order to learn"):
        TopNRank(task="rated").fit(interactions(ratings=[4, 4, 4, 4]))


def test_one_item_each_is_refused():
    with pytest.raises(DataError, match="every user has one item only"):
        TopNRank(task="rated").fit(interactions(ratings=[1, 5], users=(1, 2), items=(1, 2)))


def test_ratings_that_a_threshold_makes_equal_are_refused():
    with pytest.raises(DataError, match="within every user all weights are equal"):
        TopNRank(task="rated", feedback=Threshold(4.0)).fit(interactions(ratings=[4, 5, 1, 2]))


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows to train on"):
        TopNRank(task="rated").fit(TRAIN.take(np.zeros(len(TRAIN), np.bool_)))


def test_item_mean_needs_numbers():
    with pytest.raises(DataError, match="ItemMean needs ratings or weights"):
        ItemMean().fit(interactions())


def test_a_feedback_type_of_its_own_is_counted_once_for_popularity():
    data = Interactions.from_arrays([1, 1, 2], [7, 7, 8], types=["view", "buy", "view"])
    model = Popularity().fit(data)
    assert model.item_bias_.tolist() == [1.0, 1.0]
    assert model.seen_indices.tolist() == [0, 1]


@pytest.mark.parametrize("users", ["history", "factors"])
def test_users_with_one_item_and_items_without_rows_do_no_harm(users):
    data = Interactions.from_arrays([1, 1, 1, 2, 3, 3], [1, 2, 3, 1, 2, 4], ratings=[5, 1, 3, 4, 2, 5])
    model = TopNRank(user_representation=users, **PARAMETERS).fit(data.take(np.array([0, 1, 3, 4, 5])))
    assert all(np.isfinite(array).all() for array in model.fitted.arrays.values())
    assert model.recommend(n=2).num_rows == 3 * 2


# -- validation and callbacks -----------------------------------------------------------------------------------------


def test_validation_keeps_the_best_round():
    model = TopNRank(task="rated", factors=6, epochs=8, learning_rate=0.4).fit(TRAIN, validation=TEST, patience=8)
    values = [record["ndcg@10"] for record in model.history_]
    assert len(values) == 8
    assert model.best_round_ == 1 + int(np.argmax(values))
    assert evaluate(model, TEST)["ndcg@10"] == pytest.approx(max(values), rel=1e-6)
    assert model.fitted.info.validation == {"ndcg@10": max(values)}


def test_validation_by_share_holds_rows_out_of_the_data():
    model = TopNRank(**PARAMETERS).fit(TRAIN, validation=0.5, metric="recall@5")
    assert model.history_[0]["objective"] != TopNRank(**PARAMETERS).fit(TRAIN).history_[0]["objective"]
    assert "recall@5" in model.history_[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metric": "accuracy"}, "accuracy"),
        ({"patience": 0}, "patience must be an integer of at least 1, got 0"),
        ({"patience": 1.5}, "patience must be an integer of at least 1, got 1.5"),
        ({"validation": 1.5}, "must be a fraction between 0 and 1"),
        ({"validation": "half"}, "must be a fraction between 0 and 1"),
    ],
)
def test_bad_options_of_fit_are_one_clear_sentence(options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        TopNRank(**PARAMETERS).fit(TRAIN, **options)


def test_a_metric_that_no_user_defines_is_refused():
    one_kind = TEST.take((TEST.ratings >= 4) == (TEST.user_index % 2 == 0))  # all liked or all disliked: no AUC
    with pytest.raises(DataError, match="auc is not defined for any user of the held-out rows"):
        TopNRank(**PARAMETERS).fit(TRAIN, validation=one_kind, metric="auc")


def test_a_callback_of_ones_own_may_stop():
    class Stop:
        def after_round(self, engine, round_):
            return round_.number == 2

    assert len(TopNRank(**PARAMETERS).fit(TRAIN, callbacks=[Stop()]).history_) == 2


def test_training_lowers_the_objective():
    history = TopNRank(task="rated", factors=6, epochs=15).fit(TRAIN).history_
    assert history[-1]["objective"] < history[0]["objective"]


def test_a_share_of_the_users_per_batch():
    model = TopNRank(**(PARAMETERS | {"batch_size": 0.25})).fit(TRAIN)
    assert [record["iteration"] for record in model.history_] == [4, 8, 12, 16]


@pytest.mark.parametrize("users", ["history", "factors"])
def test_the_reference_engine_trains_the_same_model(users):
    cpu = TopNRank(user_representation=users, **PARAMETERS).fit(TRAIN)
    reference = TopNRank(user_representation=users, engine="reference", **PARAMETERS).fit(TRAIN)
    assert_allclose(cpu.item_factors_, reference.item_factors_, rtol=1e-4, atol=1e-5)
    assert_allclose(cpu.user_factors_, reference.user_factors_, rtol=1e-4, atol=1e-5)


def test_fitted_attributes_of_factor_models():
    for model in (
        TopNRank(**PARAMETERS),
        TopNRank(user_representation="factors", **PARAMETERS),
        BiasedMF(**{name: value for name, value in PARAMETERS.items() if name != "task"}),
    ):
        model.fit(TRAIN)
        assert model.user_factors_.shape == (TRAIN.n_users, 6)
        assert model.item_factors_.shape == (TRAIN.n_items, 6)
        assert model.item_bias_.shape == (TRAIN.n_items,)
        assert [record["round"] for record in model.history_] == [1, 2, 3, 4]
        assert model.best_round_ == 4
        scores = model.user_factors_[3] @ model.item_factors_.T + model.item_bias_
        assert_allclose(model.score(model.user_ids_[3], model.item_ids_), scores, rtol=1e-4, atol=1e-6)


def test_without_bias_there_is_none():
    assert not TopNRank(bias=False, **PARAMETERS).fit(TRAIN).item_bias_.any()


def test_a_step_of_ones_own_trains_like_its_builtin_twin():
    own, builtin = (TopNRank(smoothing=step, **PARAMETERS).fit(TRAIN) for step in (Twin(), "laplace"))
    assert_allclose(own.item_factors_, builtin.item_factors_, rtol=1e-4, atol=1e-6)


# -- users never seen -------------------------------------------------------------------------------------------------


def history_of(user):
    rows = slice(TRAIN.indptr[user], TRAIN.indptr[user + 1])
    return dict(zip(TRAIN.items.ids[TRAIN.indices[rows]].tolist(), TRAIN.ratings[rows].tolist(), strict=True))


@pytest.fixture(scope="module")
def by_history():
    return TopNRank(task="rated", factors=6, epochs=15).fit(TRAIN)


@pytest.fixture(scope="module")
def by_factors():
    return TopNRank(task="rated", user_representation="factors", factors=6, epochs=15).fit(TRAIN)


@pytest.mark.parametrize("user", [0, 17, 80])
def test_the_history_of_a_known_user_gives_that_users_recommendations(by_history, user):
    known = by_history.recommend(by_history.user_ids_[user], n=8).drop_columns("user")
    new = by_history.recommend(history=history_of(user), n=8)
    assert new["item"].to_pylist() == known["item"].to_pylist()
    assert_allclose(new["score"], known["score"], rtol=1e-4, atol=1e-5)


def test_the_order_of_a_history_does_not_matter(by_history, by_factors):
    history = list(history_of(5).items())
    for model in (by_history, by_factors):
        first, second = model.recommend(history=history), model.recommend(history=history[::-1])
        assert first["item"].to_pylist() == second["item"].to_pylist()
        assert_allclose(first["score"], second["score"], rtol=1e-4, atol=1e-6)


def test_a_history_of_items_alone_speaks_too(by_history):
    ids = by_history.item_ids_
    one, other = (by_history.recommend(history=ids[chosen].tolist()) for chosen in ([0, 1, 2], [30, 31, 32]))
    assert one["score"].to_pylist() != other["score"].to_pylist()


def test_factors_need_ratings_in_a_history(by_factors):
    with pytest.raises(ParameterError, match="needs ratings"):
        by_factors.recommend(history=by_factors.item_ids_[:3].tolist())


@pytest.mark.parametrize("user", [0, 17, 80])
def test_folding_in_improves_the_objective_over_the_mean_user(by_factors, user):
    model, history = by_factors, history_of(user)
    items = model.item_numbers(list(history))
    ratings = np.array(list(history.values()))
    scores = model.score_history(items, ratings)[items].astype(np.float64)
    mean = model.user_factors_.mean(axis=0)
    start = (model.item_factors_[items] @ mean + model.item_bias_[items]).astype(np.float64)
    gains = ratings - ratings.mean()
    objective = model.objective()
    assert objective.evaluate(scores, gains).value < objective.evaluate(start, gains).value


def test_folding_in_changes_nothing_of_the_model(by_factors):
    before = {name: array.copy() for name, array in by_factors.fitted.arrays.items()}
    by_factors.recommend(history=history_of(3))
    for name, array in by_factors.fitted.arrays.items():
        assert_array_equal(array, before[name])


def test_a_new_user_of_a_model_with_weights():
    weights = TRAIN.ratings - 3.0
    data = Interactions.from_arrays(TRAIN.users.ids[TRAIN.user_index], TRAIN.items.ids[TRAIN.indices], weights=weights)
    for users in ("history", "factors"):
        model = TopNRank(user_representation=users, **PARAMETERS).fit(data)
        assert model.recommend(history={1: 1.0, 2: -2.0, 3: 0.5}, n=3).num_rows == 3


def test_numbers_given_as_text_are_found(by_history):
    first = by_history.user_ids_[0]
    assert by_history.recommend(str(first), n=2).equals(by_history.recommend(first, n=2))
    assert by_history.recommend([str(first)], n=2, unknown="skip").equals(by_history.recommend(first, n=2))
    with pytest.raises(UnknownIdError, match="does not know user 'nobody'"):
        by_history.recommend("nobody")


def test_popular_items_for_a_name_among_numbers(by_history, tmp_path):
    asked = [by_history.user_ids_[0], "nobody"]
    table = by_history.recommend(asked, n=2, unknown="popular")
    assert table["user"].to_pylist() == [str(asked[0])] * 2 + ["nobody"] * 2
    assert by_history.recommend_to(tmp_path / "lists.parquet", asked, n=2, unknown="popular") == 4


def test_many_users_are_served_in_blocks(by_history, monkeypatch):
    whole = by_history.recommend(n=3)
    monkeypatch.setattr("topnrank.models.serving.recommend.BLOCK_BYTES", 4 * len(by_history.item_map) * 7)
    blocks = by_history.recommend(n=3)
    assert blocks["item"].to_pylist() == whole["item"].to_pylist()


def test_centered_feedback_is_the_choice_for_ratings():
    chosen, named = (
        TopNRank(**PARAMETERS).fit(TRAIN),
        TopNRank(feedback=Centered(), **PARAMETERS).fit(TRAIN),
    )
    assert_array_equal(chosen.item_factors_, named.item_factors_)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_similar_items_are_asked_for_by_a_whole_number(by_history, n):
    with pytest.raises(ParameterError, match=r"similar_items: n must be an integer of at least 1"):
        by_history.similar_items(by_history.item_ids_[0], n=n)


@pytest.mark.parametrize("model", [TopNRank(task="rated"), Popularity(), Random()], ids=lambda model: model.name)
def test_a_path_is_no_interactions(model):
    with pytest.raises(ParameterError, match=r"fit needs Interactions, got str; make them with .*from_frame"):
        model.fit("ratings.csv")


@pytest.mark.parametrize("users", ["history", "factors"])
def test_rows_held_out_as_a_share_are_seen_afterwards(users):
    data = small_data()
    model = TopNRank(task="rated", user_representation=users, factors=4, epochs=2).fit(data, validation=0.5)
    lists = model.recommend(n=5).to_pydict()
    rated = set(zip(data.users.ids[data.user_index].tolist(), data.items.ids[data.indices].tolist(), strict=True))
    assert not rated & set(zip(lists["user"], lists["item"], strict=True))
    if users == "history":  # the history is the whole one
        mine = data.take(data.user_index == 0)
        history = dict(zip(data.items.ids[mine.indices].tolist(), mine.ratings.tolist(), strict=True))
        new, known = model.recommend(history=history, n=5), model.recommend([model.user_ids_[0]], n=5)
        assert new["item"].to_pylist() == known["item"].to_pylist()
