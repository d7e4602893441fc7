"""Recommending, scoring, and similar items."""

# ruff: noqa: D102 (the name of a test says what it tests)

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from topnrank.errors import ParameterError, UnknownIdError
from topnrank.models.base import Model
from topnrank.testing.base import ModelUnderTest, columns, is_close, seen_items

UNKNOWN = 999_999


class RecommendingTests(ModelUnderTest):
    """Tests of recommend, recommend_to, score and similar_items."""

    @pytest.fixture
    def users(self, fitted: Model) -> list[Any]:
        """Three users, not in the order of the model."""
        ids: list[Any] = fitted.user_ids_[[7, 2, 50]].tolist()
        return ids

    def test_each_user_gets_the_n_best_in_the_order_asked(self, fitted: Model, users: list[Any]) -> None:
        table = columns(fitted.recommend(users, n=4))
        assert list(table) == ["user", "item", "score", "rank"]
        assert table["user"] == [user for user in users for _ in range(4)]
        assert table["rank"] == [1, 2, 3, 4] * 3

    def test_they_are_the_best_of_the_unseen(self, fitted: Model, users: list[Any]) -> None:
        for user in users:
            unseen = [item for item in fitted.item_ids_.tolist() if item not in seen_items(fitted, user)]
            best = np.sort(fitted.score(user, unseen))[::-1]
            got = columns(fitted.recommend(user, n=5))
            assert is_close(got["score"], best[:5])
            assert not set(got["item"]) & seen_items(fitted, user)

    def test_all_users_and_some_users_get_the_same(self, fitted: Model, users: list[Any]) -> None:
        everyone = fitted.recommend(n=3).to_pylist()
        assert [row["user"] for row in everyone[::3]] == fitted.user_ids_.tolist()
        some = fitted.recommend(users, n=3).to_pylist()
        for row in some:
            twin = next(r for r in everyone if (r["user"], r["rank"]) == (row["user"], row["rank"]))
            assert (row["item"], row["user"]) == (twin["item"], twin["user"])
            assert is_close(row["score"], twin["score"])

    def test_one_user_may_be_given_alone(self, fitted: Model, users: list[Any]) -> None:
        assert columns(fitted.recommend(users[0], n=3)) == columns(fitted.recommend([users[0]], n=3))

    def test_seen_items_may_be_included(self, fitted: Model, users: list[Any]) -> None:
        table = columns(fitted.recommend(users[0], n=10_000, exclude_seen=False))
        assert sorted(table["item"]) == sorted(fitted.item_ids_.tolist())

    def test_more_than_there_is_gives_all_there_is(self, fitted: Model, users: list[Any]) -> None:
        table = columns(fitted.recommend(users[0], n=10_000))
        assert len(table["item"]) == len(fitted.item_map) - len(seen_items(fitted, users[0]))
        assert table["score"] == sorted(table["score"], reverse=True)

    def test_only_allowed_items_without_excluded_ones(self, fitted: Model, users: list[Any]) -> None:
        ids = fitted.item_ids_.tolist()
        table = columns(fitted.recommend(users, n=10_000, items=ids[:12], exclude=ids[3:5], exclude_seen=False))
        assert set(table["item"]) == set(ids[:3] + ids[5:12])

    def test_nothing_allowed_is_an_error(self, fitted: Model) -> None:
        with pytest.raises(ParameterError, match="no item is left"):
            fitted.recommend(items=[fitted.item_ids_[0]], exclude=[fitted.item_ids_[0]])

    @pytest.mark.parametrize("n", [0, -1, 2.5, "3", None, True])
    def test_n_must_be_a_whole_number(self, fitted: Model, n: Any) -> None:
        with pytest.raises(ParameterError, match="n must be an integer of at least 1"):
            fitted.recommend(n=n)

    def test_an_unknown_user_is_an_error_that_names_it(self, fitted: Model, users: list[Any]) -> None:
        with pytest.raises(UnknownIdError, match=f"does not know user {UNKNOWN}"):
            fitted.recommend([*users, UNKNOWN])
        with pytest.raises(UnknownIdError, match=f"does not know item {UNKNOWN}"):
            fitted.recommend(users, items=[UNKNOWN])

    def test_an_unknown_user_can_be_skipped(self, fitted: Model, users: list[Any]) -> None:
        skipped = fitted.recommend([UNKNOWN, *users], n=3, unknown="skip")
        assert skipped.equals(fitted.recommend(users, n=3))
        empty = fitted.recommend([UNKNOWN], n=3, unknown="skip")
        assert empty.schema == fitted.recommend(users, n=3).schema
        assert empty.num_rows == 0

    def test_an_unknown_user_can_get_what_is_popular(self, fitted: Model, users: list[Any]) -> None:
        table = columns(fitted.recommend([users[0], UNKNOWN], n=3, unknown="popular"))
        counts = np.bincount(fitted.seen_indices, minlength=len(fitted.item_map))
        popular = np.argsort(-counts, kind="stable")[:3]
        assert table["user"] == [users[0]] * 3 + [UNKNOWN] * 3
        assert table["item"][3:] == fitted.item_ids_[popular].tolist()
        assert table["item"][:3] == columns(fitted.recommend(users[0], n=3))["item"]

    def test_an_unknown_policy_is_refused(self, fitted: Model) -> None:
        with pytest.raises(ParameterError, match="unknown must be one of 'error', 'popular', 'skip'"):
            fitted.recommend(unknown="guess")

    def test_the_parquet_file_holds_the_table(self, fitted: Model, users: list[Any], tmp_path: Path) -> None:
        path = tmp_path / "lists.parquet"
        for asked in (None, users, []):
            rows = fitted.recommend_to(path, asked, n=4)
            expected = fitted.recommend(asked, n=4)
            assert pq.read_table(path).equals(expected)
            assert rows == expected.num_rows

    def test_scores_are_those_of_the_recommendations(self, fitted: Model, users: list[Any]) -> None:
        table = columns(fitted.recommend(users, n=6))
        assert is_close(fitted.score(table["user"], table["item"]), table["score"])

    def test_scores_of_one_user_with_many_items_and_the_other_way_round(self, fitted: Model, users: list[Any]) -> None:
        items = fitted.item_ids_[:3].tolist()
        assert is_close(fitted.score(users[0], items), fitted.score([users[0]] * 3, items))
        assert is_close(fitted.score(users, items[0]), fitted.score(users, [items[0]] * 3))

    def test_pairs_that_do_not_match_are_refused(self, fitted: Model, users: list[Any]) -> None:
        with pytest.raises(ParameterError, match="3 users and 2 items"):
            fitted.score(users, fitted.item_ids_[:2])

    def test_similar_items_have_the_same_direction(self, fitted: Model) -> None:
        item = fitted.item_ids_[4]
        vectors = fitted.fitted.arrays.get("item_factors")
        if fitted.item_similarity(np.empty(0, np.int64)) is not None:
            pytest.skip(f"{type(fitted).__name__} has a measure of its own")
        if vectors is None:
            with pytest.raises(ParameterError, match="has no item vectors"):
                fitted.similar_items(item)
            return
        table = columns(fitted.similar_items(item, n=5))
        assert list(table) == ["item", "score", "rank"]
        assert item not in table["item"]
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        expected = np.delete(unit @ unit[4], 4)
        assert is_close(table["score"], np.sort(expected)[::-1][:5])

    def test_similar_items_are_other_items_best_first(self, fitted: Model) -> None:
        if type(fitted).item_similarity is Model.item_similarity and "item_factors" not in fitted.fitted.arrays:
            pytest.skip(f"{type(fitted).__name__} knows no similar items")
        item = fitted.item_ids_[4]
        table = columns(fitted.similar_items(item, n=5))
        assert list(table) == ["item", "score", "rank"]
        assert len(set(table["item"])) == 5
        assert item not in table["item"]
        assert table["score"] == sorted(table["score"], reverse=True)
        everything = columns(fitted.similar_items(item, n=10_000))
        assert set(everything["item"]) <= set(fitted.item_ids_.tolist()) - {item}  # a linear model may know some only
        assert everything["item"][:5] == table["item"]

    def test_a_user_never_seen_is_served_from_a_history(self, fitted: Model) -> None:
        history = dict(zip(fitted.item_ids_[:6].tolist(), [5, 4, 1, 2, 5, 3], strict=True))
        table = columns(fitted.recommend(history=history, n=10))
        assert list(table) == ["item", "score", "rank"]
        assert table["rank"] == list(range(1, 11))
        assert table["score"] == sorted(table["score"], reverse=True)
        assert not set(table["item"]) & set(history)
        assert columns(fitted.recommend(history=list(history.items()), n=10)) == table
        with_history = columns(fitted.recommend(history=history, n=10_000, exclude_seen=False))
        assert set(with_history["item"]) == set(fitted.item_ids_.tolist())

    def test_a_bad_history_is_one_clear_sentence(self, fitted: Model, users: list[Any]) -> None:
        first, second = fitted.item_ids_[:2].tolist()
        bad: list[tuple[Any, str]] = [
            ([], "the history is empty"),
            ([(first, 5), (first, 4)], "stands twice"),
            ([(first, 5, 1)], "pairs"),
            ({first: float("nan")}, "finite numbers"),
            ([(first, 5), (second, None)], "for all items or none"),
            ({first: "good"}, "finite numbers"),
        ]
        for history, sentence in bad:
            with pytest.raises(ParameterError, match=sentence):
                fitted.recommend(history=history)
        with pytest.raises(UnknownIdError, match=f"does not know item {UNKNOWN}"):
            fitted.recommend(history={UNKNOWN: 5})
        with pytest.raises(ParameterError, match="users or a history, not both"):
            fitted.recommend(users, history={first: 5})
