"""Shared by the conformance suites: the model under test, small planted data, and comparisons."""

import copy
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pytest

from topnrank.data import synthetic
from topnrank.data.interactions import Interactions
from topnrank.evaluation import split_per_user
from topnrank.models.base import Model

M = TypeVar("M", bound=Model)


@cache
def small_data() -> Interactions:
    """Ratings of 120 users for 60 items with planted tastes."""
    return synthetic(users=120, items=60, ratings=3000, taste=0.9, noise=0.5, seed=11)


@cache
def small_split() -> tuple[Interactions, Interactions]:
    """`small_data` as train and test part."""
    return split_per_user(small_data(), test=0.5, seed=0)


def with_text_ids(data: Interactions) -> Interactions:
    """The same rows of users u001, u002, ... for items i001, i002, ..."""
    table = data.to_arrow()
    users, items = ([f"{letter}{id_:03d}" for id_ in table[name].to_pylist()] for name, letter in ID_COLUMNS)
    columns = {f"{name}s": table[name].to_numpy() for name in ("rating", "timestamp") if name in table.column_names}
    return replace(Interactions.from_arrays(users, items, **columns), split=data.split)


ID_COLUMNS = (("user", "u"), ("item", "i"))


def fresh(model: M) -> M:
    """An unfitted model with the same parameters."""
    return type(model)(**copy.deepcopy(model.get_params()))


def learned(model: Model) -> dict[str, bytes]:
    """All fitted arrays of a model, as bytes."""
    return {name: array.tobytes() for name, array in model.fitted.arrays.items()}


def columns(table: pa.Table) -> dict[str, list[Any]]:
    """A table as lists, which can be compared with `==`."""
    content: dict[str, list[Any]] = table.to_pydict()
    return content


def seen_items(model: Model, user: Any) -> set[Any]:
    """Ids of the items a user was trained on."""
    number = model.user_numbers(user)[0]
    rows = model.seen_indices[model.seen_indptr[number] : model.seen_indptr[number + 1]]
    return set(model.item_ids_[rows].tolist())


def ratings_of(data: Interactions, user: int) -> dict[Any, float]:
    """The ratings of the user with this number, by item."""
    rows = slice(data.indptr[user], data.indptr[user + 1])
    assert data.ratings is not None
    return dict(zip(data.items.ids[data.indices[rows]].tolist(), data.ratings[rows].tolist(), strict=True))


def is_close(first: Any, second: Any) -> bool:
    """Whether scores agree to single precision."""
    return bool(np.allclose(first, second, rtol=1e-4, atol=1e-5))


_FITTED: "dict[type[ModelUnderTest], Model]" = {}


class ModelUnderTest:
    """The model to test; a fixture gives it fitted on the train part, once for all tests, which must not change it."""

    model: ClassVar[Model]
    """The model with the parameters to test, small and quick; it is not fitted itself."""
    better_than: ClassVar[float] = 0.0
    """NDCG@10 that the model must exceed on the test part of `small_split`, ranking each user's own items."""
    learns: ClassVar[bool] = True
    """Whether it learns an order from ratings and so must beat Random."""

    @pytest.fixture
    def train(self) -> Interactions:
        """The train part."""
        return small_split()[0]

    @pytest.fixture
    def test(self) -> Interactions:
        """The test part."""
        return small_split()[1]

    @pytest.fixture
    def fitted(self) -> Model:
        """The model, fitted on the train part."""
        if type(self) not in _FITTED:
            _FITTED[type(self)] = fresh(self.model).fit(small_split()[0])
        return _FITTED[type(self)]
