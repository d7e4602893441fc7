"""Model files that a stranger made, or an accident: refused in one sentence, whatever they hold; never a crash.

Crafted files have right checksums: they are written by `write_file`, as an attacker would.
"""

import os
import threading
from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import save_file

from topnrank import (
    EASE,
    Interactions,
    ModelFileError,
    NeighborRidge,
    ParameterError,
    Popularity,
    TopNRank,
    load,
    synthetic,
)
from topnrank import (
    MODELS as KINDS,
)
from topnrank.io import tensors
from topnrank.io.tensors import read_file, write_file

DATA = synthetic(20, 15, 120, seed=3)
TIMED = Interactions.from_arrays(DATA.user_index, DATA.indices, timestamps=np.arange(len(DATA)) * 7 % 100)
N_ITEMS, ROWS = DATA.n_items, len(DATA)
MODELS = {
    "popularity": lambda: Popularity(),
    "history": lambda: TopNRank(factors=3, epochs=1),
    "factors": lambda: TopNRank(factors=3, epochs=1, user_representation="factors"),
    "catalog": lambda: TopNRank(factors=3, epochs=1, task="catalog", neighbors=4),
    "ridge": lambda: NeighborRidge(neighbors=4),
    "ease": lambda: EASE(),
    "dislikes": lambda: EASE(dislikes=True),
    "transitions": lambda: KINDS["transitions"](),
    "next item": lambda: KINDS["next-item-ridge"](neighbors=4),
    "item ids": lambda: KINDS["item-id-order"](),
}
TIMED_MODELS = ("transitions", "next item", "item ids")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        make().fit(TIMED if name in TIMED_MODELS else DATA).save(folder / name)
    return folder


def crafted(source, target, arrays=None, facts=None):
    """A copy with other arrays (or functions of the old ones; None takes one away) and facts, and right checksums."""
    found, old = read_file(source, "model")
    for name, change in (arrays or {}).items():
        old[name] = change(old[name].copy()) if callable(change) else change
    kept = {name: array for name, array in old.items() if array is not None}
    write_file(target, "model", kept, {k: v for k, v in found.items() if k not in ("kind", "format")} | (facts or {}))
    return target


def put(place, value):
    """A change of one number."""

    def change(array):
        array[place] = value
        return array

    return change


