"""xCLiMF's bound: the paper's formula pair by pair, and what it prefers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from support.small_lists import LikesOnlyTests, g
from topnrank.losses.climf.reference import CLiMFBound
from topnrank.losses.xclimf.reference import LARGEST, XCLiMFBound
from topnrank.rng import stream


class TestXCLiMFBound(LikesOnlyTests):
    objectives = (XCLiMFBound(), XCLiMFBound(mean_pairs=False))
    gains = "grades"

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        above = 1.0 / (1.0 + np.exp(f[:, None] - f[None, :]))
        pairs = np.sum((1.0 - np.eye(a.size)) * np.log(1.0 - a[None, :] * above), axis=1)
        share = 1.0 / max((a > 0).sum() - 1, 1) if objective.mean_pairs else 1.0
        return -np.sum(a * (np.log(1.0 / (1.0 + np.exp(-f))) + share * pairs))


class TestXCLiMFBoundOfSignedGains(TestXCLiMFBound):
    """Gains below 0 count as 0, and those of 1 and more as `LARGEST`."""

    gains = "signed"

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        return TestXCLiMFBound.autograd_formula(np, objective, f, np.clip(a, 0.0, LARGEST), context)


def relevance(rating):
    return (2.0**rating - 1.0) / 32.0


def random_list(case, m=9):
    """Half stars, as MovieLens 20M has them, and an item without relevance."""
    draw = stream(case, "test list")
    return 2.0 * draw.normal(size=m), relevance(draw.integers(0, 11, size=m) / 2.0)


def pair_sum(scores, q):
    """The pair term of F, one logarithm after another."""
    pairs = [(j, k) for j in range(len(q)) for k in range(len(q)) if k != j]
    return sum(q[j] * math.log(1.0 - q[k] * g(scores[k] - scores[j])) for j, k in pairs)


def bound(scores, q):
    """F as the paper writes it."""
    return sum(q[j] * math.log(g(scores[j])) for j in range(len(q))) + pair_sum(scores, q)


@pytest.mark.parametrize("case", range(5))
def test_the_value_is_the_papers_formula(case):
    scores, q = random_list(case)
    expected = bound(scores, q)
    assert XCLiMFBound(mean_pairs=False).evaluate(scores, q).value == pytest.approx(-expected, rel=1e-12)
    mean = expected - (1.0 - 1.0 / ((q > 0).sum() - 1)) * pair_sum(scores, q)
    assert XCLiMFBound().evaluate(scores, q).value == pytest.approx(-mean, rel=1e-12)


@pytest.mark.parametrize(("better", "worse", "lead"), [(5, 1, 3.434), (5, 4, 0.726)])
def test_the_pair_term_prefers_the_lower_grade(better, worse, lead):
    """Alone, it is largest with the better item below: by ln(q_better / q_worse)."""
    q = np.array([relevance(better), relevance(worse)])
    x = np.linspace(-8, 8, 16001)
    values = [pair_sum([one, 0.0], q) for one in x]
    assert x[int(np.argmax(values))] == pytest.approx(-lead, abs=1e-3)
    assert math.log(q[0] / q[1]) == pytest.approx(lead, abs=1e-3)


def test_where_the_pair_term_is_largest_only_the_first_term_acts():
    """At f = -ln q all pair forces vanish at once, in any list."""
    q = relevance(np.array([1.0, 2.5, 3.0, 4.5, 5.0, 5.0]))
    f = -np.log(q)
    G = XCLiMFBound(mean_pairs=False).evaluate(f, q).user
    assert_allclose(G, [-a * g(-x) for a, x in zip(q, f, strict=True)], rtol=1e-12)


@given(case=st.integers(0, 50))
def test_the_pair_forces_cancel(case):
    scores, q = random_list(case)
    G = XCLiMFBound(mean_pairs=False).evaluate(scores, q).user
    first = sum(a * g(-x) for a, x in zip(q, scores, strict=True))
    assert G.sum() == pytest.approx(-first, abs=1e-12)


@given(case=st.integers(0, 50))
def test_full_relevance_is_climf(case):
    """With q = 1 for all, xCLiMF's bound is CLiMF's without the constant of k = j; the clip shows at large gaps only."""
    scores = 0.3 * random_list(case)[0]
    ones = np.ones(scores.size)
    x, c = (kind(mean_pairs=False).evaluate(scores, ones) for kind in (XCLiMFBound, CLiMFBound))
    assert x.value + scores.size * math.log(2) == pytest.approx(c.value, rel=1e-3)
    assert_allclose(x.user, c.user, atol=1e-3)


def test_a_single_item_is_only_raised():
    result = XCLiMFBound().evaluate(np.array([0.3]), np.array([0.5]))
    assert result.value == pytest.approx(-0.5 * math.log(g(0.3)), rel=1e-14)
    assert result.user[0] == pytest.approx(-0.5 * g(-0.3), rel=1e-14)
    assert result.active == 1


@pytest.mark.parametrize("gain", [1.0, 5.0, 1e300])
def test_gains_of_one_and_more_are_clipped(gain):
    scores = np.array([1e6, -1e6, 0.0, 0.0])
    clipped, result = (XCLiMFBound().evaluate(scores, np.full(4, a)) for a in (LARGEST, gain))
    assert result.value == clipped.value
    assert_array_equal(result.user, clipped.user)
