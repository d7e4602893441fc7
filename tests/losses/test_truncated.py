"""Truncated MRR, MAP and AUC: values as formulas, gradients, and what they mean."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.rank_losses import STEPS, BudgetTests, above_by_autograd, cut_by_hand, random_list, ranks
from topnrank.losses.base import ListContext
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.testing.losses import ObjectiveTests

METRICS = (TruncatedMRR, TruncatedMAP, TruncatedAUC)
OBJECTIVES = tuple(metric(step, n=3, truncate=cut) for metric in METRICS for step in STEPS for cut in (True, False))
every_metric = pytest.mark.parametrize("metric", METRICS)
every_objective = pytest.mark.parametrize(
    "objective",
    OBJECTIVES,
    ids=lambda o: f"{type(o).__name__}-{type(o.step).__name__}-{'cut' if o.truncate else 'whole'}",
)
OTHERS = {TruncatedMRR: {"tau": 0.4}, TruncatedMAP: {}, TruncatedAUC: {"margin": 0.3}}
"""Other values of a metric's own number."""


class TestTruncated(ObjectiveTests):
    objectives = OBJECTIVES
    every_item_counts = False
    needs_positives = True

    @staticmethod
    def autograd_formula(np, o, f, a, context):
        y, above = (a > 0) * 1.0, above_by_autograd(np, o.step, f)
        R, R_plus = np.sum(above, axis=1), np.dot(above, y)
        N = cut_by_hand(o, f.size, context.progress)

        def T(R):
            return np.maximum(N - R, 0.0) / N if o.truncate else 1.0 + 0.0 * R

        if isinstance(o, TruncatedMRR):
            first = -o.tau * np.log(np.sum(y * np.exp(-R / o.tau)) / y.sum())
            return -T(first) / (1.0 + first)
        if isinstance(o, TruncatedMAP):
            return -np.sum(y * T(R) * (1.0 + R_plus) / (1.0 + R)) / min(y.sum(), o.n)
        hinges = np.maximum(o.margin + f[:, None] - f[None, :], 0.0)
        return np.sum((1.0 - y)[:, None] * y[None, :] * T(R)[:, None] * hinges) / (y.sum() * (1.0 - y).sum())


class TestAnnealed(TestTruncated):
    objectives = tuple(metric(step, n=3, anneal_n=0.5, **OTHERS[metric]) for metric in METRICS for step in STEPS[:4])
    contexts = (ListContext(progress=0.25),)


class TestBudget(BudgetTests):
    objectives = tuple(metric(step, n=3, gradient_budget=0.5, anneal_n=0.5) for metric in METRICS for step in STEPS[:4])
    contexts = (ListContext(progress=0.25),)
    needs_positives = True


class TestBudgetAndAnchor(BudgetTests):
    objectives = tuple(
        metric(step, n=3, truncate=cut, gradient_budget=0.15, squared_weight=0.7)
        for metric in METRICS
        for step, cut in ((ReLU(), True), (Sigmoid(), False), (Laplace(), True), (Ramp(), False))
    )


# -- the formulas in loops ---------------------------------------------------------------------------------------------


def loss_by_loops(o, f, a, N):
    """The module's formulas, term by term; `N` is the gate's."""
    P = [i for i in range(len(f)) if a[i] > 0]
    Q = [j for j in range(len(f)) if a[j] <= 0]
    R, R_plus = ranks(o.step, f, range(len(f))), ranks(o.step, f, P)

    def T(R):
        return max(N - R, 0.0) / N if o.truncate else 1.0

    if not P:
        return 0.0
    if isinstance(o, TruncatedMRR):
        first = -o.tau * math.log(sum(math.exp(-R[i] / o.tau) for i in P)) + o.tau * math.log(len(P))
        return -T(first) / (1 + first)
    if isinstance(o, TruncatedMAP):
        return -sum(T(R[i]) * (1 + R_plus[i]) / (1 + R[i]) for i in P) / min(len(P), o.n)
    hinges = sum(T(R[j]) * max(o.margin + f[j] - f[i], 0.0) for j in Q for i in P)
    return hinges / (len(P) * max(1, len(Q)))


@pytest.mark.parametrize("own", [False, True], ids=["default", "own number"])
@every_objective
def test_the_value_is_the_formula(objective, own):
    objective = replace(objective, anneal_n=0.8, **(OTHERS[type(objective)] if own else {}))
    scores, gains = random_list(1 if own else 0)
    for progress, N in ((0.0, 9.0), (0.4, 6.0), (0.8, 3.0), (1.0, 3.0)):
        value = objective.evaluate(scores, gains, ListContext(progress=progress)).value
        assert_allclose(value, loss_by_loops(objective, scores, gains, N), rtol=1e-12)


