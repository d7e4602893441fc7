"""Explanations, similar users and items, and exported vectors."""

# ruff: noqa: D102 (the name of a test says what it tests)

from pathlib import Path

import numpy as np
import pytest

from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.models.base import Model
from topnrank.testing.base import ModelUnderTest, columns, is_close, ratings_of


class InsightTests(ModelUnderTest):
    """Tests of explain, similar_users, similar_items of many, and export_factors."""

    def test_the_parts_of_an_explanation_make_the_score(self, fitted: Model, test: Interactions) -> None:
        users, items, history = fitted.user_ids_[[5, 5, 2]], fitted.item_ids_[[7, 30, 7]], ratings_of(test, 4)
        if not {"history_factors", "neighbors", "link_values"} & set(fitted.fitted.arrays):
            for question in ({"user": users, "item": items}, {"history": history, "item": items[0]}):
                with pytest.raises(ParameterError, match="user_representation='history'"):
                    fitted.explain(**question)
            return
        table = fitted.explain(users, items)
        assert table.column_names == ["user", "item", "what", "because", "part"]
        for user, item, score in zip(users, items, fitted.score(users, items), strict=True):
            rows = [row for row in table.to_pylist() if (row["user"], row["item"]) == (user, item)]
            assert is_close(sum(row["part"] for row in rows), score)
            assert [row["part"] for row in rows] == sorted((row["part"] for row in rows), reverse=True)
            assert {row["because"] is None for row in rows if row["what"] == "bias"} <= {True}
        for item in items:
            parts = columns(fitted.explain(history=history, item=item))
            scores = fitted.score_history(fitted.item_numbers(list(history)), np.array(list(history.values())))
            assert is_close(sum(parts["part"]), scores[fitted.item_numbers(item)[0]])
            assert set(parts["because"]) <= {*history, None}

    def test_similar_users_have_the_same_direction(self, fitted: Model) -> None:
        users, vectors = fitted.user_ids_[[4, 11]].tolist(), fitted.fitted.arrays.get("user_factors")
        if vectors is None:
            with pytest.raises(ParameterError, match="has no user vectors"):
                fitted.similar_users(users[0])
            return
        table = columns(fitted.similar_users(users[0], n=5))
        assert list(table) == ["user", "score", "rank"]
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        assert is_close(table["score"], np.sort(np.delete(unit @ unit[4], 4))[::-1][:5])
        many = fitted.similar_users(users, n=5)
        assert many["of"].to_pylist() == [users[0]] * 5 + [users[1]] * 5
        assert many["user"].to_pylist()[:5] == table["user"]
        assert fitted.similar_users([], n=5).schema == many.schema

    def test_similar_items_of_many(self, fitted: Model) -> None:
        items = fitted.item_ids_[[8, 1]].tolist()
        if type(fitted).item_similarity is Model.item_similarity and "item_factors" not in fitted.fitted.arrays:
            return
        table = fitted.similar_items(items, n=3)
        assert table.column_names == ["of", "item", "score", "rank"]
        assert table["of"].to_pylist() == [items[0]] * 3 + [items[1]] * 3
        alone = [fitted.similar_items(item, n=3)["item"].to_pylist() for item in items]
        assert table["item"].to_pylist() == [*alone[0], *alone[1]]

    def test_exported_vectors_give_the_same_lists(self, fitted: Model, tmp_path: Path) -> None:
        if "user_factors" not in fitted.fitted.arrays:
            with pytest.raises(ParameterError, match="has no vectors"):
                fitted.export_factors()
            return
        if "neighbors" in fitted.fitted.arrays:
            with pytest.raises(ParameterError, match="no product of vectors"):
                fitted.export_factors()
            return
        exported = fitted.export_factors(tmp_path / "vectors.npz")
        scores = exported.user_vectors @ exported.item_vectors.T
        table = columns(fitted.recommend(n=5, exclude_seen=False))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        assert is_close(np.take_along_axis(scores, best, 1).ravel(), table["score"])
        given = fitted.item_numbers(table["item"]).reshape(best.shape)
        assert is_close(np.take_along_axis(scores, given, 1), np.take_along_axis(scores, best, 1))
        with np.load(tmp_path / "vectors.npz", allow_pickle=False) as file:
            for name, array in exported._asdict().items():
                assert file[name].tolist() == array.tolist(), name
        assert exported.user_vectors.dtype == exported.item_vectors.dtype == np.float32