SEEN = [
    ("seen.indices", put(0, 2**31 - 1)),
    ("seen.indices", put(0, -(2**31))),
    ("seen.indices", put(0, -1)),
    ("seen.indices", put(-1, N_ITEMS)),
    ("seen.indices", lambda a: a.astype(np.int64)),
    ("seen.indices", lambda a: a[:-1]),
    ("seen.indices", lambda a: a.reshape(-1, 1)),
    ("seen.indices", lambda a: a[::-1].copy()),
    ("seen.indptr", put(3, 2**62)),
    ("seen.indptr", put(3, -5)),
    ("seen.indptr", put(0, 1)),
    ("seen.indptr", put(-1, ROWS + 1)),
    ("seen.indptr", lambda a: a[::-1].copy()),
    ("seen.indptr", lambda a: a.astype(np.float64)),
    ("seen.indptr", lambda a: a[:0]),
    ("user_ids", lambda a: a[::-1].copy()),
    ("user_ids", lambda a: a.reshape(-1, 1)),
    ("item_ids", lambda a: a.astype(np.float32)),
    ("item_ids", lambda a: a[:-1]),
]
LEARNED = [
    ("history", "user_factors", lambda a: np.tile(a, 50)),
    ("history", "user_factors", lambda a: a[:, :1].copy()),
    ("history", "user_factors", lambda a: a.astype(np.float64)),
    ("history", "item_factors", lambda a: a[:, :1].copy()),
    ("history", "item_factors", lambda a: a[:, :0].copy()),
    ("history", "item_factors", lambda a: a.reshape(-1)),
    ("history", "item_factors", put((0, 0), np.nan)),
    ("history", "user_factors", put((0, 0), np.inf)),
    ("history", "history_factors", None),
    ("history", "rating_factors", lambda a: a[:, :2].copy()),
    ("history", "item_offsets", None),
    ("history", "item_bias", put(0, -np.inf)),
    ("history", "item_bias", lambda a: np.tile(a[:, None], 3)),
    ("history", "seen_values", put(0, np.nan)),
    ("history", "seen_values", lambda a: a[:-1]),
    ("history", "surplus", np.zeros(N_ITEMS, np.float32)),
    ("factors", "user_factors", None),
    ("catalog", "neighbors", put((0, 0), N_ITEMS)),
    ("catalog", "neighbors", put((0, 0), -1)),
    ("catalog", "neighbors", put((0, 0), 2**31 - 1)),
    ("catalog", "neighbors", lambda a: a.astype(np.int64)),
    ("catalog", "neighbors", lambda a: a[:, :2].copy()),
    ("catalog", "neighbor_weights", lambda a: a[:, :1].copy()),
    ("catalog", "neighbor_weights", put((0, 0), np.nan)),
    ("catalog", "neighbor_scale", put(0, np.nan)),
    ("catalog", "neighbor_scale", lambda a: np.tile(a, 2)),
    ("catalog", "seen_liked", lambda a: a.astype(np.float32)),
    ("catalog", "seen_liked", None),
    ("ridge", "neighbors", put((0, 0), -7)),
    ("ridge", "neighbor_weights", None),
    ("ease", "item_weights", lambda a: a[:, :3].copy()),
    ("ease", "item_weights", put((0, 0), np.nan)),
    ("ease", "seen_weights", None),
    ("dislikes", "item_dislikes", None),
    ("dislikes", "item_dislikes", lambda a: a[:, :3].copy()),
    ("popularity", "item_bias", None),
    ("item ids", "user_last_item", put(0, N_ITEMS)),
    ("item ids", "user_last_item", put(0, -1)),
    ("transitions", "link_targets", put(0, N_ITEMS)),
    ("transitions", "link_targets", put(0, -1)),
    ("transitions", "link_targets", lambda a: a[::-1].copy()),
    ("transitions", "link_targets", lambda a: a.astype(np.int64)),
    ("transitions", "link_values", put(0, np.nan)),
    ("transitions", "link_values", lambda a: a[:-1]),
    ("transitions", "item_link_counts", put((0, 0), -1)),
    ("transitions", "item_link_counts", put((0, 0), 2**31 - 1)),
    ("transitions", "item_link_counts", lambda a: np.tile(a, 2)),
    ("transitions", "item_link_counts", None),
    ("transitions", "seen_past", lambda a: np.tile(a, 2)),
    ("transitions", "seen_past", lambda a: a[:, 0].copy()),
    ("next item", "seen_past", None),
    ("next item", "seen_past", put((0, 0), np.nan)),
    ("next item", "item_link_counts", lambda a: a[:, :1].copy()),
]


def refused(path):
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["popularity", "catalog", "ease"])
@pytest.mark.parametrize(("name", "change"), SEEN)
def test_ids_and_seen_items_that_cannot_be_are_refused(files, tmp_path, kind, name, change):
    refused(crafted(files / kind, tmp_path / "crafted", {name: change}))


@pytest.mark.parametrize(("kind", "name", "change"), LEARNED)
def test_learned_arrays_that_cannot_be_are_refused(files, tmp_path, kind, name, change):
    refused(crafted(files / kind, tmp_path / "crafted", {f"model.{name}": change}))


@pytest.mark.parametrize(
    "facts",
    [
        {"info": []},
        {"info": {"task": "x"}},
        {"info": {"value": 3}},
        {"info": {"rows": "many"}},
        {"info": {"residual_mean": "1"}},
        {"info": {"residual_mean": float("nan")}},
        {"info": {"type_weights": []}},
        {"info": {"type_weights": [1.0, "a"]}},
        {"info": {"history": {"a": 1}}},
        {"info": {"history": [3]}},
        {"info": {"feedback": 4}},
        {"info": {"feedback": {}}},
        {"info": {"feedback": {"kind": "unheard"}}},
        {"info": {"feedback": {"kind": "threshold", "at": "x"}}},
        {"info": {"unheard": 4}},
        {"info": {"best_round": 1.5}},
        {"parameters": []},
        {"parameters": {"factors": "3"}},
        {"parameters": {"factors": -1}},
        {"parameters": {"smoothing": {"object": "os.system"}}},
        {"parameters": {"feedback": {"feedback": 3}}},
        {"parameters": {"regularization": {"mapping": 3}}},
        {"parameters": {"learning_rate": 10**400}},
        {"versions": None},
        {"versions": {"numpy": 3}},
        {"model": ["history"]},
        {"model": None},
    ],
    ids=str,
)
def test_facts_of_another_type_are_refused(files, tmp_path, facts):
    refused(crafted(files / "history", tmp_path / "crafted", facts=facts))


