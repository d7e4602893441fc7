"""CLiMF's exponential sum."""

import numpy as np
import pytest

from support.lists import batch_of, run_kernel
from topnrank.losses.climf.kernel import log_terms
from topnrank.losses.climf.reference import CLiMFBound
from topnrank.rng import stream


@pytest.mark.parametrize("terms", [4, 8, 12, 16])
def test_the_exponential_sum_keeps_its_bound(terms):
    t = np.linspace(0.0, 1.0, 20001)
    error = np.abs(np.polynomial.polynomial.polyval(t, np.append(0.0, log_terms(terms))) - np.log1p(t)).max()
    assert error <= (3.0 + 2.0 * np.sqrt(2.0)) ** -terms


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_the_loss_keeps_its_bound(spread):
    f = spread * stream(3, "test lists").normal(size=400)
    G, report = run_kernel(CLiMFBound(mean_pairs=False), *batch_of([(f, np.ones(400))]))
    expected = CLiMFBound(mean_pairs=False).evaluate(f, np.ones(400))
    assert report[0, 0] == pytest.approx(expected.value, rel=9.4e-10)
    assert np.abs(G[0] - expected.user).max() <= 2 * 399 * 6.6e-10