@every_objective
def test_the_budget_is_the_mass_of_the_list_wise_gradient(objective):
    """By the plain N, whatever the gate's is."""
    scores, gains = random_list(4)
    result = replace(objective, gradient_budget=0.5, anneal_n=0.5).evaluate(scores, gains, ListContext(progress=0.25))
    assert np.abs(result.user).sum() == pytest.approx(0.5 * min(9, 3), rel=1e-12)


# -- what the numbers mean ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likes", [[0, 1, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 0, 1]])
def test_steep_steps_give_the_metrics_themselves(likes):
    """Scores far apart: smooth ranks are ranks, so the losses are minus reciprocal rank and average precision."""
    y = np.array(likes, np.float64)
    scores = -np.arange(6.0)
    places = np.flatnonzero(y)
    precision = [(k + 1) / (place + 1) for k, place in enumerate(places)]
    first = TruncatedMRR(Laplace(50.0), truncate=False, tau=1e-6).evaluate(scores, y).value
    assert first == pytest.approx(-1 / (1 + places[0]), rel=1e-5)
    assert TruncatedMAP(Laplace(50.0), truncate=False).evaluate(scores, y).value == pytest.approx(-np.mean(precision))
    cut = [value * (3 - place) / 3 for value, place in zip(precision, places, strict=True) if place < 3]
    expected = -np.sum(cut) / min(places.size, 3)
    assert TruncatedMAP(Laplace(50.0), n=3).evaluate(scores, y).value == pytest.approx(expected, abs=1e-12)


def test_auc_counts_pairs_in_the_wrong_order():
    """Gaps far beyond the margin: the hinge is the gap of each misplaced pair plus the margin."""
    f, a = np.array([30.0, 20.0, 10.0]), np.array([-1.0, 1.0, 1.0])
    assert TruncatedAUC(truncate=False).evaluate(f, a).value == pytest.approx((11.0 + 21.0) / 2)
    assert TruncatedAUC(truncate=False).evaluate(-f, a).value == 0.0


rank_lists = st.lists(st.tuples(st.floats(-30, 30), st.booleans()), min_size=1, max_size=25)


@given(drawn=rank_lists, tau=st.floats(1e-3, 50.0), step=st.sampled_from(STEPS))
def test_the_softmin_lies_between_the_least_rank_and_the_mean(drawn, tau, step):
    f, y = np.array([f for f, _ in drawn]), np.array([y for _, y in drawn])
    assume(y.any())
    R = np.array(ranks(step, f, range(f.size)))[y]
    first = -1.0 / TruncatedMRR(step, truncate=False, tau=tau).evaluate(f, y * 1.0).value - 1.0
    slack = 1e-9 * (1.0 + R.max())
    assert R.min() - slack <= first <= min(R.mean(), R.min() + tau * np.log(y.sum())) + slack


def test_many_ties_keep_the_softmin_away_from_its_pole():
    """Without tau ln|P| it would be -tau ln 500 = -6.2, beyond the pole at -1."""
    result = TruncatedMRR(ReLU()).evaluate(np.zeros(500), np.ones(500))
    assert result.value == pytest.approx(-1.0)


steep = st.sampled_from([Laplace(30.0), Sigmoid(30.0), Ramp(2.0)])


@given(step=steep, likes=st.lists(st.booleans(), min_size=8, max_size=8), place=st.integers(0, 6), cut=st.booleans())
@every_metric
def test_the_loss_falls_when_a_positive_passes_a_negative(metric, step, likes, place, cut):
    """A negative stands just above a positive and the two change places; above rank 3 the fall is strict even if cut."""
    y = np.array(likes)
    y[place : place + 2] = False, True
    scores = -np.arange(8.0)
    passed = scores.copy()
    passed[[place, place + 1]] = scores[[place + 1, place]]
    objective = metric(step, n=5, truncate=cut)
    before, after = (objective.evaluate(f, y - 0.5).value for f in (scores, passed))
    if place < 3 or not cut:
        assert after < before - 1e-6
    else:
        assert after < before + 1e-9


@given(case=st.integers(0, 30), rise=st.floats(0, 10), step=st.sampled_from(STEPS), cut=st.booleans())
def test_auc_never_gains_from_a_lower_positive(case, rise, step, cut):
    """A rising positive lowers the hinges and pushes negatives down, toward the cut."""
    scores, gains = random_list(case)
    positive = int(np.flatnonzero(gains > 0)[case % (gains > 0).sum()])
    risen = scores.copy()
    risen[positive] += rise
    objective = TruncatedAUC(step, n=3, truncate=cut)
    assert objective.evaluate(risen, gains).value <= objective.evaluate(scores, gains).value + 1e-12
