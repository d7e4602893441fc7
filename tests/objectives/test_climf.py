"""CLiMF's bound: the paper's formula pair by pair, gradients by differences and by autograd, and what it prefers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.objectives.climf import CLiMFBound
from topnrank.rng import stream
from topnrank.testing.gradients import central_differences

either = pytest.mark.parametrize("mean_pairs", [True, False])


def random_list(case, m=9):
    draw = stream(case, "test list")
    return 2.0 * draw.normal(size=m), draw.choice([-1.0, 0.0, 0.5, 1.0, 3.0], size=m)


def g(x):
    return 1.0 / (1.0 + math.exp(-x))


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
    scores, gains = random_list(case)
    expected = bound(scores, gains)
    assert CLiMFBound(mean_pairs=False).evaluate(scores, gains).value == pytest.approx(-expected, rel=1e-12)
    alone = sum(math.log(g(score)) for score in scores[gains > 0])
    mean = alone + (expected - alone) / ((gains > 0).sum() - 1)
    assert CLiMFBound().evaluate(scores, gains).value == pytest.approx(-mean, rel=1e-12)


def test_the_value_of_two_items():
    expected = math.log(g(0.7)) + math.log(g(0.2)) + math.log(g(0.5)) + math.log(g(-0.5)) - 2 * math.log(2)
    value = CLiMFBound(mean_pairs=False).evaluate(np.array([0.7, 0.2]), np.ones(2)).value
    assert value == pytest.approx(-expected, rel=1e-14)


@either
@pytest.mark.parametrize("case", range(3))
def test_the_gradient_is_the_difference_quotient(case, mean_pairs):
    scores, gains = random_list(case)
    objective = CLiMFBound(mean_pairs)
    numeric = central_differences(lambda f: objective.evaluate(f, gains).value, scores)
    result = objective.evaluate(scores, gains)
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
        return -anp.sum(anp.log(p)) - anp.sum(anp.log(1.0 - above))

    assert_allclose(CLiMFBound(mean_pairs=False).evaluate(scores, gains).user, autograd.grad(loss)(scores), rtol=1e-10)


@given(case=st.integers(0, 50))
def test_the_gradient_is_a_smooth_rank(case):
    """dF/df_j = g(-f_j) + 2 R_j - (|P| - 1)."""
    scores = random_list(case)[0]
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
    scores = random_list(case)[0]
    force = -CLiMFBound(mean_pairs=False).evaluate(scores, np.ones(scores.size)).user
    force -= np.array([g(-x) for x in scores])  # what is left comes from the pairs
    assert abs(force.sum()) < 1e-10
    assert force[np.argmax(scores)] <= 1e-12
    assert force[np.argmin(scores)] >= -1e-12


@given(case=st.integers(0, 50), share=st.floats(0, 1))
def test_the_loss_is_convex_in_the_scores(case, share):
    (here, gains), (there, _) = random_list(case), random_list(case + 1000)
    loss = lambda f: CLiMFBound().evaluate(f, gains).value  # noqa: E731
    between = loss(share * here + (1 - share) * there)
    assert between <= share * loss(here) + (1 - share) * loss(there) + 1e-9


@either
@given(case=st.integers(0, 50))
def test_other_rows_are_ignored(mean_pairs, case):
    scores, gains = random_list(case)
    relevant = gains > 0
    result = CLiMFBound(mean_pairs).evaluate(scores, gains)
    assert_array_equal(result.user[~relevant], 0.0)
    alone = CLiMFBound(mean_pairs).evaluate(scores[relevant], np.ones(relevant.sum()))
    assert result.value == alone.value
    assert_array_equal(result.user[relevant], alone.user)


@either
@pytest.mark.parametrize("gains", [np.zeros(6), -np.ones(6)], ids=["zero", "negative"])
def test_without_relevant_items_there_is_nothing(gains, mean_pairs):
    result = CLiMFBound(mean_pairs).evaluate(np.arange(6.0), gains)
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


def test_a_single_item_is_only_raised():
    result = CLiMFBound().evaluate(np.array([0.3]), np.array([1.0]))
    assert result.value == pytest.approx(-math.log(g(0.3)) + math.log(2), rel=1e-14)
    assert result.user[0] == pytest.approx(-g(-0.3), rel=1e-14)
    assert result.active == 1


@either
@pytest.mark.parametrize("gains", [np.ones(6), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 5.0])], ids=["equal", "mixed"])
@pytest.mark.parametrize(
    "scores",
    [np.array([1e6, -1e6, 0.0, 1e6, 1e-6, -3.0]), np.zeros(6), np.array([3.0, 3.0, 2.0, 1.0, 1.0, 0.0])],
    ids=["huge", "all tied", "some tied"],
)
def test_hazards_stay_finite(scores, gains, mean_pairs):
    with np.errstate(all="raise", under="ignore"):
        result = CLiMFBound(mean_pairs).evaluate(scores, gains)
    assert np.isfinite(result.value)
    assert np.isfinite(result.user).all()
