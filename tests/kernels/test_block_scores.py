"""Scores of whole blocks: right, and the same bits however the work is cut."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.top_items import block_scores, mask_seen, scores_of, top_items
from topnrank.rng import stream


def factors(n_users, n_items, k):
    draw = stream(0, "test block scores")
    return tuple(draw.normal(size=shape).astype(np.float32) for shape in ((n_users, k), (n_items, k), (n_items,)))


@pytest.mark.parametrize(
    ("n_users", "n_items", "k"),
    [(1, 1, 1), (5, 15, 3), (6, 16, 4), (7, 17, 64), (300, 530, 10), (2, 257, 1), (0, 9, 2)],
)
def test_a_block_is_the_product_and_the_bias(n_users, n_items, k):
    U, V, b = factors(n_users, n_items, k)
    assert_allclose(scores_of(U, V, b), U.astype(np.float64) @ V.T + b, rtol=1e-5, atol=1e-5)


def test_the_bits_do_not_depend_on_the_cut():
    U, V, b = factors(50, 333, 20)
    whole = scores_of(U, V, b)
    for group in (1, 5, 6, 49):
        block = np.empty_like(whole)
        block_scores(U, V, b, group, block)
        assert_array_equal(block, whole)
    assert_array_equal(np.concatenate([scores_of(U[[user]], V, b) for user in range(50)]), whole)


def test_factors_that_are_slices_of_others():
    U, V, b = factors(9, 40, 8)
    assert_array_equal(
        scores_of(U[::2, :3], V[:, :3], b), scores_of(U[::2, :3].copy(), np.ascontiguousarray(V[:, :3]), b)
    )


def test_the_items_of_a_user_are_forgotten_and_strangers_have_none():
    block = np.zeros((3, 4), np.float32)
    mask_seen(block, np.array([0, 1, 3]), np.array([2, 0, 3], np.int32), np.array([1, -1, 0]))
    assert_array_equal(np.isnan(block), [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]])


@pytest.mark.parametrize("k", [1, 20, 21, 80, 81, 200])
@pytest.mark.parametrize("n_items", [127, 128, 700, 5000])
def test_the_top_of_long_rows_with_ties_and_gaps(k, n_items):
    draw = stream(k, "test tops")
    block = draw.integers(0, 60, (8, n_items)).astype(np.float32)
    block[draw.random(block.shape) < 0.2] = np.nan
    block[0], block[1, 3:] = np.nan, np.nan
    block[2] = -np.inf
    block[3] = np.sort(block[3])
    for row, best in zip(block, top_items(block, k), strict=True):
        order = np.argsort(-row, kind="stable")
        expected = order[~np.isnan(row[order])][:k]
        assert_array_equal(best[: expected.size], expected)
        assert np.all(best[expected.size :] == -1)
