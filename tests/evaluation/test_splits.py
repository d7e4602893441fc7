"""Train and test parts: sizes, independence, order and errors."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank import Popularity
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation import evaluate, split_last, split_last_session, split_per_user, split_time


def pairs(data):
    users, items = data.users.ids[data.user_index], data.items.ids[data.indices]
    return set(zip(users.tolist(), items.tolist(), strict=True))


def table(n_users=20, n_items=40, seed=0, text=False):
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.4)
    times = rng.integers(0, 50, len(users))
    name = (lambda kind, ids: [f"{kind}{i}" for i in ids]) if text else (lambda kind, ids: ids)
    return Interactions.from_arrays(name("u", users), name("i", items), timestamps=times)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.29])
def test_per_user_takes_the_floor_of_each_users_items(share, text):
    data = table(text=text)
    train, test = split_per_user(data, test=share, seed=3)
    m = np.diff(data.indptr)
    assert np.diff(test.indptr).tolist() == np.floor(m * share + 1e-9).astype(int).tolist()
    assert pairs(train) | pairs(test) == pairs(data)
    assert not pairs(train) & pairs(test)
    assert train.users is data.users
    assert test.items is data.items


def test_floor_is_not_fooled_by_rounding():
    data = Interactions.from_arrays([0] * 100, range(100))
    assert len(split_per_user(data, test=0.29)[1]) == 29  # 0.29 * 100 = 28.999999999999996


def test_a_user_with_one_item_keeps_it_in_train():
    train, test = split_per_user(Interactions.from_arrays([0, 1, 1], [5, 5, 6]), test=0.9)
    assert (0, 5) in pairs(train)
    assert len(test) == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_a_users_part_depends_neither_on_other_users_nor_on_row_order(seed, random):
    data = table()
    whole = {pair for pair in pairs(split_per_user(data, seed=seed)[1]) if pair[0] == 7}
    rows = [pair for pair in pairs(data) if pair[0] in (7, 3)]
    random.shuffle(rows)
    alone = Interactions.from_arrays(*zip(*rows, strict=True))
    assert whole == {pair for pair in pairs(split_per_user(alone, seed=seed)[1]) if pair[0] == 7}


def test_seeds_differ_and_repeat():
    data = table()
    first, again, other = (pairs(split_per_user(data, seed=seed)[1]) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_every_item_is_as_likely_as_any_other():
    data = Interactions.from_arrays(np.repeat(np.arange(4000), 6), np.tile(np.arange(6), 4000))
    counts = np.bincount(split_per_user(data, test=0.5)[1].indices, minlength=6)
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(4000 / 4)


def test_types_of_one_item_stay_together():
    data = Interactions.from_arrays([0] * 8, [0, 0, 1, 1, 2, 2, 3, 3], types=["buy", "view"] * 4, timestamps=range(8))
    for train, test in (split_per_user(data), split_last(data, test=2)):
        assert len(test) == 4
        assert not pairs(train) & pairs(test)


@pytest.mark.parametrize("many", [False, True])
def test_ties_in_the_order_of_the_file(many, monkeypatch):
    if many:
        monkeypatch.setattr("topnrank.data.many_rows.MANY", 1)
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((30, 25)) < 0.4)
    order = rng.permutation(len(users))
    users, items, times = users[order], items[order], rng.integers(0, 4, len(users))
    data = Interactions.from_arrays(users, items, timestamps=times, keep_order=True)
    last = {}
    for place in np.lexsort((np.arange(len(users)), times)).tolist():  # the latest, of these the one furthest down
        last[int(users[place])] = int(items[place])
    test = split_last(data, ties="file")[1]
    assert pairs(test) == set(last.items())
    assert test.ties is not None
    assert "in the order of the file" in str(test.ties)
    with pytest.raises(DataError, match="read them with keep_order=True"):
        split_last(Interactions.from_arrays(users, items, timestamps=times), ties="file")
    assert data.fingerprint() != Interactions.from_arrays(users, items, timestamps=times).fingerprint()


@pytest.mark.parametrize("rule", ["last", "sum"])
def test_of_repeated_rows_the_latest_gives_the_place(rule):
    rows = {"users": [0, 0, 0, 0], "items": [7, 8, 7, 9], "timestamps": [5, 5, 5, 5], "weights": [1, 1, 1, 1]}
    data = Interactions.from_arrays(**rows, duplicates=rule, keep_order=True)
    assert dict(zip(data.items.ids[data.indices].tolist(), data.places.tolist(), strict=True)) == {7: 2, 8: 1, 9: 3}


def test_every_split_by_time_tells_how_many_rows_are_tied():
    data = Interactions.from_arrays([0, 0, 0, 1, 1], [1, 2, 3, 1, 2], timestamps=[1, 2, 2, 1, 3])
    for parts, rule in (
        (split_last(data), "random"),
        (split_last_session(data, gap=0.5), "together"),
        (split_time(data), "together"),
    ):
        assert [(part.ties.rule, part.ties.share) for part in parts] == [(rule, 0.4)] * 2
    huge = Interactions.from_arrays([0, 0, 0, 1], [1, 2, 3, 1], timestamps=[-(2**62), 2**62, 2**62, 1])
    assert split_time(huge)[1].ties.share == 0.5
    model = Popularity().fit(split_last(data)[0])
    told = str(evaluate(model, split_last(data)[1], protocol="catalog", relevant=None))
    assert (
        "40% of the rows share their moment with another item of the same user, and were taken in random order" in told
    )


def test_last_takes_the_latest_and_breaks_ties_as_told():
    data = Interactions.from_arrays([0, 0, 0, 1, 2, 2], [4, 2, 3, 9, 1, 2], timestamps=[5, 9, 9, 1, 8, 7])
    train, test = split_last(data, ties="item")
    assert pairs(test) == {(0, 3), (2, 1)}
    for ties in ("item", "random"):
        assert pairs(split_last(data, test=2, ties=ties)[1]) == {(0, 2), (0, 3), (2, 1)}
    assert (1, 9) in pairs(train)
    with pytest.raises(DataError, match=r"2 of 6 rows share their moment .* user 0 at timestamp 9"):
        split_last(data, ties="error")
    with pytest.raises(ParameterError, match="ties must be one of"):
        split_last(data, ties="row")


def test_items_of_one_moment_are_last_at_random():
    users = np.repeat(np.arange(4000), 3)
    data = Interactions.from_arrays(users, np.tile([1, 2, 3], 4000), timestamps=np.tile([5, 9, 9], 4000))
    counts = np.bincount(split_last(data)[1].indices, minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - 2000) < 5 * np.sqrt(4000 / 4)
    first, again, other = (pairs(split_last(data, seed=seed)[1]) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_last_session_of_each_user_with_two():
    data = Interactions.from_arrays([0, 0, 0, 0, 1, 1, 2], [4, 2, 3, 5, 1, 2, 1], timestamps=[1, 9, 100, 104, 1, 6, 7])
    train, test = split_last_session(data, gap=10)
    assert pairs(test) == {(0, 3), (0, 5)}
    assert pairs(split_last_session(data, gap=4.5)[1]) == {(0, 3), (0, 5), (1, 2)}
    assert len(train) + len(test) == len(data)
    with pytest.raises(DataError, match="no user has items enough"):
        split_last_session(data, gap=1000)
    with pytest.raises(ParameterError, match="gap must be a finite number above 0"):
        split_last_session(data, gap=0)


def test_time_cuts_all_users_at_one_moment():
    data = Interactions.from_arrays([0, 0, 1, 1, 2], [1, 2, 1, 2, 1], timestamps=[10, 20, 30, 30, 40])
    assert pairs(split_time(data, test=0.2)[1]) == {(2, 1)}
    assert pairs(split_time(data, test=0.4)[1]) == {(1, 1), (1, 2), (2, 1)}  # 30 stays together
    assert pairs(split_time(data, at=20)[0]) == {(0, 1)}


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, float("nan"), "half", None])
def test_a_share_lies_between_zero_and_one(share):
    for split in (split_per_user, split_time):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            split(table(), test=share)


def test_bad_input_is_named():
    plain = Interactions.from_arrays([0, 0, 1], [0, 1, 0])
    for split in (split_last, split_time, partial(split_last_session, gap=1)):
        with pytest.raises(DataError, match="needs timestamps"):
            split(plain)
    for count in (0, 0.5, True):
        with pytest.raises(ParameterError, match="at least 1"):
            split_last(table(), test=count)
    with pytest.raises(ParameterError, match="seed"):
        split_per_user(plain, seed=-1)
    with pytest.raises(DataError, match="no user has items enough"):
        split_per_user(Interactions.from_arrays([0, 1], [0, 0]))
    same = Interactions.from_arrays([0, 0], [0, 1], timestamps=[3, 3])
    with pytest.raises(DataError, match="leaves no rows for train: timestamps lie between 3 and 3"):
        split_time(same, test=0.5)
    with pytest.raises(DataError, match="leaves no rows for test"):
        split_time(same, at=4)
