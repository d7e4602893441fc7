"""Fitting: its result, its side effects, its determinism, and the fitted attributes."""

# ruff: noqa: D102 (the name of a test says what it tests)

import copy

import numpy as np

from topnrank.data.interactions import Interactions
from topnrank.models.base import Model, rows_belong_to
from topnrank.scorers.neighbors import SCALE
from topnrank.testing.base import ModelUnderTest, columns, fresh, learned, with_text_ids


class FittingTests(ModelUnderTest):
    """Tests of fit and of the fitted attributes."""

    def test_fit_returns_the_model_and_leaves_data_and_parameters_alone(self, train: Interactions) -> None:
        model, data_before = fresh(self.model), train.fingerprint()
        before = copy.deepcopy(model.get_params())
        assert model.fit(train) is model
        assert model.get_params() == before
        assert train.fingerprint() == data_before

    def test_the_ids_are_those_of_the_data(self, fitted: Model, train: Interactions) -> None:
        assert fitted.user_ids_.tolist() == train.users.ids.tolist()
        assert fitted.item_ids_.tolist() == train.items.ids.tolist()

    def test_the_seen_items_are_those_of_the_data(self, fitted: Model, train: Interactions) -> None:
        assert fitted.seen_indptr.tolist() == train.indptr.tolist()
        assert fitted.seen_indices.tolist() == train.indices.tolist()

    def test_learned_arrays_are_finite_and_have_a_row_for_each_user_item_or_seen_row(self, fitted: Model) -> None:
        sizes = {"user": len(fitted.user_map), "seen": len(fitted.seen_indices)}
        if "item_link_counts" in fitted.fitted.arrays:
            sizes["link"] = int(fitted.fitted.arrays["item_link_counts"].sum())
        for name, array in fitted.fitted.arrays.items():
            assert array.dtype in (np.float32, np.int32, np.int64, np.uint8), name
            assert np.isfinite(array).all(), name
            if rows_belong_to(name) == "network":
                continue
            wanted = 1 if name == SCALE else sizes.get(name.partition("_")[0], len(fitted.item_map))
            assert array.shape[0] == wanted, name

    def test_the_same_seed_gives_the_same_bits(self, fitted: Model, train: Interactions) -> None:
        assert learned(fresh(self.model).fit(train)) == learned(fitted)

    def test_a_second_fit_forgets_the_first(self, fitted: Model, train: Interactions, test: Interactions) -> None:
        model = fresh(self.model).fit(test)
        assert learned(model.fit(train)) == learned(fitted)
        assert columns(model.recommend(n=3)) == columns(fitted.recommend(n=3))

    def test_text_ids_give_the_same_recommendations(self, fitted: Model, train: Interactions) -> None:
        by_text = columns(fresh(self.model).fit(with_text_ids(train.compact())).recommend(n=5))
        by_number = columns(fresh(self.model).fit(train.compact()).recommend(n=5))
        assert by_text["user"] == [f"u{user:03d}" for user in by_number["user"]]
        assert by_text["item"] == [f"i{item:03d}" for item in by_number["item"]]
        assert by_text["score"] == by_number["score"]
