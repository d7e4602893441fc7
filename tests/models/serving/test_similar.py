"""Similar items of models with neighbor weights: who has both, the weights, and the cosines of vectors."""

import numpy as np
import pytest

from topnrank import NeighborRidge, TopNRank, synthetic
from topnrank.models.linear.neighbors import neighbor_term
from topnrank.models.serving.similar import together

DATA = synthetic(80, 30, 900)


def same_users(data):
    """n_ij / (n_i^.6 n_j^.4 + 10), as it reads."""
    X = np.zeros((data.n_users, data.n_items))
    X[np.repeat(np.arange(data.n_users), np.diff(data.indptr)), data.indices] = 1
    both, sizes = X.T @ X, X.sum(axis=0)
    return np.where(both > 0, both / (np.outer(sizes**0.6, sizes**0.4) + 10), np.nan)


def largest_is_one(part):
    np.fill_diagonal(part, 0)
    largest = np.abs(part).max(axis=1, keepdims=True)
    return np.divide(part, largest, out=np.zeros_like(part), where=largest > 0)


def test_items_with_the_same_users():
    fitted = NeighborRidge(neighbors=5, regularization=10.0).fit(DATA).fitted
    expected = same_users(DATA)
    np.testing.assert_allclose(together(fitted, np.arange(DATA.n_items)), expected, rtol=1e-6)
    np.testing.assert_allclose(together(fitted, np.array([7, 3, 7])), expected[[7, 3, 7]], rtol=1e-6)
    assert together(fitted, np.empty(0, np.int64)).shape == (0, DATA.n_items)


@pytest.mark.parametrize(
    "model",
    [
        NeighborRidge(neighbors=5, regularization=10.0),
        TopNRank(task="catalog", epochs=2, factors=4, neighbors=5, factor_weight=1.0),
    ],
)
def test_all_parts_take_part(model):
    fitted = model.fit(DATA).fitted
    weights = np.zeros((DATA.n_items, DATA.n_items))
    for item in range(DATA.n_items):  # what a history of this item alone says
        scores = np.zeros(DATA.n_items, np.float32)
        neighbor_term(fitted).add_history(scores, np.array([item]), np.ones(1))
        weights[item] = scores
    expected = 1 + largest_is_one(weights)
    if "item_factors" in fitted.arrays:
        unit = fitted.arrays["item_factors"] / np.linalg.norm(fitted.arrays["item_factors"], axis=1, keepdims=True)
        expected += largest_is_one(unit @ unit.T)
    expected *= same_users(DATA)
    table = model.similar_items(DATA.items.ids[4], n=DATA.n_items).to_pydict()
    others = np.delete(expected[4], 4)
    np.testing.assert_allclose(table["score"], np.sort(others[~np.isnan(others)])[::-1], rtol=2e-4)
