"""The Top-N-Rank objective: values as formulas, gradients as difference quotients, the paper's own algorithm."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from support.rank_losses import STEPS, BudgetTests, above_by_autograd, cut_by_hand, random_list, ranks, step_by_autograd
from topnrank.losses.base import ListContext
from topnrank.losses.squared import Squared
from topnrank.losses.steps import Laplace, Sigmoid
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests, central_differences

CUT = [(True, 2.0), (True, 1.5), (False, 2.0), (False, 1.0), (False, 0.0), (False, -0.5), (False, 3.0)]
"""(truncate, power of the discount)"""

EXACT = tuple(WeightedDCG(step, n=3, truncate=cut, discount=p, exact=True) for step in STEPS[:4] for cut, p in CUT)
every_objective = pytest.mark.parametrize(
    "objective", EXACT, ids=lambda o: f"{o.step}-{'cut' if o.truncate else 'whole'}-{o.discount}"
)


class TestExact(ObjectiveTests):
    objectives = EXACT
    every_item_counts = False

    @staticmethod
    def autograd_formula(np, o, f, a, context):
        weights = np.concatenate([np.ones(f.size - context.sampled), context.weight * np.ones(context.sampled)])
        log = np.log(above_by_autograd(np, o.step, f) @ weights + 2.0)
        a = a / max(sum(a > 0.0), 1) ** o.length_power if o.length_power else a
        D = -np.log(log) if o.discount == 1.0 else log ** (1.0 - o.discount) / (o.discount - 1.0)
        N = cut_by_hand(o, f.size, context.progress)
        H = step_by_autograd(np, o.step, N - np.exp(log) + 2.0) if o.truncate else 1.0
        return -np.sum(a * H * D) + 0.5 * o.squared_weight * np.sum((f - np.mean(f) - a + np.mean(a)) ** 2)


class TestPaper(TestExact):
    """The items' gradient is another; the users' is the derivative."""

    objectives = tuple(WeightedDCG(step, n=3, truncate=not isinstance(step, Laplace)) for step in STEPS)
    one_gradient = False


class TestAnnealedAndAnchored(TestExact):
    objectives = tuple(WeightedDCG(step, n=3, exact=True, anneal_n=0.5, squared_weight=0.3) for step in STEPS)
    contexts = (ListContext(progress=0.25),)


class TestSampledAndBalanced(TestExact):
    """Unobserved items that stand for others in the ranks, and long lists that count less."""

    objectives = tuple(
        WeightedDCG(step, n=3, truncate=False, exact=True, discount=-1.0, length_power=0.5) for step in STEPS[:4]
    )
    contexts = (ListContext(sampled=3, weight=np.array([2.5, 7.0, 0.5])), ListContext(sampled=3, weight=20.0))


class TestBudget(BudgetTests):
    objectives = tuple(
        WeightedDCG(
            step, n=3, truncate=cut, exact=True, gradient_budget=0.15, squared_weight=squared_weight, anneal_n=0.5
        )
        for step in STEPS[:4]
        for cut, squared_weight in ((True, 0.7), (False, 0.0))
    )
    contexts = (ListContext(progress=0.25),)


class TestSquared(ObjectiveTests):
    objectives = (Squared(),)

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        return 0.5 * np.sum((f - np.mean(f) - a + np.mean(a)) ** 2)


def loss_of_ranks(objective, R, gains):
    """- sum_i a_i H(N - R_i) D(R_i), with D the antiderivative of the discount's slope."""
    p, log = objective.discount, np.log(R + 2.0)
    D = -np.log(log) if p == 1.0 else log ** (1.0 - p) / (p - 1.0)
    H = objective.step.h(objective.n - R) if objective.truncate else 1.0
    return -float(np.sum(gains * H * D))


@every_objective
def test_the_value_is_equation_8(objective):
    scores, gains = random_list(0)
    expected = loss_of_ranks(objective, ranks(objective.step, scores), gains)
    assert_allclose(objective.evaluate(scores, gains).value, expected, rtol=1e-12)


def test_the_value_of_two_items_with_relu():
    f, a = np.array([0.7, 0.2]), np.array([1.0, -1.0])
    R = np.array([0.0, 0.5])
    expected = -(20 - R[0]) / np.log(2) + (20 - R[1]) / np.log(R[1] + 2)
    assert WeightedDCG().evaluate(f, a).value == pytest.approx(expected, rel=1e-14)


def test_the_value_of_three_items_with_the_sigmoid():
    f, a = np.array([0.1, 0.3, -0.2]), np.array([1.0, 1.0, -1.0])

    def g(x):
        return 1 / (1 + np.exp(-7 * x))

    R = np.array([g(0.2) + g(-0.3), g(-0.2) + g(-0.5), g(0.3) + g(0.5)])
    expected = -1 / np.log(R[0] + 2) - 1 / np.log(R[1] + 2) + 1 / np.log(R[2] + 2)
    assert WeightedDCG(Sigmoid(), truncate=False).evaluate(f, a).value == pytest.approx(expected, rel=1e-14)


def test_the_gradient_of_two_items_with_relu():
    """Only the lower item has a rank that moves; both scores feel it, with opposite signs."""
    f, a = np.array([0.7, 0.2]), np.array([0.0, -1.0])
    R = 0.5
    c = -1 / np.log(R + 2) * (1 + (20 - R) / ((R + 2) * np.log(R + 2)))
    result = WeightedDCG(exact=True).evaluate(f, a)
    assert_allclose(result.user, [c, -c], rtol=1e-14)
    assert_allclose(WeightedDCG().evaluate(f, a).item, [0.0, -c], rtol=1e-14)


