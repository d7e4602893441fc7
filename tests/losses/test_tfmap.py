"""TFMAP's smoothed average precision: the formula, and what it prefers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.small_lists import LikesOnlyTests, g, list_of_positives
from topnrank.losses.tfmap.reference import SmoothAP


class TestSmoothAP(LikesOnlyTests):
    objectives = (SmoothAP(),)

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        f = f[a > 0]
        above = 1.0 / (1.0 + np.exp(f[:, None] - f[None, :]))
        return -np.sum(above / (1.0 + np.exp(-f[:, None]))) / f.size


def average_precision(scores, gains):
    """F, one term after another."""
    P = [i for i, gain in enumerate(gains) if gain > 0]
    return sum(g(scores[i]) * g(scores[j] - scores[i]) for i in P for j in P) / len(P)


@pytest.mark.parametrize("case", range(5))
def test_the_value_is_the_papers_formula(case):
    scores, gains = list_of_positives(case)
    expected = average_precision(scores, gains)
    assert SmoothAP().evaluate(scores, gains).value == pytest.approx(-expected, rel=1e-12)


@pytest.mark.parametrize("mean", [-5.0, -1.0, 0.0, 2.0])
def test_the_pair_terms_of_a_given_mean_are_largest_at_equal_scores(mean):
    """From a mean of 0 on all of F is; far below, the terms j = i favor a spread."""
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
    scores, gains = list_of_positives(case)
    value = -SmoothAP().evaluate(scores, gains).value
    assert 0.0 < value < 0.5 * (gains > 0).sum() or not np.any(gains > 0)


@given(case=st.integers(0, 50), rise=st.floats(0.1, 5.0))
def test_it_rises_with_the_level_of_the_scores(case, rise):
    scores = list_of_positives(case)[0]
    ones = np.ones(scores.size)
    here, there = SmoothAP().evaluate(scores, ones), SmoothAP().evaluate(scores + rise, ones)
    assert there.value < here.value
    assert here.user.sum() < 0.0


def test_a_single_item_is_only_raised():
    result = SmoothAP().evaluate(np.array([0.3]), np.array([1.0]))
    assert result.value == pytest.approx(-0.5 * g(0.3), rel=1e-14)
    assert result.user[0] == pytest.approx(-0.5 * g(0.3) * g(-0.3), rel=1e-14)
    assert result.active == 1
