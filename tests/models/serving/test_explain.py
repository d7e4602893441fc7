"""Reasons beyond what every model must pass (`topnrank.testing.models.insight`): known users, files, all kinds of data."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank import BPR, EventWeights, Interactions, ModelFileError, ParameterError, TopNRank, load
from topnrank.io.tensors import read_file, write_file
from topnrank.models.serving.explain import OneHistory
from topnrank.testing.base import ratings_of, seen_items, small_data, small_split, with_text_ids

USERS, IDS = list(range(1, 121)), list(range(1, 61))
"""The ids of `small_data`."""


@cache
def fitted():
    return TopNRank(task="rated", factors=6, epochs=8).fit(small_split()[0])


def sums(table):
    """The sum of the parts of each pair, pairs in the order of the table."""
    found = {}
    for row in table.to_pylist():
        found[row["user"], row["item"]] = found.get((row["user"], row["item"]), 0.0) + row["part"]
    return list(found.values())


@given(pairs=st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(IDS)), min_size=1, max_size=6, unique=True))
def test_the_parts_make_the_scores_of_pairs_in_the_order_asked(pairs):
    users, items = zip(*pairs, strict=True)
    table = fitted().explain(users, items)
    found = list(dict.fromkeys(zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)))
    assert found == pairs
    np.testing.assert_allclose(sums(table), fitted().score(users, items), rtol=1e-4, atol=1e-5)


def test_the_reasons_are_the_items_of_the_user_and_the_bias():
    user = USERS[12]
    table = fitted().explain(user, IDS[3]).to_pylist()
    assert {row["because"] for row in table if row["what"] == "history"} == seen_items(fitted(), user)
    (bias,) = (row for row in table if row["what"] == "bias")
    assert (bias["because"], bias["part"]) == (None, fitted().item_bias_[3])


def test_without_an_item_the_score_loses_its_part():
    """What a part means: with the scale of the history as it is, the score falls by the part of the item left out."""
    history = ratings_of(small_split()[1], 9)
    items = fitted().item_numbers(list(history))
    parts = fitted().contributions(OneHistory(items, np.array(list(history.values()))), np.array([5]))
    vectors = parts.parts["history"][0]
    for left_out in range(3):
        rest = np.delete(vectors, left_out).sum() + parts.rest["bias"][0]
        whole = fitted().score_history(items, np.array(list(history.values())))[5]
        assert whole - rest == pytest.approx(vectors[left_out], abs=1e-5)


def test_a_disliked_item_pulls_down_what_is_like_it():
    """Two camps: who likes one dislikes the other. The reasons for an item of a camp are the items of that camp."""
    users, items = np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60)
    same = (users % 2) == (items % 2)
    keep = np.random.default_rng(0).random(600) < 0.7
    data = Interactions.from_arrays(users[keep], items[keep], ratings=np.where(same, 5.0, 1.0)[keep])
    model = TopNRank(task="rated", factors=4, epochs=40).fit(data)
    table = [row for row in model.explain(history={2: 5, 4: 5, 3: 1}, item=[0, 1]).to_pylist() if row["because"]]
    assert all(row["part"] > 0 for row in table if row["item"] == 0)
    assert all(row["part"] < 0 for row in table if row["item"] == 1)


@pytest.mark.parametrize("values", ["ratings", "weights", "events", "likes"])
def test_known_users_of_all_kinds_of_data(values):
    train = small_split()[0]
    users, items = train.users.ids[train.user_index], train.items.ids[train.indices]
    model = TopNRank(task="rated", factors=4, epochs=3)
    if values == "events":
        types = np.array(["hide", "view", "buy"])[np.digitize(train.ratings, [2, 4])].tolist()
        data = Interactions.from_arrays(users, items, types=types)
        model = TopNRank(
            task="rated", factors=4, epochs=3, feedback=EventWeights({"view": 0.2, "buy": 1.0, "hide": -1.0})
        )
    elif values == "likes":
        data, model = Interactions.from_arrays(users, items), BPR(factors=4, epochs=3, negatives=10)
    else:
        data = Interactions.from_arrays(users, items, **{values: train.ratings - 3.0})
    model.fit(data)
    some = model.user_ids_[:9]
    np.testing.assert_allclose(
        sums(model.explain(some, model.item_ids_[4])), model.score(some, model.item_ids_[4]), rtol=1e-4, atol=1e-5
    )


def test_rows_held_out_for_validation_are_reasons_too():
    model = TopNRank(task="rated", factors=4, epochs=3).fit(small_data(), validation=0.3)
    table = model.explain(USERS[:5], IDS[2])
    np.testing.assert_allclose(sums(table), model.score(USERS[:5], IDS[2]), rtol=1e-4, atol=1e-5)
    reasons = {row["because"] for row in table.to_pylist() if row["user"] == USERS[0] and row["what"] == "history"}
    assert reasons == set(ratings_of(small_data(), 0))


def test_a_loaded_model_gives_the_same_reasons(tmp_path):
    model = TopNRank(task="rated", factors=4, epochs=2).fit(with_text_ids(small_split()[0]))
    model.save(tmp_path / "model.safetensors")
    pairs = model.user_ids_[:4], model.item_ids_[0]
    assert load(tmp_path / "model.safetensors").explain(*pairs).equals(model.explain(*pairs))


def test_a_file_without_the_values_of_histories_says_what_to_do(tmp_path):
    path = tmp_path / "model.safetensors"
    fitted().save(path)
    facts, arrays = read_file(path, "model")
    kept = {name: array for name, array in arrays.items() if name != "model.seen_values"}
    assert len(kept) == len(arrays) - 1
    write_file(path, "model", kept, facts)
    old = load(path)
    with pytest.raises(ParameterError, match=r"does not hold the values of its users' histories.*train it again"):
        old.explain(USERS[0], IDS[0])
    assert old.explain(history={IDS[1]: 4}, item=IDS[0]).num_rows == 2
    write_file(path, "model", arrays | {"model.seen_values": arrays["model.seen_values"][1:]}, facts)
    with pytest.raises(ModelFileError, match="seen_values has"):
        load(path)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({}, "give a user and an item"),
        ({"user": USERS[0]}, "give a user and an item"),
        ({"history": IDS[:2]}, "give the item to explain"),
        ({"user": USERS[0], "item": IDS[0], "history": IDS[:2]}, "a user or a history, not both"),
        ({"user": USERS[:3], "item": IDS[:2]}, "explain: 3 users and 2 items make no pairs"),
        ({"user": [], "item": []}, "there are no pairs"),
        ({"user": "nobody", "item": IDS[0]}, "does not know user 'nobody'"),
        ({"user": USERS[0], "item": "nothing"}, "does not know item 'nothing'"),
        ({"history": [], "item": IDS[0]}, "the history is empty"),
    ],
)
def test_a_bad_question_is_one_clear_sentence(question, words):
    with pytest.raises(ValueError, match=words):
        fitted().explain(**question)