@pytest.mark.parametrize(("m", "n"), [(9, 3), (9, 20)])
def test_the_budget_is_the_mass_of_the_list_wise_gradient(m, n):
    scores, gains = random_list(5, m)
    result = WeightedDCG(Laplace(), n=n, truncate=False, gradient_budget=0.15).evaluate(scores, gains)
    assert np.abs(result.user).sum() == pytest.approx(0.15 * min(m, n), rel=1e-12)


@every_objective
def test_the_papers_item_gradient_holds_the_other_ranks_fixed(objective):
    scores, gains = random_list(1)
    R = ranks(objective.step, scores)

    def loss_where_only_the_own_rank_moves(j, f_j):
        moved = R.copy()
        moved[j] = sum(float(objective.step.h(scores[i] - f_j)) for i in range(scores.size) if i != j)
        return loss_of_ranks(objective, moved, gains)

    numeric = [
        central_differences(lambda f, j=j: loss_where_only_the_own_rank_moves(j, f[0]), scores[j : j + 1])[0]
        for j in range(scores.size)
    ]
    result = replace(objective, exact=False).evaluate(scores, gains)
    assert_allclose(result.item, numeric, atol=2e-6 * np.abs(numeric).max())
    assert_allclose(result.user, objective.evaluate(scores, gains).user, rtol=1e-14)


def algorithm_2(f, a, N):
    """Lines 12 to 16 of the paper's Algorithm 2: the factor of theta_user in each item's gradient, R by accumulation."""
    order = np.argsort(-f)
    gradient, R = np.zeros(f.size), 0.0
    for i in range(2, f.size + 1):  # 1-based, as printed
        here, above = order[i - 1], order[i - 2]
        R += (i - 1) * (f[above] - f[here])
        h, dh = max(N - R, 0.0), float(N - R > 0.0)
        gradient[here] = a[here] / np.log(R + 2) * (1 - i) * (dh + h / ((R + 2) * np.log(R + 2)))
    return gradient


@pytest.mark.parametrize("case", range(5))
def test_algorithm_2_as_printed_gives_the_item_gradient(case):
    scores, gains = random_list(case, 30)
    expected = algorithm_2(scores, gains, N=4)
    assert np.any(expected == 0.0)  # the truncation acts
    assert_allclose(WeightedDCG(n=4).evaluate(scores, gains).item, expected, rtol=1e-10)


def test_the_papers_user_gradient_is_the_exact_one():
    """Line 8: sum_i c_i sum_{j<i} (v_j - v_i) = sum_j G_j v_j."""
    scores, gains = random_list(7, 20)
    V = stream(7, "test vectors").normal(size=(20, 4))
    order = np.argsort(-scores)
    P = algorithm_2(scores, gains, N=4)
    line_8 = np.zeros(4)
    for i in range(2, 21):
        here = order[i - 1]
        c = P[here] / (1 - i)
        line_8 += c * sum(V[order[j]] - V[here] for j in range(i - 1))
    assert_allclose(WeightedDCG(n=4).evaluate(scores, gains).user @ V, line_8, rtol=1e-10)


def test_active_counts_the_items_with_a_rank_below_n():
    scores = np.array([3.0, 2.0, 1.0, 0.0])  # ReLU ranks 0, 1, 3, 6
    assert [WeightedDCG(n=n).evaluate(scores, np.ones(4)).active for n in (1, 2, 4, 7)] == [1, 2, 3, 4]


def test_an_item_exactly_at_n_is_cut():
    """R = N: neither value nor force (H(0) = 0 and H'(0) = 0)."""
    result = WeightedDCG(n=2).evaluate(np.array([2.0, 0.0]), np.array([0.0, 1.0]))
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)
    assert_array_equal(result.item, 0.0)


def test_tied_items_exert_no_force_with_relu():
    result = WeightedDCG(exact=True).evaluate(np.zeros(5), np.array([1.0, 1.0, -1.0, 2.0, 0.0]))
    assert_array_equal(result.user, 0.0)
    assert result.value == pytest.approx(-3.0 * 20 / np.log(2))


@every_objective
def test_a_single_item_feels_nothing(objective):
    result = replace(objective, squared_weight=1.0, gradient_budget=0.15).evaluate(np.array([3.0]), np.array([2.0]))
    assert_array_equal(result.user, 0.0)
    assert_array_equal(result.item, 0.0)
    assert result.value == pytest.approx(loss_of_ranks(objective, np.zeros(1), np.array([2.0])))


def test_squared_loss_is_that_of_the_best_user_bias():
    scores, gains = random_list(3)
    result = Squared().evaluate(scores, gains)
    best = min(0.5 * np.sum((scores + bias - gains) ** 2) for bias in np.linspace(-3, 3, 6001))
    assert result.value == pytest.approx(best, rel=1e-6)


def test_rounding_is_not_blown_up_to_the_budget():
    """All scores and gains equal: no force but rounding, which the budget must leave alone."""
    for m in range(2, 12):
        result = WeightedDCG(Laplace(), truncate=False, gradient_budget=0.15).evaluate(np.full(m, 0.3), np.full(m, 0.7))
        assert np.abs(result.user).max() < 1e-12


def test_a_force_that_all_but_vanished_is_not_divided_by():
    """Two items so far apart that the force underflows: its inverse would be infinite."""
    result = WeightedDCG(Laplace(), truncate=False, gradient_budget=0.15).evaluate(np.array([237.0, 0.0]), np.ones(2))
    assert np.isfinite(result.user).all()
