"""exp and ln of whole arrays against NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from topnrank.kernels.elementary import LEAST, exponentials, logarithms

CLOSE = 4e-15


def ln(y):
    out, scratch = np.empty_like(y), np.empty_like(y)
    logarithms(y, out, scratch)
    return out


def exp(x):
    out = np.empty_like(x)
    exponentials(x.copy(), out)
    return out


@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(2.0, 1e300)))
def test_logarithms_of_what_ranks_plus_two_can_be(y):
    assert_allclose(ln(y), np.log(y), rtol=CLOSE)


def test_logarithms_all_along_the_line():
    y = np.concatenate(
        [2.0 + np.linspace(0.0, 6.0, 100_001), 2.0 ** np.arange(1, 1000), np.nextafter(2.0 ** np.arange(2, 900), 0)]
    )
    assert_allclose(ln(y), np.log(y), rtol=CLOSE)


@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(LEAST, 0.0)))
def test_exponentials_of_what_decays_can_be(x):
    assert_allclose(exp(x), np.exp(x), rtol=CLOSE)


def test_exponentials_all_along_the_line_and_beyond():
    x = -np.concatenate([np.linspace(0.0, 50.0, 100_001), np.linspace(50.0, -LEAST, 10_001)])
    assert_allclose(exp(x), np.exp(x), rtol=CLOSE)
    assert np.all(exp(np.array([-709.0, -1e300, -np.inf])) <= np.exp(LEAST) * (1 + CLOSE))
    assert exp(np.array([0.0, -0.0])).tolist() == [1.0, 1.0]
