"""OutputOptions of those who ask for lists, beyond what every model must pass (`topnrank.testing.models.filters`)."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank import BPR, EventWeights, Interactions, ItemMean, ParameterError, Popularity, TopNRank
from topnrank.models.serving.histories import many_histories
from topnrank.models.serving.recommend import BLOCK_BYTES
from topnrank.testing.base import ratings_of, small_split, with_text_ids

USERS, IDS = list(range(1, 121)), list(range(1, 61))
"""The ids of `small_data`."""


@cache
def fitted():
    return TopNRank(factors=6, epochs=4).fit(small_split()[0])


@cache
def by_text():
    return TopNRank(factors=6, epochs=4).fit(with_text_ids(small_split()[0].compact()))


def lists(table):
    found = {}
    for row in table.to_pylist():
        found.setdefault(row["user"], []).append(row["item"])
    return found


@given(
    allowed=st.dictionaries(st.sampled_from(USERS[:6]), st.lists(st.sampled_from(IDS)), max_size=4),
    excluded=st.dictionaries(st.sampled_from(USERS[:6]), st.lists(st.sampled_from(IDS)), max_size=4),
    banned=st.lists(st.sampled_from(IDS), max_size=5),
)
def test_every_user_gets_the_best_of_what_is_left(allowed, excluded, banned):
    free = lists(fitted().recommend(USERS[:6], n=60))
    for exclude in (excluded, banned):
        got = lists(fitted().recommend(USERS[:6], n=4, items=allowed, exclude=exclude))
        for user, items in free.items():
            never = exclude.get(user, []) if isinstance(exclude, dict) else exclude
            left = [item for item in items if item in allowed.get(user, IDS) and item not in never]
            assert got.get(user, []) == left[:4]


def test_strangers_may_have_wishes_too():
    popular = lists(fitted().recommend([USERS[0], 999], n=60, unknown="popular"))
    wished = lists(fitted().recommend([USERS[0], 999], n=3, unknown="popular", exclude={999: popular[999][:2]}))
    assert wished == {USERS[0]: popular[USERS[0]][:3], 999: popular[999][2:5]}
    skipped = fitted().recommend([USERS[0], 999], n=3, unknown="skip", exclude={999: IDS[:1]})
    assert skipped.equals(fitted().recommend(USERS[0], n=3))


def test_users_may_be_named_as_text_or_as_numbers():
    one = USERS[3]
    expected = fitted().recommend([one], exclude={one: IDS[:30]})
    assert fitted().recommend([one], exclude={str(one): IDS[:30]}).equals(expected)
    assert fitted().recommend([one], exclude={np.int64(one): np.array(IDS[:30])}).equals(expected)
    assert fitted().recommend([str(one)], exclude={float(one): [str(item) for item in IDS[:30]]}).equals(expected)
    texts = by_text().item_ids_.tolist()
    wished = lists(by_text().recommend(by_text().user_ids_[:2], n=60, items={by_text().user_ids_[1]: texts[:9]}))
    assert set(wished[by_text().user_ids_[1]]) <= set(texts[:9])
    assert len(wished[by_text().user_ids_[0]]) > 9


def test_groups_from_frames_and_groups_that_are_none():
    group = dict(zip(IDS, np.arange(len(IDS)) % 3, strict=True))
    expected = fitted().recommend(n=5, groups=group, max_per_group=1)
    assert expected.num_rows == 3 * len(USERS)
    frame = pd.DataFrame({"item": IDS, "group": [f"g{group[item]}" for item in IDS]})
    assert fitted().recommend(n=5, groups=frame, max_per_group=1).equals(expected)
    free = {item for item in IDS if group[item] != 2}
    for nothing in (None, np.nan):
        holes = {item: nothing if item in free else "a" for item in IDS}
        for items in lists(fitted().recommend(n=5, groups=holes, max_per_group=1)).values():
            assert len(items) == 5
            assert len(set(items) - free) <= 1


def test_groups_of_a_catalog_that_is_larger_than_the_model():
    groups = {**dict.fromkeys(IDS, "one"), 123_456: "other", "unheard of": "other"}
    assert fitted().recommend(n=5, groups=groups, max_per_group=2).num_rows == 2 * len(USERS)


def test_wishes_go_together_and_through_blocks(monkeypatch):
    wishes = {
        "n": 6,
        "groups": {item: item % 4 for item in IDS},
        "max_per_group": 2,
        "min_score": float(np.median(fitted().score(USERS, IDS[0]))),
        "exclude": {user: IDS[user % 7 :: 9] for user in USERS[::2]},
    }
    whole = fitted().recommend(**wishes)
    histories = {f"n{user}": ratings_of(small_split()[1], user) for user in range(40)} | {"likes": IDS[:4]}
    new = fitted().recommend(histories=histories, n=6, groups=wishes["groups"], max_per_group=2)
    monkeypatch.setattr("topnrank.models.serving.recommend.BLOCK_BYTES", 4 * len(IDS) * 7)
    assert 4 * len(IDS) * len(USERS) < BLOCK_BYTES
    for table, blocks in (
        (whole, fitted().recommend(**wishes)),
        (new, fitted().recommend(histories=histories, n=6, groups=wishes["groups"], max_per_group=2)),
    ):
        assert lists(blocks) == lists(table)
        np.testing.assert_allclose(blocks["score"], table["score"], rtol=1e-5, atol=1e-6)


def test_a_model_may_score_many_histories_its_own_way(monkeypatch):
    asked = []

    def own_way(self, indptr, items, values):
        asked.append((indptr.tolist(), items.tolist(), None if values is None else values.tolist()))
        return np.tile(np.arange(len(self.item_map), dtype=np.float32), (len(indptr) - 1, 1))

    monkeypatch.setattr(Popularity, "score_histories", own_way)
    model = Popularity().fit(small_split()[0])
    histories = {"a": {IDS[0]: 4, IDS[1]: 2}, "b": IDS[2:5], "c": {IDS[3]: 1}}
    table = model.recommend(histories=histories, n=1)
    assert table["user"].to_pylist() == ["a", "b", "c"]
    assert table["item"].to_pylist() == [IDS[-1]] * 3
    assert asked == [([0, 2, 3], [0, 1, 3], [4.0, 2.0, 1.0]), ([0, 3], [2, 3, 4], None)]


def test_events_of_new_users_weigh_what_they_weighted_in_training():
    draw = np.random.default_rng(0)
    users, items = np.repeat(np.arange(40), 8), draw.integers(0, 15, 320)
    types = draw.choice(["view", "buy", "hide"], 320)
    data = Interactions.from_arrays(users, items, types=types.tolist(), duplicates="last")
    model = TopNRank(factors=4, epochs=2, feedback=EventWeights({"view": 0.2, "buy": 1.0, "hide": -1.0})).fit(data)
    new = Interactions.from_arrays([7, 7, 7, 9], [1, 1, 2, 3], types=["view", "buy", "hide", "buy"])
    weighted = model.weigh(new)
    named = {7: {1: float(weighted.weights[0]), 2: -1.0}, 9: {3: 1.0}}
    assert len(weighted) == 3
    assert model.recommend(histories=new, n=3).equals(model.recommend(histories=named, n=3))


def test_users_without_ratings_are_liked_items():
    likes = Interactions.from_arrays(["a", "a", "b"], [IDS[0], IDS[1], IDS[5]])
    model = BPR(factors=4, epochs=2).fit(small_split()[0])
    expected = model.recommend(histories={"a": IDS[:2], "b": [IDS[5]]}, n=3)
    assert model.recommend(histories=likes, n=3).equals(expected)


def test_histories_keep_the_order_of_the_mapping_and_numbers_stay_numbers():
    histories = {30: ratings_of(small_split()[1], 3), 4: ratings_of(small_split()[1], 5)}
    table = ItemMean().fit(small_split()[0]).recommend(histories=histories, n=2)
    assert table["user"].to_pylist() == [30, 30, 4, 4]
    whole = many_histories(fitted(), histories)
    assert whole.part(slice(1, 2)).items.tolist() == whole.take([1]).items.tolist() == whole.of(1).tolist()
    assert whole.part(slice(1, 9)).names.tolist() == whole.take([1]).names.tolist() == [4]


def test_an_option_that_does_not_exist_is_named_for_histories_too():
    with pytest.raises(ParameterError, match="did you mean 'max_per_group'"):
        fitted().recommend(histories={"a": IDS[:2]}, max_per_groups=2)
    with pytest.raises(ParameterError, match="did you mean 'min_score'"):
        fitted().recommend(history=IDS[:2], min_scor=2)


def test_users_known_by_id_alone_get_what_unknown_says():
    train = small_split()[0]
    stranger = USERS[3]
    rest = train.take(train.user_index != 3)
    model = TopNRank(factors=2, epochs=1).fit(rest)
    popular = lists(model.recommend([stranger, USERS[0]], n=5, unknown="popular"))
    assert popular[stranger] == Popularity().fit(rest).recommend([stranger], n=5)["item"].to_pylist()
    assert popular[USERS[0]] == lists(model.recommend([USERS[0]], n=5))[USERS[0]]
    assert stranger not in lists(model.recommend(n=5, unknown="skip"))
    assert lists(model.recommend(n=5, unknown="popular"))[stranger] == popular[stranger]
    assert len(lists(model.recommend([stranger], n=5))[stranger]) == 5