@pytest.mark.parametrize(
    "facts",
    [
        {"info": {}, "parameters": {"decays": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "transitions": 0}},
        {"info": {}, "parameters": {"decays": [0.5], "transitions": 0}},
        {"info": {}, "parameters": {"head": 10**40, "decays": [0.0, 0.8, 0.97], "transitions": 0.1}},
        {"info": {"chosen": {"decays": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "transitions": 0.1}}},
        {"info": {"chosen": {"decays": [0.0, 0.8, float("nan")], "transitions": 0.1}}},
        {"info": {"chosen": {"unheard": 1}}},
        {"info": {"chosen": {}}},
        {"info": {}},
    ],
    ids=str,
)
def test_settings_that_are_not_those_of_the_links_are_refused(files, tmp_path, facts):
    """A history would be read at more scales than there are: beyond the end of the links."""
    refused(crafted(files / "next item", tmp_path / "crafted", facts=facts))


@pytest.mark.parametrize("kind", ["popularity", "history", "factors", "catalog", "ridge"])
def test_a_bias_of_next_items_without_links_is_refused(files, tmp_path, kind):
    refused(crafted(files / kind, tmp_path / "crafted", {"model.item_next_bias": np.zeros(N_ITEMS, np.float32)}))


@pytest.mark.parametrize("chosen", [{"neighbors": "x"}, {"unheard": 3}, {"factor_weight": [1]}, {"regularization": -1}])
def test_choices_that_no_training_makes_are_refused(files, tmp_path, chosen):
    facts, _ = read_file(files / "catalog", "model")
    refused(crafted(files / "catalog", tmp_path / "crafted", facts={"info": facts["info"] | {"chosen": chosen}}))


@pytest.mark.parametrize("kind", ["history", "factors", "catalog"])
def test_a_length_of_vectors_that_is_not_that_of_the_arrays_changes_nothing(files, tmp_path, kind):
    """`set_params` may say anything of the next fit: vectors of new users have the length of those that are there."""
    facts, _ = read_file(files / kind, "model")
    history = [(item, 4.0) for item in DATA.items.ids[:3].tolist()]
    answer = load(files / kind).recommend(history=history)
    other = crafted(files / kind, tmp_path / "crafted", facts={"parameters": facts["parameters"] | {"factors": 40}})
    assert load(other).recommend(history=history).equals(answer)


@pytest.mark.parametrize(
    "info",
    [
        {"liked": {}},
        {"liked": {"at": "x"}},
        {"liked": {"at": 4.0, "more": 1}},
        {"value": None},
        {"half_life_days": "soon"},
    ],
    ids=str,
)
def test_facts_that_histories_need_are_refused(files, tmp_path, info):
    facts, _ = read_file(files / "history", "model")
    kept = {name: value for name, value in (facts["info"] | info).items() if value is not None}
    refused(crafted(files / "history", tmp_path / "crafted", facts={"info": kept}))


@pytest.mark.parametrize("penalties", [None, [], [1.0], [0.0, 1.0]], ids=str)
def test_penalties_that_are_none_of_ease_are_refused(files, tmp_path, penalties):
    facts, _ = read_file(files / "ease", "model")
    refused(crafted(files / "ease", tmp_path / "crafted", facts={"info": facts["info"] | {"penalties": penalties}}))


