"""The rank engine against brute force over pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from topnrank.losses._ranks_kernel import (
    LAPLACE,
    RAMP,
    RELU,
    SIGMOID,
    Step,
    ranks_backward,
    ranks_forward,
    sigmoid_terms,
    step_slope,
    step_value,
)
from topnrank.losses.ranks import rank_pull, smooth_ranks
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.rng import stream

TWINS = {
    "relu": (Step(RELU, 1.0, sigmoid_terms()), ReLU(), 1e-12),
    "laplace": (Step(LAPLACE, 3.0, sigmoid_terms()), Laplace(3.0), 1e-12),
    "ramp": (Step(RAMP, 1.0, sigmoid_terms()), Ramp(1.0), 1e-12),
    "sigmoid": (Step(SIGMOID, 7.0, sigmoid_terms()), Sigmoid(7.0), 1e-8),
}
"""Kernel step, its NumPy twin, and how nearly they agree relative to the largest possible sum."""

every_step = pytest.mark.parametrize("name", TWINS)


def fast(step, f, w, c):
    """R, D and X of a list in any order, by the kernels."""
    order = np.argsort(-f, kind="stable")
    R, D, X, e = (np.empty(f.size) for _ in range(4))
    assert ranks_forward(step, f[order], w[order], e, R, D, np.inf) == f.size
    ranks_backward(step, f[order], c[order], e, X, f.size)
    back = np.argsort(order, kind="stable")
    return R[back], D[back], w * X[back]


def assert_equal_to_brute_force(name, f, w, c):
    step, twin, tolerance = TWINS[name]
    R, D, X = fast(step, f, w, c)
    expected = smooth_ranks(twin, f, w)
    slope = max(1.0, step.steepness)
    reach = np.ptp(f) if name == "relu" else 1.0
    assert_allclose(R, expected.R, rtol=0, atol=tolerance * w.sum() * max(reach, 1e-300))
    assert_allclose(D, expected.D, rtol=0, atol=100 * tolerance * w.sum() * slope)
    gradient = rank_pull(twin, f, w, c)
    assert_allclose(X, gradient, rtol=0, atol=100 * tolerance * np.abs(c).sum() * w.max() * slope)
    assert np.all(R >= 0.0)


tied_scores = st.lists(st.integers(-6, 6), min_size=1, max_size=60).map(lambda whole: np.array(whole) / 4.0)
"""Multiples of 1/4: many ties, and differences that fall exactly on the kinks."""


@every_step
@given(f=tied_scores, seed=st.integers(0, 1000))
def test_lists_with_many_ties(name, f, seed):
    draw = stream(seed, "test weights")
    assert_equal_to_brute_force(name, f, draw.uniform(0.5, 2.0, f.size), draw.normal(size=f.size))


@every_step
@settings(max_examples=40)
@given(m=st.integers(1, 400), spread=st.floats(-6, 3), seed=st.integers(0, 1000), unit=st.booleans())
def test_all_sizes_and_spreads(name, m, spread, seed, unit):
    draw = stream(seed, "test scores")
    f = 10.0**spread * draw.normal(size=m)
    w = np.ones(m) if unit else draw.uniform(0.0, 3.0, m)
    assert_equal_to_brute_force(name, f, w, draw.normal(size=m))


@every_step
@pytest.mark.parametrize("f", [[0.0], [1e6, -1e6], [1e6, 1e6, -1e6, 0.0], [5.0] * 7], ids=str)
def test_hazards(name, f):
    f = np.array(f)
    assert_equal_to_brute_force(name, f, np.ones(f.size), np.ones(f.size))


@every_step
def test_ranks_of_close_scores_do_not_cancel(name):
    """Scores of 1e3 that differ by 1e-6: the ranks themselves must keep their digits, not only their sums."""
    f = 1e3 + 1e-6 * np.arange(50.0)
    step, twin, _ = TWINS[name]
    R, _, _ = fast(step, f, np.ones(50), np.ones(50))
    assert_allclose(R, smooth_ranks(twin, f, np.ones(50)).R, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("steepness", [0.5, 2.0, 20.0])
@pytest.mark.parametrize(("kind", "twin"), [(SIGMOID, Sigmoid), (LAPLACE, Laplace), (RAMP, Ramp)])
def test_other_steepnesses(kind, twin, steepness):
    f, w = stream(0, "test scores").normal(size=80), np.ones(80)
    R, D, _ = fast(Step(kind, steepness, sigmoid_terms()), f, w, w)
    expected = smooth_ranks(twin(steepness), f, w)
    assert_allclose(R, expected.R, atol=1e-7)
    assert_allclose(D, expected.D, atol=1e-6 * steepness)


@pytest.mark.parametrize("terms", [4, 8, 12])
@pytest.mark.parametrize("steepness", [1.0, 7.0, 50.0])
def test_the_error_bound_of_the_sigmoid(terms, steepness):
    """|R error| <= sum of the other weights * (3 + 2 sqrt 2)^-P, whatever steepness, size and scores are."""
    bound = (3 + 2 * np.sqrt(2)) ** -terms
    worst = 0.0
    for case in range(20):
        draw = stream(case, "test scores")
        f, w = draw.normal(size=100) * 10.0 ** draw.uniform(-4, 2), draw.uniform(0, 2, 100)
        R, _, _ = fast(Step(SIGMOID, steepness, sigmoid_terms(terms)), f, w, w)
        worst = max(worst, np.max(np.abs(R - smooth_ranks(Sigmoid(steepness), f, w).R) / (w.sum() - w)))
    assert worst <= bound * (1 + 1e-6) + 1e-13
    assert worst >= bound / 100 - 1e-13  # the bound says something


def test_the_exponential_sum_approximates_the_logistic_within_the_bound():
    t = np.linspace(0, 1, 20001)
    for terms in (4, 8, 12):
        approximation = np.polynomial.polynomial.polyval(t, np.append(0.0, sigmoid_terms(terms)))
        error = np.abs(approximation - t / (1 + t)).max()
        assert error == pytest.approx((3 + 2 * np.sqrt(2)) ** -terms, rel=0.01)


@every_step
def test_single_numbers_for_the_gate(name):
    step, twin, _ = TWINS[name]
    for x in (-1e6, -2.0, -0.1, 0.0, 0.1, 1.0, 2.5, 1e6):
        assert step_value(step, x) == pytest.approx(float(twin.h(np.array(x))), rel=1e-12, abs=1e-15)
        assert step_slope(step, x) == pytest.approx(float(twin.dh(np.array(x))), rel=1e-12, abs=1e-15)
