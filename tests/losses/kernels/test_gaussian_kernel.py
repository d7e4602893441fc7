"""Gaussian ranks of scores that are large or far apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.lists import batch_of, run_kernel
from topnrank.losses.gaussian.reference import GaussianDCG
from topnrank.rng import stream

VARIANTS = [GaussianDCG(), GaussianDCG(0.05), GaussianDCG(2.0, normalize=True)]
every_variant = pytest.mark.parametrize("objective", VARIANTS, ids=repr)


@every_variant
def test_scores_a_million_apart_keep_their_digits(objective):
    """The gradient is tiny here, and still right to nine digits of its largest entry."""
    draw = stream(2, "test lists")
    f, a = 1e6 * draw.normal(size=40), draw.normal(size=40)
    G, report = run_kernel(objective, *batch_of([(f, a)]))
    expected = objective.evaluate(f, a)
    assert_allclose(G[0], expected.user, rtol=0, atol=1e-9 * np.abs(expected.user).max())
    assert report[0, 0] == pytest.approx(expected.value, rel=1e-9)


@every_variant
def test_a_large_mean_costs_no_digits(objective):
    """A sum of 20,000 scores of a million rounds; the second centering takes that away."""
    draw = stream(3, "test lists")
    f, a = np.round(1024 * draw.normal(size=20000)) / 1024, draw.normal(size=20000)
    here, there = (run_kernel(objective, *batch_of([(scores, a)]))[0] for scores in (f, f + 1e6))
    assert_allclose(there, here, rtol=0, atol=1e-12 * np.abs(here).max())