def test_text_ids_that_do_not_divide_their_text_are_refused(tmp_path):
    names = np.array([f"i{number}" for number in range(N_ITEMS)], object)
    data = Interactions.from_arrays(DATA.user_index, names[DATA.indices])
    Popularity().fit(data).save(tmp_path / "text")
    assert load(tmp_path / "text").recommend(n=1).num_rows
    for place, value in [(0, 2**40), (0, -1), (-1, 3)]:
        refused(crafted(tmp_path / "text", tmp_path / "crafted", {"item_ids.ends": put(place, value)}))
    refused(crafted(tmp_path / "text", tmp_path / "crafted", {"item_ids.utf8": put(0, 0xFF)}))


def test_a_feedback_that_the_file_does_not_hold_is_one_sentence(files, tmp_path):
    facts, _ = read_file(files / "ridge", "model")
    info = {name: value for name, value in facts["info"].items() if name != "feedback"}
    model = load(crafted(files / "ridge", tmp_path / "crafted", facts={"info": info}))
    with pytest.raises(ParameterError, match="put it back with set_params"):
        model.recommend(history=[(item, 4.0) for item in model.item_ids_[:3].tolist()])


def test_metadata_nested_without_end_are_refused(tmp_path):
    save_file({"a": np.zeros(1)}, tmp_path / "deep", metadata={"topnrank": "[" * 100_000 + "]" * 100_000})
    refused(tmp_path / "deep")
    head = b"[" * 100_000
    (tmp_path / "deep").write_bytes(len(head).to_bytes(8, "little") + head)
    refused(tmp_path / "deep")


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_every_changed_bit_is_noticed(files, tmp_path, kind):
    """What loads after all gives the same answers: a bit in the padding of the head."""
    content, answer = (files / kind).read_bytes(), load(files / kind).recommend(n=3)
    draw = np.random.default_rng(1)
    for place in draw.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[place] ^= 1 << int(draw.integers(8))
        (tmp_path / "changed").write_bytes(changed)
        with suppress(ModelFileError):
            assert load(tmp_path / "changed").recommend(n=3).equals(answer)


def test_a_zeroed_page_is_noticed_and_named(files, tmp_path):
    content = bytearray((files / "history").read_bytes())
    content[-64:] = bytes(64)
    (tmp_path / "zeroed").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"is damaged: the array .* is not what was written, by its checksum"):
        load(tmp_path / "zeroed")


def test_of_a_large_file_the_head_is_compared_at_once_and_all_of_it_on_demand(files, tmp_path, monkeypatch):
    monkeypatch.setattr(tensors, "VERIFIED_BYTES", 0)
    monkeypatch.setattr("topnrank.models.persistence.VERIFIED_BYTES", 0)
    content = bytearray((files / "history").read_bytes())
    place = content.index(load(files / "history").fitted.arrays["user_factors"].tobytes())
    content[place] ^= 1
    (tmp_path / "changed").write_bytes(content)
    load(tmp_path / "changed")
    for options in ({"verify": True}, {"mapped": False}):
        with pytest.raises(ModelFileError, match=r"the array model\.user_factors is not what was written"):
            load(tmp_path / "changed", **options)
    content[content.index(b'"factors')] ^= 1
    (tmp_path / "changed").write_bytes(content)
    refused(tmp_path / "changed")


def test_a_file_replaced_while_it_is_opened_is_the_old_or_the_new_one(files, tmp_path):
    """A server reloads while a training saves: never the parameters of one model with the numbers of the other."""
    path, done = tmp_path / "served", threading.Event()
    answers = {}
    for factors in (2, 3):
        model = TopNRank(factors=factors, epochs=1, seed=factors).fit(DATA)
        model.save(tmp_path / str(factors))
        answers[factors] = model.recommend(n=3)

    def swap():
        turn = 0
        while not done.is_set():
            turn += 1
            os.link(tmp_path / str(2 + turn % 2), tmp_path / "next")
            os.replace(tmp_path / "next", path)

    os.link(tmp_path / "2", path)
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            model = load(path)
            assert model.recommend(n=3).equals(answers[model.factors])
    finally:
        done.set()
        thread.join()


def test_a_pipe_is_no_model_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a regular file but a pipe or a device"):
        load(tmp_path / "pipe")
