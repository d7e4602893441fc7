import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.top_items import pair_scores, top_items
from topnrank.rng import stream

levels = st.sampled_from([np.nan, -np.inf, -1.0, 0.0, 0.5, 0.5, 2.0])


@given(
    block=arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=levels.map(np.float32)),
    n=st.integers(1, 14),
)
def test_the_top_is_a_stable_sort_without_nan(block, n):
    best = top_items(block, n)
    assert best.shape == (block.shape[0], n)
    for row in range(block.shape[0]):
        order = np.argsort(-block[row], kind="stable")  # NaN last
        expected = order[~np.isnan(block[row, order])][:n]
        assert_array_equal(best[row, : expected.size], expected)
        assert np.all(best[row, expected.size :] == -1)


def test_the_top_of_many_columns():
    block = stream(0, "test block").normal(size=(50, 3000)).astype(np.float32)
    assert_array_equal(top_items(block, 20), np.argsort(-block, axis=1, kind="stable")[:, :20])


def test_pair_scores():
    draw = stream(0, "test factors")
    U, V, b = (draw.normal(size=shape).astype(np.float32) for shape in ((7, 5), (9, 5), (9,)))
    users, items = draw.integers(0, 7, 40), draw.integers(0, 9, 40)
    scores = np.empty(40, np.float32)
    pair_scores(U, V, b, users, items, scores)
    assert_allclose(scores, np.sum(U[users] * V[items], axis=1) + b[items], rtol=1e-5, atol=1e-6)
