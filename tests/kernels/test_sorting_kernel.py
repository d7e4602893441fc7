"""The sort of a list against NumPy's stable one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from topnrank.kernels import sorting
from topnrank.kernels.sorting import CROWDED, PARTS, RUN, descending_order

some_ties = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1.0, 1e300, -np.inf, np.inf])


@given(arrays(np.float64, st.integers(0, 5 * RUN), elements=some_ties))
def test_descends_and_keeps_the_order_of_ties(f):
    assert descending_order(f).tolist() == np.argsort(-f, kind="stable").tolist()


def test_long_lists():
    for m in (1, RUN, RUN + 1, 1000, 4097):
        f = np.random.default_rng(m).normal(size=m).round(2)
        assert descending_order(f).tolist() == np.argsort(-f, kind="stable").tolist()


def test_a_list_with_nan_still_ends():
    f = np.array([1.0, np.nan, 2.0] * 20)
    assert sorted(descending_order(f).tolist()) == list(range(60))


@given(st.integers(0, 1000), st.integers(RUN + 1, 200), st.sampled_from([1.0, 3.0, 12.0]))
def test_skewed_scores(seed, m, power):
    """From even to so skewed that nearly all scores share a part, which is where runs are merged instead."""
    f = np.random.default_rng(seed).random(m) ** power * 10.0 ** np.random.default_rng(seed).integers(-300, 300)
    order, g = np.empty(m, np.int32), np.empty(m)
    sorting.sort_descending(f, g, order)
    assert order.tolist() == np.argsort(-f, kind="stable").tolist()
    assert g.tolist() == f[order].tolist()


def test_crowded_scores_are_noticed_beforehand():
    f = np.concatenate([np.random.default_rng(0).random(500), [1e9]])
    part, starts = np.empty(501, np.int32), np.empty(PARTS * 501 + 1, np.int32)
    assert CROWDED * 501 < 500**2
    assert not sorting._count_parts(f, part, starts)
    assert sorting._count_parts(f[:-1], part[:500], starts[: PARTS * 500 + 1])
    assert descending_order(f).tolist() == np.argsort(-f, kind="stable").tolist()


def test_scores_that_are_no_numbers_lead_nowhere_outside():
    for bad in (np.nan, np.inf, -np.inf):
        f = np.random.default_rng(1).normal(size=300)
        f[[5, 77, 299]] = bad
        assert sorted(descending_order(f).tolist()) == list(range(300))
