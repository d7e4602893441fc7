"""Transitions, NextItemRidge and ItemIdOrder beyond the conformance suite."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import topnrank as tnr
from topnrank import DataError, Interactions, ItemIdOrder, NextItemRidge, ParameterError, Transitions
from topnrank.models.sequence._sequence_kernel import Links
from topnrank.models.sequence.choice import HeldOutNext
from topnrank.models.sequence.parts import Part

GIVEN = {"distance_power": 1.0, "smoothing": 0.3, "popularity": 0.0, "head_share": 0.8, "head_decay": 0.5}
RIDGE = {
    **GIVEN,
    "undirected": 0.0,
    "recent_popularity": 0.0,
    "neighbors": 30,
    "regularization": 1.0,
    "shrink": 1.0,
    "decays": [0.0, 0.8],
}
BOTH = [Transitions(**GIVEN), NextItemRidge(**RIDGE, transitions=0.0), NextItemRidge(**RIDGE, transitions=0.1)]


def chains(users=300, items=30, length=8, seed=0, step=1):
    """Users who walk up the items one by one, around the end, with a jump now and then."""
    drawn = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        item = int(drawn.integers(items))
        for time in range(length):
            if (user, item) not in {(u, i) for u, i, _ in rows[-length:]}:
                rows.append((user, item, 1000 * time))
            item = (item + (step if drawn.random() < 0.9 else int(drawn.integers(1, items)))) % items
    columns = zip(*rows, strict=True)
    owners, numbers, times = (list(column) for column in columns)
    return Interactions.from_arrays(owners, numbers, timestamps=times)


def backwards(data):
    return Interactions.from_arrays(data.user_index, data.indices, timestamps=-data.timestamps)


@pytest.mark.parametrize("model", BOTH)
def test_it_knows_which_way_users_go(model):
    for data, after in ((chains(), 11), (backwards(chains()), 9)):
        model.fit(data)
        assert model.recommend(history=[3, 10], n=1)["item"].to_pylist() == [after]
    train, test = tnr.split_last(chains())
    ours, symmetric = (
        tnr.evaluate(one.fit(train), test, protocol="catalog", metrics="ndcg@10")["ndcg@10"]
        for one in (model, tnr.NeighborRidge(neighbors=10, regularization=1.0))
    )
    assert ours > symmetric + 0.1


@pytest.mark.parametrize("model", BOTH)
def test_a_history_is_given_from_the_oldest_item_on(model):
    model.fit(chains())
    firsts = [model.recommend(history=history, n=1)["item"].to_pylist() for history in ([3, 10], [10, 3])]
    assert firsts == [[11], [4]]


@pytest.mark.parametrize("model", [*BOTH, tnr.NeighborRidge(neighbors=5, regularization=1.0, recency=1.0)])
def test_histories_with_times_are_taken_in_their_order(model):
    model.fit(chains())
    new = Interactions.from_arrays(["a", "a", "b", "b"], [3, 10, 3, 10], timestamps=[1, 2, 2, 1])
    given = model.recommend(histories=new, n=3)["item"].to_pylist()
    assert given == [
        item for own in ([3, 10], [10, 3]) for item in model.recommend(history=own, n=3)["item"].to_pylist()
    ]


@pytest.mark.parametrize("model", BOTH)
def test_a_known_user_is_scored_like_one_with_the_same_history(model):
    data = chains()
    model.fit(data)
    own = slice(*data.indptr[5:7])
    history = data.indices[own][np.argsort(data.timestamps[own])]
    assert_allclose(model.score_block(np.array([5]))[0], model.score_history(history, None), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", BOTH)
def test_parts_name_the_item_that_came_before(model):
    table = model.fit(chains()).explain(history=[3, 10], item=11).to_pylist()
    assert table[0]["because"] == 10
    kinds = {row["what"] for row in table}
    wanted = {"transitions"} if isinstance(model, Transitions) else {"ridge"}
    assert kinds == wanted | {"bias"} | ({"transitions"} if getattr(model, "transitions", 0) else set())


@pytest.mark.parametrize("model", BOTH)
def test_similar_items_are_those_that_follow_or_lead(model):
    model.fit(chains())
    assert model.similar_items(10, n=1)["item"].to_pylist() == [9]  # what speaks most for item 10


def test_items_of_one_moment_have_no_direction():
    data = Interactions.from_arrays(np.repeat(np.arange(2000), 2), np.tile([1, 2], 2000), timestamps=np.zeros(4000))
    model = Transitions(**GIVEN).fit(data)
    up, down = model.score_history(np.array([0]), None)[1], model.score_history(np.array([1]), None)[0]
    assert up == pytest.approx(down, abs=0.2)


def test_items_of_one_moment_go_in_the_order_of_the_file_where_it_is_kept():
    data = chains()
    users, items = data.user_index, data.indices
    order = np.lexsort((data.timestamps, users))
    rows = {"users": users[order], "items": items[order], "timestamps": np.zeros(len(data))}
    kept = Interactions.from_arrays(**rows, keep_order=True)
    for model in (Transitions(**GIVEN), NextItemRidge(**RIDGE, transitions=0.0)):
        expected = model.fit(data).score_block(np.arange(5))
        assert_allclose(model.fit(kept).score_block(np.arange(5)), expected, rtol=1e-5, atol=1e-6)
        half = kept.take(np.arange(len(kept)) % 8 < 6)
        model.fit(half).partial_fit(Interactions.from_arrays([0, 0], [28, 29], timestamps=[0, 0], keep_order=True))
        assert model.recommend(history=[3, 10], n=1)["item"].to_pylist() == [11]


def test_after_a_split_by_time_settings_are_chosen_on_the_latest_rows():
    rng = np.random.default_rng(0)
    users, weeks = np.repeat(np.arange(400), 4), rng.integers(0, 5, 1600)
    items = 20 * weeks + np.minimum(rng.geometric(0.3, 1600), 20)  # what is popular changes from week to week
    times = 604800 * weeks + rng.integers(0, 604800, 1600)
    data = Interactions.from_arrays(users, items, timestamps=times, duplicates="last")
    train = tnr.split_time(data, test=0.1)[0]
    model = Transitions(recent_popularity="auto").fit(train)
    whole = Transitions(recent_popularity="auto").fit(replace(train, split=None))
    assert model.settings_["recent_popularity"] > whole.settings_["recent_popularity"]
    held = HeldOutNext.latest(model.timeline(model.weighted(train)[0]))
    assert held.rest.times.max() < train.timestamps.max()
    bias, past = rng.random(held.rest.n_items), np.zeros((len(held.rest.rows), 1))
    links = Links(np.zeros(held.rest.n_items + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    values = held.of_users([Part(links, bias, past)], [[1.0]])[0]
    events = held.rest.events
    for number in range(0, held.users.size, 7):
        user, wanted = held.users[number], held.wanted[held.owners == number]
        seen = events.items[events.indptr[user] : events.indptr[user + 1]]
        order = [item for item in np.argsort(-bias) if item not in seen or item in wanted][:10]
        gains = [1 / np.log2(place + 2) for place, item in enumerate(order) if item in wanted]
        ideal = sum(1 / np.log2(place + 2) for place in range(min(10, wanted.size)))
        assert values[number] == pytest.approx(sum(gains) / ideal)


def test_a_pause_weakens_what_came_before():
    plain, half, cut = (
        Transitions(**GIVEN, sessions=500.0, across_sessions=across).fit(chains(users=50)) for across in (1.0, 0.5, 0.0)
    )
    one = plain.score_history(np.array([10]), None)[11], half.score_history(np.array([10]), None)[11]
    assert 0 < one[1] < one[0]
    assert not cut.score_history(np.array([10]), None).any()
    assert_allclose(
        plain.score_block(np.arange(9)), Transitions(**GIVEN).fit(chains(users=50)).score_block(np.arange(9))
    )
    ridge = NextItemRidge(**RIDGE, transitions=0.0, sessions=500.0, across_sessions=0.0).fit(chains(users=50))
    assert not ridge.score_history(np.array([10]), None).any()


def test_likes_and_dislikes():
    ratings = Interactions.from_arrays(
        [1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 2], ratings=[1, 5] * 3, timestamps=[1, 2] * 3
    )
    without, with_ = (Transitions(**GIVEN, dislikes=share).fit(ratings) for share in (0.0, 1.0))
    assert without.score("1", "2")[0] == 0.0  # item 1 is disliked, and no like came before item 2
    assert with_.score("1", "2")[0] > 0.0
    assert with_.score("1", "1")[0] == 0.0  # what is disliked is never wanted
    every = Transitions(**GIVEN, feedback="unary").fit(ratings)
    assert every.score("1", "2")[0] > 0.0
    with pytest.raises(ParameterError, match="no item of this history counts as liked"):
        without.recommend(history={1: 1.0})


def test_heavier_events_count_more():
    types = ["view", "view", "view", "buy"]
    data = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 3], types=types, timestamps=[1, 2, 1, 2])
    weights = tnr.EventWeights({"view": 1.0, "buy": 5.0})
    for model in (Transitions(**GIVEN, feedback=weights), NextItemRidge(**RIDGE, transitions=0.0, feedback=weights)):
        scores = model.fit(data).score_history(np.array([0]), np.array([1.0]))
        assert scores[2] > scores[1] > 0


@pytest.mark.parametrize("kind", [Transitions, NextItemRidge])
def test_auto_is_chosen_on_held_out_last_items(kind):
    train, test = tnr.split_last(chains())
    model = kind().fit(train)
    assert tnr.evaluate(model, test, protocol="catalog", metrics="ndcg@10")["ndcg@10"] > 0.7
    assert set(model.settings_) == {name for name, value in kind().get_params().items() if value == "auto"}
    explicit = kind().with_explicit_defaults(train)
    assert "auto" not in explicit.get_params().values()
    again = explicit.fit(train)
    assert {name: array.tobytes() for name, array in again.fitted.arrays.items()} == {
        name: array.tobytes() for name, array in model.fitted.arrays.items()
    }
    assert again.settings_ == {}


@pytest.mark.parametrize("kind", [Transitions, NextItemRidge])
def test_users_with_two_items_are_not_held_out(kind):
    data = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], timestamps=[1, 2, 1, 2])
    model = kind().fit(data)
    assert "auto" not in model.settings_.values()
    assert model.recommend(history=[1])["item"].to_pylist() == [2]


@pytest.mark.parametrize("model", [*BOTH, ItemIdOrder()])
def test_order_needs_times(model):
    with pytest.raises(DataError, match=f"{type(model).__name__} needs timestamps"):
        model.fit(Interactions.from_arrays([1, 1], [1, 2]))


@pytest.mark.parametrize("decays", [[], [1.0], [0.5, 0.5], [-0.1], 0.5, "fast", [True], ["0.5"]])
def test_bad_decays(decays):
    with pytest.raises(ParameterError, match="decays must be a list of different numbers"):
        NextItemRidge(decays=decays)


def test_decays_survive_a_file(tmp_path):
    NextItemRidge(**RIDGE, transitions=0.0).fit(chains()).save(tmp_path / "model")
    assert tnr.load(tmp_path / "model").get_params()["decays"] == [0.0, 0.8]


def test_a_file_whose_links_are_cut_is_refused(tmp_path):
    model = Transitions(**GIVEN).fit(chains())
    model.fitted.arrays["link_targets"] = model.fitted.arrays["link_targets"][:-1]
    model.save(tmp_path / "model")
    with pytest.raises(tnr.ModelFileError, match="are not those of link_targets"):
        tnr.load(tmp_path / "model")


def test_the_control_follows_the_ids():
    data = Interactions.from_arrays([1, 1, 1, 2], [10, 30, 20, 40], timestamps=[1, 2, 3, 1])
    model = ItemIdOrder().fit(data)
    assert model.recommend(1, n=3)["item"].to_pylist() == [40]
    assert model.recommend(1, n=4, exclude_seen=False)["item"].to_pylist() == [20, 30, 40, 10]
    assert model.recommend(history=[30, 10], n=2)["item"].to_pylist() == [20, 40]


@pytest.mark.parametrize("model", BOTH[1:])
def test_new_rows_are_learned_from_by_the_settings_that_were_chosen(model):
    data = chains()
    late = data.user_index >= 200
    old, new = data.take(~late), data.take(late)
    ours, whole = model.fit(old).partial_fit(new), type(model)(**model.get_params()).fit(data)
    assert_allclose(ours.score_block(np.arange(220, 230)), whole.score_block(np.arange(220, 230)), rtol=1e-5, atol=1e-6)
    model.partial_fit(Interactions.from_arrays([9999, 9999], [3, 77], timestamps=[1, 2]))  # a new user, a new item
    assert model.recommend(9999, n=30)["item"].to_pylist()
    with pytest.raises(DataError, match="with timestamps"):
        model.partial_fit(Interactions.from_arrays([1, 1], [1, 2]))


def test_neighbors_stand_beside_as_they_are_alone():
    data = chains()
    plain = Transitions(**GIVEN).fit(data)
    beside = Transitions(**GIVEN, undirected=2.0, recency=4.0).fit(data)
    alone = tnr.NeighborRidge(neighbors=100, regularization=80.0, recency=4.0).fit(data)
    users = np.arange(50)
    expected = plain.score_block(users) + 2.0 * alone.score_block(users)
    assert_allclose(beside.score_block(users), expected, rtol=1e-4, atol=1e-5)
    kinds = {row["what"] for row in beside.explain(history=[3, 10], item=11).to_pylist()}
    assert kinds == {"transitions", "undirected", "bias"}


def test_what_is_popular_of_late_stands_beside():
    rows = [(user, item, 10**8 * (item >= 10) + user) for user in range(40) for item in range(20) if (user + item) % 3]
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    data = Interactions.from_arrays(users, items, timestamps=times)
    scores = Transitions(**GIVEN, recent_popularity=100.0).fit(data).score_history(np.array([0]), None)
    assert scores[10:].min() > scores[:10].max()


def test_pauses_fade_what_came_before():
    plain, half = (Transitions(**GIVEN, half_life=one).fit(chains(users=50)) for one in (None, 1000.0))
    one, other = (model.score_history(np.array([10]), None)[11] for model in (plain, half))
    assert 0 < other < one  # users take a step every 1000 seconds
    data = Interactions.from_arrays([1] * 3 + [2] * 3, [1, 2, 3] * 2, timestamps=[0, 1, 2, 0, 10**9, 10**9 + 1])
    model = Transitions(**GIVEN, sessions=100.0, across_sessions=0.0, undirected=1.0).fit(data)
    first = model.item_map.index([1])[0]
    past = model.fitted.arrays["seen_past"][model.fitted.indices == first]
    assert past[0].all()
    assert not past[1].any()  # what is behind a pause is no past for scores, either


def test_items_that_are_taken_again():
    rows = [(user, item, time) for user in range(60) for time, item in enumerate((user + k) % 12 for k in range(6))]
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    counts = [9.0 if item == (user + 1) % 12 else 1.0 for user, item in zip(users, items, strict=True)]
    data = Interactions.from_arrays(users, items, weights=counts, timestamps=times)
    model = Transitions(**GIVEN, repeats=100.0, feedback="weights").fit(data)
    often, last = model.recommend(5, n=2, exclude_seen=False)["item"].to_pylist()
    assert (often, last) == (6, 10)  # what was taken nine times, then what was taken last
    assert "repeats" in {row["what"] for row in model.explain(user=5, item=6).to_pylist()}
