"""The sort of a list against NumPy's stable one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from topnrank.kernels.sorting import RUN, descending_order

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
