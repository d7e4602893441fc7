"""CLiMF's bound: the paper's formula pair by pair, and what it prefers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.small_lists import LikesOnlyTests, g, list_of_positives
from topnrank.losses.climf.reference import CLiMFBound


class TestCLiMFBound(LikesOnlyTests):
    objectives = (CLiMFBound(), CLiMFBound(mean_pairs=False))

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        f = f[a > 0]
        above = 1.0 / (1.0 + np.exp(f[:, None] - f[None, :]))
        share = 1.0 / max(f.size - 1, 1) if objective.mean_pairs else 1.0
        return -np.sum(np.log(1.0 / (1.0 + np.exp(-f)))) - share * np.sum(np.log(1.0 - above))


def bound(scores, gains):
    """F as the paper writes it, one term after another."""
    P = [j for j, gain in enumerate(gains) if gain > 0]
    total = 0.0
    for j in P:
        total += math.log(g(scores[j]))
        for k in P:
            total += math.log(1.0 - g(scores[k] - scores[j]))
    return total


@pytest.mark.parametrize("case", range(5))
def test_the_value_is_the_papers_formula(case):
    scores, gains = list_of_positives(case)
    expected = bound(scores, gains)
    assert CLiMFBound(mean_pairs=False).evaluate(scores, gains).value == pytest.approx(-expected, rel=1e-12)
    alone = sum(math.log(g(score)) for score in scores[gains > 0])
    mean = alone + (expected - alone) / ((gains > 0).sum() - 1)
    assert CLiMFBound().evaluate(scores, gains).value == pytest.approx(-mean, rel=1e-12)


def test_the_value_of_two_items():
    expected = math.log(g(0.7)) + math.log(g(0.2)) + math.log(g(0.5)) + math.log(g(-0.5)) - 2 * math.log(2)
    value = CLiMFBound(mean_pairs=False).evaluate(np.array([0.7, 0.2]), np.ones(2)).value
    assert value == pytest.approx(-expected, rel=1e-14)


@given(case=st.integers(0, 50))
def test_the_gradient_is_a_smooth_rank(case):
    """dF/df_j = g(-f_j) + 2 R_j - (|P| - 1)."""
    scores = list_of_positives(case)[0]
    R = np.array([sum(g(x - y) for i, x in enumerate(scores) if i != j) for j, y in enumerate(scores)])
    expected = np.array([g(-y) for y in scores]) + 2.0 * R - (scores.size - 1)
    G = CLiMFBound(mean_pairs=False).evaluate(scores, np.ones(scores.size)).user
    assert_allclose(G, -expected, atol=1e-12)


def test_the_pair_term_is_largest_at_equal_scores():
    def pair(x):
        value = CLiMFBound(mean_pairs=False).evaluate(np.array([x / 2, -x / 2]), np.ones(2)).value
        return -value - math.log(g(x / 2)) - math.log(g(-x / 2))

    x = np.linspace(-6, 6, 1201)
    values = [pair(one) for one in x]
    assert x[int(np.argmax(values))] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.diff(values[:600]) > 0)
    assert np.all(np.diff(values[601:]) < 0)


@given(case=st.integers(0, 50))
def test_the_pair_forces_pull_together_and_cancel(case):
    scores = list_of_positives(case)[0]
    force = -CLiMFBound(mean_pairs=False).evaluate(scores, np.ones(scores.size)).user
    force -= np.array([g(-x) for x in scores])  # what is left comes from the pairs
    assert abs(force.sum()) < 1e-10
    assert force[np.argmax(scores)] <= 1e-12
    assert force[np.argmin(scores)] >= -1e-12


@given(case=st.integers(0, 50), share=st.floats(0, 1))
def test_the_loss_is_convex_in_the_scores(case, share):
    (here, gains), (there, _) = list_of_positives(case), list_of_positives(case + 1000)
    loss = lambda f: CLiMFBound().evaluate(f, gains).value  # noqa: E731
    between = loss(share * here + (1 - share) * there)
    assert between <= share * loss(here) + (1 - share) * loss(there) + 1e-9


def test_a_single_item_is_only_raised():
    result = CLiMFBound().evaluate(np.array([0.3]), np.array([1.0]))
    assert result.value == pytest.approx(-math.log(g(0.3)) + math.log(2), rel=1e-14)
    assert result.user[0] == pytest.approx(-g(-0.3), rel=1e-14)
    assert result.active == 1
