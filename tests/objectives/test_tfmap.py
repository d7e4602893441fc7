"""TFMAP's smoothed average precision: the formula, gradients by differences and by autograd, and what it prefers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.objectives.tfmap import SmoothAP
from topnrank.rng import stream
from topnrank.testing.gradients import central_differences


def random_list(case, m=9):
    draw = stream(case, "test list")
    return 2.0 * draw.normal(size=m), draw.choice([-1.0, 0.0, 0.5, 1.0, 3.0], size=m)


def g(x):
    return 1.0 / (1.0 + math.exp(-x))


def average_precision(scores, gains):
    """F, one term after another."""
    P = [i for i, gain in enumerate(gains) if gain > 0]
    return sum(g(scores[i]) * g(scores[j] - scores[i]) for i in P for j in P) / len(P)


@pytest.mark.parametrize("case", range(5))
def test_the_value_is_the_papers_formula(case):
    scores, gains = random_list(case)
    expected = average_precision(scores, gains)
    assert SmoothAP().evaluate(scores, gains).value == pytest.approx(-expected, rel=1e-12)


@pytest.mark.parametrize("case", range(3))
def test_the_gradient_is_the_difference_quotient(case):
    scores, gains = random_list(case)
    numeric = central_differences(lambda f: SmoothAP().evaluate(f, gains).value, scores)
    result = SmoothAP().evaluate(scores, gains)
    assert_allclose(result.user, numeric, atol=1e-7 * np.abs(numeric).max())
    assert_array_equal(result.item, result.user)


@pytest.mark.parametrize("case", range(3))
def test_the_gradient_is_that_of_autograd(case):
    autograd = pytest.importorskip("autograd")
    import autograd.numpy as anp

    scores, gains = random_list(case)
    liked = np.where(gains > 0)[0]

    def loss(f):
        p = 1.0 / (1.0 + anp.exp(-f[liked]))
        above = 1.0 / (1.0 + anp.exp(f[liked][:, None] - f[liked][None, :]))
        return -anp.sum(p[:, None] * above) / liked.size

    assert_allclose(SmoothAP().evaluate(scores, gains).user, autograd.grad(loss)(scores), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("mean", [-5.0, -1.0, 0.0, 2.0])
def test_the_pair_terms_of_a_given_mean_are_largest_at_equal_scores(mean):
    """From a mean of 0 on all of F is; far below, the terms j = i favour a spread."""
    x = np.linspace(-10, 10, 2001)
    both = np.array([average_precision([mean + d, mean - d], [1, 1]) for d in x])
    pairs = both - np.array([0.25 * (g(mean + d) + g(mean - d)) for d in x])
    assert x[int(np.argmax(pairs))] == pytest.approx(0.0, abs=1e-12)
    if mean >= 0.0:
        assert x[int(np.argmax(both))] == pytest.approx(0.0, abs=1e-12)
    if mean == -5.0:
        assert abs(x[int(np.argmax(both))]) == pytest.approx(10.0)


@given(case=st.integers(0, 50))
def test_it_lies_between_zero_and_half_the_relevant_items(case):
    scores, gains = random_list(case)
    value = -SmoothAP().evaluate(scores, gains).value
    assert 0.0 < value < 0.5 * (gains > 0).sum() or not np.any(gains > 0)


@given(case=st.integers(0, 50), rise=st.floats(0.1, 5.0))
def test_it_rises_with_the_level_of_the_scores(case, rise):
    scores = random_list(case)[0]
    ones = np.ones(scores.size)
    here, there = SmoothAP().evaluate(scores, ones), SmoothAP().evaluate(scores + rise, ones)
    assert there.value < here.value
    assert here.user.sum() < 0.0


@given(case=st.integers(0, 50))
def test_other_rows_are_ignored(case):
    scores, gains = random_list(case)
    relevant = gains > 0
    result = SmoothAP().evaluate(scores, gains)
    assert_array_equal(result.user[~relevant], 0.0)
    alone = SmoothAP().evaluate(scores[relevant], np.ones(relevant.sum()))
    assert result.value == alone.value
    assert_array_equal(result.user[relevant], alone.user)


@pytest.mark.parametrize("gains", [np.zeros(6), -np.ones(6)], ids=["zero", "negative"])
def test_without_relevant_items_there_is_nothing(gains):
    result = SmoothAP().evaluate(np.arange(6.0), gains)
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


def test_a_single_item_is_only_raised():
    result = SmoothAP().evaluate(np.array([0.3]), np.array([1.0]))
    assert result.value == pytest.approx(-0.5 * g(0.3), rel=1e-14)
    assert result.user[0] == pytest.approx(-0.5 * g(0.3) * g(-0.3), rel=1e-14)
    assert result.active == 1


@pytest.mark.parametrize("gains", [np.ones(6), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 5.0])], ids=["equal", "mixed"])
@pytest.mark.parametrize(
    "scores",
    [np.array([1e6, -1e6, 0.0, 1e6, 1e-6, -3.0]), np.zeros(6), np.array([3.0, 3.0, 2.0, 1.0, 1.0, 0.0])],
    ids=["huge", "all tied", "some tied"],
)
def test_hazards_stay_finite(scores, gains):
    with np.errstate(all="raise", under="ignore"):
        result = SmoothAP().evaluate(scores, gains)
    assert np.isfinite(result.value)
    assert np.isfinite(result.user).all()
