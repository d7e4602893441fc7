"""TopNRank for the whole catalog: how the task is chosen, what is learned, and what is refused."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from support.catalog_data import SMALL, groups, ratings
from topnrank import DataError, EventWeights, Interactions, ParameterError, Popularity, Threshold, TopNRank
from topnrank.errors import TopNRankWarning
from topnrank.models.topnrank.recipe import requested_task
from topnrank.testing.base import small_split


def learned(model):
    return {name: array.tobytes() for name, array in model.fitted.arrays.items()}


# -- the task ---------------------------------------------------------------------------------------------------------


def weighted(weights):
    return Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 3], weights=weights)


@pytest.mark.parametrize(
    "data",
    [ratings(), groups(), weighted([1.0, -1.0, 1.0, 1.0]), weighted([1.0, 1.0, 2.0, 2.0])],
    ids=["ratings", "likes", "weights that differ", "weights that do not"],
)
def test_an_open_task_is_the_catalog(data):
    model = TopNRank(factors=2, epochs=1, num_threads=1).fit(data)
    assert model.task_ == "catalog"
    assert model.task is None


@pytest.mark.parametrize(("data", "auto"), [(ratings(), "history"), (weighted([1.0, -1.0, 1.0, 1.0]), "list")])
def test_dislikes_go_where_they_are_sent(data, auto):
    """Given as a word, too, not by "auto" alone."""
    for asked, expected in (("auto", auto), ("history", "history"), ("list", "list")):
        recipe = TopNRank(task="catalog", dislikes=asked).resolve(data)
        assert recipe.settings["dislikes"] == expected
        assert recipe.selection.disliked == (expected == "list")


@pytest.mark.parametrize("settings", [{"metric": "mrr"}, {"truncate": True}, {"negatives": 0}])
def test_what_only_rated_items_know_asks_for_them(settings):
    assert TopNRank(**settings).resolve().task == "rated"


def test_recommending_with_a_model_of_rated_items_is_told():
    rated = TopNRank(task="rated", factors=2, epochs=1, num_threads=1).fit(ratings())
    with pytest.warns(TopNRankWarning, match=r"learned to rank the items that a user has rated .*task='catalog'"):
        rated.recommend(n=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TopNRank(factors=2, epochs=1, num_threads=1).fit(ratings()).recommend(n=1)


@pytest.mark.parametrize("factor", [0.2, 2, 20])
def test_the_unit_of_ratings_changes_no_number(factor):
    train, test = small_split()

    def measured(scale, **settings):
        parts = (
            Interactions.from_frame(part.to_arrow().set_column(2, "rating", pa.array(part.ratings * scale)))
            for part in (train, test)
        )
        fitted_on, held_out = parts
        model = TopNRank(factors=4, epochs=4, num_threads=1, **settings).fit(fitted_on)
        found = tnr.evaluate(model, held_out, metrics="ndcg@10")
        history = dict.fromkeys(model.item_ids_[:3].tolist(), 4 * scale) | {model.item_ids_[5].item(): scale}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return found["ndcg@10"], model.recommend(history=history, n=3)["item"].to_pylist(), found.rule

    for settings in ({"task": "rated"}, {"task": "rated", "user_representation": "factors"}, {"task": "catalog"}):
        (value, items, _), (other, others, rule) = measured(1.0, **settings), measured(factor, **settings)
        assert other == pytest.approx(value, abs=1e-4)
        assert others == items
        assert rule.startswith(f"rating >= {4 * factor:g}, four fifths of the scale")


def test_events_are_for_the_catalog():
    log = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 3], types=["buy", "view", "view", "buy"])
    model = TopNRank(factors=2, epochs=1, feedback=EventWeights({"buy": 1.0, "view": 0.2})).fit(log)
    assert model.task_ == "catalog"


def test_sampled_items_ask_for_the_catalog():
    assert TopNRank(factors=2, epochs=1, negatives=5).fit(ratings()).task_ == "catalog"


def test_what_is_given_stays_and_the_rest_follows_the_task():
    rated, catalog = (TopNRank(task=p, learning_rate=0.3, squared_weight=0.25).resolve() for p in ("rated", "catalog"))
    assert (
        rated.learning_rate,
        catalog.learning_rate,
        rated.objective.squared_weight,
        catalog.objective.squared_weight,
    ) == (
        0.3,
        0.3,
        0.25,
        0.25,
    )
    assert (rated.objective.exact, catalog.objective.exact) == (False, True)
    assert (rated.selection.negatives, rated.selection.ridge) == (0, None)
    assert catalog.selection.negatives > 0
    assert catalog.selection.ridge.neighbors > 0


# -- what is learned ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", ["history", "factors"])
@pytest.mark.parametrize("neighbors", [0, 6])
@pytest.mark.parametrize("sampling", ["popularity", "uniform"])
def test_it_finds_the_groups_that_popularity_cannot(users, neighbors, sampling):
    train, test = tnr.split_per_user(groups(), test=0.3)
    settings = SMALL | {"user_representation": users, "neighbors": neighbors, "sampling": sampling, "epochs": 25}
    model = TopNRank(**settings).fit(train)
    ours, popular = (tnr.evaluate(m, test, protocol="catalog")["ndcg@10"] for m in (model, Popularity().fit(train)))
    assert ours > 0.5 > popular + 0.2


@pytest.mark.parametrize("users", ["history", "factors"])
def test_the_bits_do_not_depend_on_threads(users):
    models = [TopNRank(**SMALL, user_representation=users, num_threads=threads).fit(ratings()) for threads in (1, 2)]
    assert learned(models[0]) == learned(models[1])


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path):
    whole = TopNRank(**SMALL | {"epochs": 6, "factor_weight": 0.5}).fit(ratings())
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        TopNRank(**SMALL | {"epochs": 6, "factor_weight": 0.5}).fit(
            ratings(), checkpoint=folder, callbacks=[Interrupt()]
        )
    assert learned(
        TopNRank(**SMALL | {"epochs": 6, "factor_weight": 0.5}).fit(ratings(), checkpoint=folder)
    ) == learned(whole)


class Interrupt:
    """Kills training after the third round, when its checkpoint is written."""

    def after_round(self, engine, round_):
        if round_.number == 4:
            raise KeyboardInterrupt
        return False


def test_the_file_holds_it_all(tmp_path):
    model = TopNRank(**SMALL).fit(ratings())
    model.save(tmp_path / "model")
    again = tnr.load(tmp_path / "model")
    assert again.task_ == "catalog"
    assert_array_equal(again.score_block(np.arange(9)), model.score_block(np.arange(9)))
    history = {int(item): 5.0 for item in model.item_ids_[:4]}
    assert again.recommend(history=history).equals(model.recommend(history=history))


def test_pairs_and_blocks_agree():
    model = TopNRank(**SMALL).fit(ratings())
    users, items = np.divmod(np.arange(150 * 80), 80)
    assert_allclose(model.score_pairs(users, items).reshape(150, 80), model.score_block(np.arange(150)), atol=2e-5)


@pytest.mark.parametrize("data", [ratings(), groups()], ids=["ratings", "likes"])
def test_a_new_user_with_a_known_history_gets_the_same_scores(data):
    model = TopNRank(**SMALL).fit(data)
    for user in (0, 7, 33):
        rows = slice(data.indptr[user], data.indptr[user + 1])
        values = None if data.ratings is None else data.ratings[rows].astype(np.float64)
        scores = model.score_history(data.indices[rows].astype(np.int64), values)
        assert_allclose(scores, model.score_block(np.array([user]))[0], atol=2e-5)


def test_new_users_with_factors_get_a_vector_of_their_own():
    model = TopNRank(**SMALL | {"epochs": 25}, user_representation="factors").fit(groups())
    best = model.recommend(history=[31, 32, 33, 34, 35], n=4)["item"].to_pylist()
    assert all(30 <= item < 40 for item in best)


def test_validation_ranks_the_catalog():
    model = TopNRank(**SMALL, factor_weight=1.0).fit(groups(), validation=0.2)
    assert 0.0 < model.history_[0]["ndcg@10"] < 1.0
    assert model.best_round_ >= 1


def test_types_below_zero_push_items_down():
    likes, rng = groups(), np.random.default_rng(0)
    disliked = [(user, int(rng.integers(50, 60))) for user in range(50) if user % 6 < 5]  # another group's items
    users = likes.user_index.tolist() + [user for user, _ in disliked]
    items = likes.indices.tolist() + [item for _, item in disliked]
    types = ["like"] * len(likes) + ["dislike"] * len(disliked)
    log, places = Interactions.from_arrays(users, items, types=types), []
    for weight in (0.0, -1.0):
        policy = EventWeights({"like": 1.0, "dislike": weight}, combine="sum")
        model = TopNRank(**SMALL | {"epochs": 20, "neighbors": 0}, feedback=policy).fit(log)
        ranks = (-model.score_block(np.arange(50))).argsort(axis=1).argsort(axis=1)
        places.append(np.mean([ranks[pair] for pair in disliked]))
    assert places[1] > places[0] + 3.0


@pytest.mark.parametrize("neighbors", [0, 6])
def test_types_with_vectors_of_their_own(tmp_path, neighbors):
    """Views say nothing here and purchases all: with vectors of their own the model can tell them apart."""
    bought, rng = groups(), np.random.default_rng(1)
    viewed = [(user, int(item)) for user in range(120) for item in rng.permutation(60)[:12]]
    users = bought.user_index.tolist() + [user for user, _ in viewed]
    items = bought.indices.tolist() + [item for _, item in viewed]
    log = Interactions.from_arrays(users, items, types=["buy"] * len(bought) + ["view"] * len(viewed))
    weights = EventWeights({"buy": 1.0, "view": 0.01})
    settings = SMALL | {"epochs": 20, "neighbors": neighbors, "feedback": weights}
    model = TopNRank(**settings, type_vectors=True).fit(log)
    assert model.fitted.arrays["rating_factors"].shape == (60, 2 * 8)
    model.save(tmp_path / "model")
    again = tnr.load(tmp_path / "model")
    weighted, user = weights(log), 4
    rows = slice(weighted.indptr[user], weighted.indptr[user + 1])
    history = (weighted.indices[rows].astype(np.int64), weighted.weights[rows].astype(np.float64))
    assert_allclose(again.score_history(*history), model.score_block(np.array([user]))[0], atol=2e-5)
    parts = model.explain(int(log.users.ids[user]), 7)
    assert sum(parts["part"].to_pylist()) == pytest.approx(float(model.score([log.users.ids[user]], [7])[0]), abs=1e-4)
    lifts = []
    for weight in (1.0, 0.01):
        scores = model.score_history(np.array([30, 31, 32]), np.full(3, weight))
        lifts.append(scores[33:40].mean() - scores.mean())
    if not neighbors:  # those do not tell a purchase from a view
        assert lifts[0] > lifts[1]


def test_vectors_by_type_need_types():
    with pytest.raises(DataError, match="a weight for each feedback type"):
        TopNRank(**SMALL, type_vectors=True).fit(groups())
    with pytest.raises(ParameterError, match="type_vectors are parts of histories"):
        TopNRank(**SMALL, user_representation="factors", type_vectors=True)


@pytest.mark.parametrize("neighbors", [0, 6])
def test_recency_lets_the_latest_items_speak(neighbors):
    """Users go from one group of items to the next; who looks at the end of the history finds the second group."""
    drawn, rows = np.random.default_rng(2), []
    for user in range(240):
        for late in (0, 1):
            chosen = drawn.permutation(10)[:6]
            rows += [(user, 10 * ((user + late) % 6) + int(item), 10 * late + n) for n, item in enumerate(chosen)]
    users, items, times = zip(*rows, strict=True)
    data, shares = Interactions.from_arrays(users, items, timestamps=times), []
    for recency in (None, 2.0):
        model = TopNRank(**SMALL | {"epochs": 20, "neighbors": neighbors}, recency=recency).fit(data)
        lists = model.recommend(n=2)
        asked = (lists["user"].to_numpy() + 1) % 6
        shares.append(float(np.mean(lists["item"].to_numpy() // 10 == asked)))
    assert shares[1] > max(shares[0] + 0.1, 0.8)
    latest = model.recommend(history=[0, 1, 2, 30, 31, 32], n=2)["item"].to_pylist()
    assert all(30 <= item < 40 for item in latest)


def test_recency_needs_times():
    with pytest.raises(DataError, match="recency needs timestamps"):
        TopNRank(**SMALL, recency=2.0).fit(groups())


def test_sessions_find_what_goes_together():
    """Items 3g and 3g + 1 are looked at together, 3g + 2 by the same users at another time; of one g users know 3g only."""
    drawn, rows, asked = np.random.default_rng(3), [], []
    for user in range(300):
        chosen = drawn.permutation(20)[:6]
        for report, g in enumerate(3 * chosen):
            moments = (10_000 * report, 10_000 * report + 5, 10_000 * report + 5_000)
            rows += [(user, int(g) + place, when) for place, when in enumerate(moments)]
        rows, last = rows[:-2], 3 * int(chosen[-1])
        asked.append(last + 1)
    users, items, times = zip(*rows, strict=True)
    data, found = Interactions.from_arrays(users, items, timestamps=times), []
    settings = SMALL | {"epochs": 2, "neighbors": 6, "neighbor_penalty": 10.0}
    for sessions in (None, 60.0):
        lists = TopNRank(**settings, sessions=sessions).fit(data).recommend(n=1)
        found.append(float(np.mean(lists["item"].to_numpy() == np.array(asked)[lists["user"].to_numpy()])))
    assert found[1] > max(0.9, found[0] + 0.2)


def test_sessions_need_times_and_neighbors():
    with pytest.raises(DataError, match="sessions need timestamps"):
        TopNRank(**SMALL | {"neighbors": 3}, sessions=60.0).fit(groups())
    with pytest.raises(ParameterError, match="sessions say how neighbors are found"):
        TopNRank(**SMALL | {"neighbors": 0}, sessions=60.0)
    with pytest.raises(ParameterError, match="recency and order are for the whole catalog"):
        TopNRank(task="rated", sessions=60.0)


# -- bad input --------------------------------------------------------------------------------------------------------


def test_a_catalog_of_one_item_is_refused():
    with pytest.raises(DataError, match="one item only"):
        TopNRank(task="catalog").fit(Interactions.from_arrays([1, 2], [7, 7]))


def test_a_user_who_has_every_item_gets_no_list_and_harms_nobody():
    data = groups()
    table = data.to_arrow()
    users = table["user"].to_pylist() + [999] * 60
    items = table["item"].to_pylist() + list(range(60))
    pairs = list(dict.fromkeys(zip(users, items, strict=True)))
    model = TopNRank(**SMALL).fit(Interactions.from_arrays(*zip(*pairs, strict=True)))
    assert model.recommend([999]).num_rows == 0
    assert model.recommend([0], n=3).num_rows == 3


def test_only_users_who_have_every_item_are_refused():
    users, items = np.divmod(np.arange(12), 4)
    with pytest.raises(DataError, match="no unobserved items to sample"):
        TopNRank(task="catalog").fit(Interactions.from_arrays(users, items))


def test_more_negatives_than_items_draw_items_again():
    model = TopNRank(**SMALL | {"negatives": 500}).fit(groups())
    assert np.isfinite(model.score_block(np.arange(5))).all()


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_weights_without_a_like_are_refused(weight):
    log = Interactions.from_arrays([1, 1, 2], [1, 2, 1], types=["view", "view", "view"])
    with pytest.raises(DataError, match="nobody likes anything"):
        TopNRank(feedback=EventWeights({"view": weight})).fit(log)


def test_ratings_without_a_like_are_refused():
    low = Interactions.from_arrays([1, 1, 2], [1, 2, 1], ratings=[1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="nobody likes anything"):
        TopNRank(task="catalog", feedback=Threshold(4)).fit(low)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "all"}, "task must be"),
        ({"task": "catalog", "negatives": 0}, "needs unobserved items"),
        ({"task": "catalog", "metric": "mrr"}, "knows metric='dcg' only"),
        ({"task": "rated", "negatives": 10}, "for the whole catalog"),
        ({"task": "rated", "neighbors": 10}, "for the whole catalog"),
        ({"task": "catalog", "negatives": -1}, "negatives must be an integer"),
        ({"task": "catalog", "sampling": "hard"}, "sampling must be"),
        ({"task": "catalog", "dislikes": "drop"}, "dislikes must be"),
        ({"task": "catalog", "neighbor_penalty": -1.0}, "neighbor_penalty"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        TopNRank(**settings)


@pytest.mark.parametrize("setting", ["sessions", "recency", "negatives", "neighbors"])
def test_what_is_for_the_catalog_only_asks_for_it(setting):
    assert TopNRank(**{setting: 5}).resolve().task == "catalog"
    if setting != "negatives":
        assert requested_task(TopNRank(**{setting: 0 if setting == "neighbors" else None})) is None
