"""Parameters: the conventions of scikit-learn, and unfitted models."""

# ruff: noqa: D102 (the name of a test says what it tests)

import inspect

import pytest

from topnrank.data.interactions import Interactions
from topnrank.errors import NotFittedError, ParameterError
from topnrank.models.base import Model
from topnrank.models.registry import MODELS
from topnrank.testing.base import ModelUnderTest, fresh


class ParameterTests(ModelUnderTest):
    """Tests of get_params, set_params, clone, and use before fit."""

    def test_parameters_are_those_of_the_constructor(self) -> None:
        assert list(self.model.get_params()) == list(inspect.signature(type(self.model)).parameters)

    def test_the_constructor_stores_parameters_as_they_are(self) -> None:
        given = self.model.get_params()
        again = type(self.model)(**given).get_params()
        assert all(again[name] is value for name, value in given.items())

    def test_set_params_changes_and_returns_the_model(self) -> None:
        model = fresh(self.model)
        assert model.set_params(**self.model.get_params()) is model
        assert model.get_params() == self.model.get_params()

    def test_an_unknown_parameter_is_refused(self) -> None:
        with pytest.raises(ParameterError, match="no_such_parameter"):
            fresh(self.model).set_params(no_such_parameter=1)

    def test_clone_copies_parameters_and_nothing_learned(self, fitted: Model) -> None:
        clone = pytest.importorskip("sklearn.base").clone
        copied = clone(fitted)
        assert type(copied) is type(fitted)
        assert copied.get_params() == self.model.get_params()
        with pytest.raises(NotFittedError):
            _ = copied.item_ids_

    def test_repr_is_one_line_with_the_name(self) -> None:
        assert repr(self.model).startswith(type(self.model).__name__)
        assert "\n" not in repr(self.model)

    def test_the_model_has_a_name_and_a_summary(self) -> None:
        assert self.model.name == self.model.name.lower()
        assert self.model.summary
        assert MODELS.get(self.model.name, type(self.model)) is type(self.model)

    def test_before_fit_every_use_says_so(self, train: Interactions) -> None:
        model = fresh(self.model)
        uses = (
            lambda: model.recommend(),
            lambda: model.recommend(history=[train.items.ids[0]]),
            lambda: model.score(train.users.ids[0], train.items.ids[0]),
            lambda: model.recommend(histories={"new": [train.items.ids[0]]}),
            lambda: model.explain(train.users.ids[0], train.items.ids[0]),
            lambda: model.explain(history=[train.items.ids[0]], item=train.items.ids[0]),
            lambda: model.similar_items(train.items.ids[0]),
            lambda: model.similar_users(train.users.ids[0]),
            lambda: model.export_factors(),
            lambda: model.save("never written"),
            lambda: model.user_ids_,
        )
        for use in uses:
            with pytest.raises(NotFittedError, match=r"call fit\(data\) first"):
                use()
