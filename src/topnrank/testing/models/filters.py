"""Filters of recommend: candidates of single users, lowest scores, groups; histories of many users."""

# ruff: noqa: D102 (the name of a test says what it tests)

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError, UnknownIdError
from topnrank.models.base import Model
from topnrank.testing.base import ModelUnderTest, columns, is_close, ratings_of

UNKNOWN = 999_999


def items_of(table: pa.Table, user: Any) -> list[Any]:
    """The list of one user."""
    return [row["item"] for row in table.to_pylist() if row["user"] == user]


class FilterTests(ModelUnderTest):
    """Tests of the further options of recommend and recommend_to."""

    def test_candidates_and_exclusions_of_single_users(self, fitted: Model) -> None:
        (one, two, three), ids = fitted.user_ids_[[4, 9, 30]].tolist(), fitted.item_ids_.tolist()
        options: dict[str, Any] = {"items": {one: ids[:8], two: ids[5]}, "exclude": {str(one): ids[:3], three: []}}
        table = fitted.recommend([three, one, two], n=10_000, exclude_seen=False, **options)
        whole = fitted.recommend([three, one, two], n=10_000, exclude_seen=False)
        assert items_of(table, one) == [item for item in items_of(whole, one) if item in ids[3:8]]
        assert items_of(table, two) == [ids[5]]
        assert items_of(table, three) == items_of(whole, three)

    def test_bad_candidates_of_single_users(self, fitted: Model) -> None:
        user, item = fitted.user_ids_[0].item(), fitted.item_ids_[0].item()
        bad: list[tuple[Any, str]] = [
            ({UNKNOWN: [item]}, f"exclude names user {UNKNOWN}, whom the model does not know"),
            ({user: [item, UNKNOWN]}, f"exclude of user {user}: the model does not know item {UNKNOWN}"),
            ({user: None}, f"exclude of user {user} must be an item or a list"),
            ({user: item, str(user): item}, f"names user '{user}' twice"),
        ]
        for exclude, words in bad:
            with pytest.raises((ParameterError, UnknownIdError), match=words):
                fitted.recommend([user], exclude=exclude)
        with pytest.raises(ParameterError, match="exclude by user needs users or histories"):
            fitted.recommend(history=[item], exclude={user: [item]})

    def test_no_score_is_below_the_one_asked_for(self, fitted: Model) -> None:
        user = fitted.user_ids_[3]
        whole = columns(fitted.recommend(user, n=20))
        bar = whole["score"][6]
        kept = columns(fitted.recommend(user, n=20, min_score=bar))
        assert kept["item"] == [item for item, score in zip(whole["item"], whole["score"], strict=True) if score >= bar]
        nothing = fitted.recommend(user, n=20, min_score=whole["score"][0] + 1.0)
        assert (nothing.num_rows, nothing.schema) == (0, fitted.recommend(user).schema)
        for wrong in ("high", float("nan"), True):
            with pytest.raises(ParameterError, match="min_score must be a number"):
                fitted.recommend(user, min_score=wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize("most", [1, 2, 5])
    def test_lists_hold_so_many_of_a_group(self, fitted: Model, most: int, tmp_path: Path) -> None:
        ids = fitted.item_ids_.tolist()
        group = {item: f"g{place % 4}" for place, item in enumerate(ids) if place % 5}
        options: dict[str, Any] = {"n": 9, "max_per_group": most}
        table = fitted.recommend(groups=group, **options)
        for user in fitted.user_ids_[[0, 3, -1]].tolist():
            walk: list[Any] = []
            for item in items_of(fitted.recommend([user], n=10_000), user):
                same = [other for other in walk if item in group and group.get(other) == group[item]]
                if len(same) < most and len(walk) < 9:
                    walk.append(item)
            assert items_of(table, user) == walk
        frame = pa.table({"item": list(group), "group": list(group.values())})
        assert fitted.recommend(groups=frame, **options).equals(table)
        fitted.recommend_to(tmp_path / "lists.parquet", groups=frame, **options)
        assert pq.read_table(tmp_path / "lists.parquet").equals(table)

    def test_bad_groups_are_one_clear_sentence(self, fitted: Model) -> None:
        item = fitted.item_ids_[0].item()
        bad: list[tuple[dict[str, Any], str]] = [
            ({"max_per_group": 2}, r"groups .* is missing"),
            ({"groups": {item: "a"}}, "max_per_group .* is missing"),
            ({"groups": {item: "a"}, "max_per_group": 0}, "max_per_group must be an integer of at least 1"),
            ({"groups": {UNKNOWN: "a"}, "max_per_group": 1}, "no item of the model has a group"),
            ({"groups": {item: ["a"]}, "max_per_group": 1}, "one group for each item"),
            ({"groups": pa.table({"item": [item] * 2, "group": ["a", "b"]}), "max_per_group": 1}, "in two groups"),
            ({"groups": pa.table({"item": [item]}), "max_per_group": 1}, "needs the columns item and group"),
        ]
        for options, words in bad:
            with pytest.raises(ValueError, match=words):
                fitted.recommend(**options)

    def test_many_histories_are_served_like_each_alone(self, fitted: Model, test: Interactions, tmp_path: Path) -> None:
        histories: dict[Any, Any] = {f"new {user}": ratings_of(test, user) for user in (5, 2, 17)}
        liked = fitted.item_ids_[:3].tolist()
        with suppress(ParameterError):  # some models cannot do without ratings
            fitted.recommend(history=liked)
            histories["liked only"] = liked
        table = fitted.recommend(histories=histories, n=4)
        assert table.column_names == ["user", "item", "score", "rank"]
        assert table["user"].to_pylist() == [name for name in histories for _ in range(4)]
        for name, history in histories.items():
            alone = columns(fitted.recommend(history=history, n=4))
            own = columns(table.filter(pa.array([user == name for user in table["user"].to_pylist()])))
            assert own["item"] == alone["item"]
            assert is_close(own["score"], alone["score"])
        assert fitted.recommend_to(tmp_path / "lists.parquet", histories=histories, n=4) == table.num_rows
        assert pq.read_table(tmp_path / "lists.parquet").equals(table)

    def test_interactions_of_new_users_are_histories(self, fitted: Model, test: Interactions) -> None:
        some = replace(test.take(test.user_index < 6), timestamps=None)  # with times a history would go by them
        named = {int(user): ratings_of(test, number) for number, user in enumerate(test.users.ids[:6])}
        assert fitted.recommend(histories=some.compact(), n=3).equals(fitted.recommend(histories=named, n=3))
        with pytest.raises(ParameterError, match=r"the history of user 7 is empty.*compact"):
            fitted.recommend(histories=some, n=3)

    def test_filters_of_users_with_histories(self, fitted: Model, test: Interactions) -> None:
        ids, histories = fitted.item_ids_.tolist(), {"a": ratings_of(test, 1), "b": ratings_of(test, 3)}
        whole = fitted.recommend(histories=histories, n=10_000)
        table = fitted.recommend(histories=histories, n=10_000, items={"a": ids[:30]}, exclude={"b": ids[:30]})
        assert items_of(table, "a") == [item for item in items_of(whole, "a") if item in ids[:30]]
        assert items_of(table, "b") == [item for item in items_of(whole, "b") if item not in ids[:30]]
        with pytest.raises(UnknownIdError, match="exclude names user 'c', who has no history here"):
            fitted.recommend(histories=histories, exclude={"c": ids[:1]})

    def test_unknown_items_of_histories(self, fitted: Model, test: Interactions) -> None:
        known = ratings_of(test, 1)
        mixed, unknown = {**known, UNKNOWN: 4.0}, {UNKNOWN: 4.0, UNKNOWN + 1: 2.0}
        words = f"the history of user 'm': the model does not know item {UNKNOWN}; .*unknown_items='skip'"
        with pytest.raises(UnknownIdError, match=words):
            fitted.recommend(histories={"k": known, "m": mixed})
        skipped = fitted.recommend(histories={"m": mixed}, unknown_items="skip")
        assert skipped.equals(fitted.recommend(histories={"m": known}))
        assert fitted.recommend(history=mixed, unknown_items="skip").equals(fitted.recommend(history=known))
        for rule in ("error", "skip"):
            with pytest.raises(UnknownIdError, match=r"the history of user 's': .*and it holds nothing else"):
                fitted.recommend(histories={"m": known, "s": unknown}, unknown_items=rule)
        with pytest.raises(ParameterError, match="unknown_items must be one of 'error', 'skip'"):
            fitted.recommend(history=known, unknown_items="guess")

    def test_bad_histories_are_one_clear_sentence(self, fitted: Model) -> None:
        item = fitted.item_ids_[0].item()
        bad: list[tuple[Any, str]] = [
            ([item], "histories must be a mapping"),
            ({}, "there are no histories"),
            ({"a": []}, "the history of user 'a' is empty"),
            ({"a": {item: 5}, "b": [(item, 5), (str(item), 5)]}, "twice in the history of user 'b'"),
            ({"a": {item: float("inf")}}, "the history of user 'a': ratings must be finite"),
            ({"a": {item: 5}, 1: {item: 5}}, "by integers or by text"),
        ]
        for histories, words in bad:
            with pytest.raises(ParameterError, match=words):
                fitted.recommend(histories=histories)
        ways: list[dict[str, Any]] = [{"users": [fitted.user_ids_[0]]}, {"history": [item]}]
        for both in ways:
            with pytest.raises(ParameterError, match="not both"):
                fitted.recommend(histories={"a": {item: 5}}, **both)
