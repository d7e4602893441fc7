"""Truncated MRR, MAP and AUC: dead zone and annealing, kinks and limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from support.rank_losses import STEPS, random_list, ranks
from topnrank.losses.base import ListContext
from topnrank.losses.shaping import annealed_n
from topnrank.losses.steps import Laplace, Ramp, ReLU
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg.reference import WeightedDCG

METRICS = (TruncatedMRR, TruncatedMAP, TruncatedAUC)
START = ListContext(progress=0.0)
every_metric = pytest.mark.parametrize("metric", METRICS)

# -- dead zone and annealing -------------------------------------------------------------------------------------------

FAR_DOWN = np.array([0.95, 0.9, 0.85, 0.8, 0.0])
"""The last item has R = 3.5 with ReLU and ramp: beyond N = 2, within a cut at the length of the list."""
DEAD = {
    # the one positive is at the end of the list
    TruncatedMRR: (FAR_DOWN, np.array([-1.0, -1.0, -1.0, -1.0, 1.0])),
    # a positive at the top is alive, the one at the end is not
    TruncatedMAP: (FAR_DOWN, np.array([1.0, -1.0, -1.0, -1.0, 1.0])),
    # positives hold the top, so that every negative is cut, and with them what pulls up the last positive
    TruncatedAUC: (np.array([0.95, 0.9, 0.85, 0.0, -0.02]), np.array([1.0, 1.0, 1.0, -1.0, 1.0])),
}


@pytest.mark.parametrize("step", [ReLU(), Ramp()], ids=repr)
@every_metric
def test_a_positive_beyond_n_is_dead_unless_the_cut_is_annealed(metric, step):
    scores, gains = DEAD[metric]
    assert 2.0 <= ranks(step, scores, range(5))[4] < 5.0
    objective = metric(step, n=2, anneal_n=0.5)
    for dead in (replace(objective, anneal_n=0.0).evaluate(scores, gains, START), objective.evaluate(scores, gains)):
        assert dead.user[4] == 0.0
    assert objective.evaluate(scores, gains, START).user[4] < -1e-3  # descent lifts it


@every_metric
def test_with_laplace_a_cut_positive_feels_other_ranks_at_most(metric):
    """MRR and AUC are dead as with ReLU; MAP leaves what the item does to the ranks of those that are not cut."""
    scores, gains = DEAD[metric]
    dead = metric(Laplace(), n=2).evaluate(scores, gains).user[4]
    assert dead != 0.0 if metric is TruncatedMAP else dead == 0.0
    assert metric(Laplace(), n=2, anneal_n=1.0).evaluate(scores, gains, START).user[4] < min(dead, 0.0) - 1e-3


def test_dcg_has_the_same_dead_zone_and_the_same_cure():
    scores, gains = DEAD[TruncatedMAP]
    objective = WeightedDCG(ReLU(), n=2, exact=True, anneal_n=0.5)
    assert objective.evaluate(scores, gains).user[4] == 0.0
    alive = objective.evaluate(scores, gains, START)
    assert alive.user[4] < -1e-3
    whole = WeightedDCG(ReLU(), n=5, exact=True).evaluate(scores, gains)
    assert_array_equal(alive.user, whole.user)
    assert (alive.value, alive.active) == (whole.value, int(np.sum(np.array(ranks(ReLU(), scores, range(5))) < 2)))


def test_auc_lifts_a_cut_positive_while_a_negative_is_in_front():
    scores, gains = np.array([9.0, 8.0, 7.0, 6.0, 0.0]), np.array([-1.0, -1.0, -1.0, -1.0, 1.0])
    assert TruncatedAUC(ReLU(), n=2).evaluate(scores, gains).user[-1] < 0.0


def test_the_annealed_cut():
    assert [annealed_n(3, 11, 0.5, progress) for progress in (0.0, 0.25, 0.5, 1.0)] == [11.0, 7.0, 3.0, 3.0]
    assert annealed_n(3, 11, 0.0, 0.0) == 3.0
    assert annealed_n(20, 11, 0.5, 0.0) == 20.0  # a cut longer than the list stays


@every_metric
def test_active_counts_by_the_plain_n(metric):
    scores = np.array([3.0, 2.0, 1.0, 0.0])  # ReLU ranks 0, 1, 3, 6
    gains = np.array([1.0, -1.0, 1.0, -1.0])
    counts = [metric(ReLU(), n=n, anneal_n=1.0).evaluate(scores, gains, START).active for n in (1, 2, 4, 7)]
    assert counts == [1, 2, 3, 4]


# -- kinks and limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [TruncatedMRR, TruncatedMAP])
def test_an_item_exactly_at_n_is_cut(metric):
    result = metric(ReLU(), n=2).evaluate(np.array([2.0, 0.0]), np.array([0.0, 1.0]))
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


def test_auc_at_its_kinks():
    at_the_margin = TruncatedAUC(ReLU(), truncate=False).evaluate(np.array([1.0, 0.0]), np.array([1.0, -1.0]))
    assert_array_equal(at_the_margin.user, 0.0)
    at_n = TruncatedAUC(ReLU(), n=2, margin=5.0).evaluate(np.array([2.0, 0.0]), np.array([1.0, -1.0]))
    assert at_n.value == 0.0
    assert_array_equal(at_n.user, 0.0)


def test_tied_items_exert_no_force_with_relu_but_the_margin_does():
    gains = np.array([1.0, 1.0, -1.0, 2.0, 0.0])
    for metric in (TruncatedMRR, TruncatedMAP):
        assert_array_equal(metric(ReLU()).evaluate(np.zeros(5), gains).user, 0.0)
    assert_allclose(TruncatedAUC(ReLU()).evaluate(np.zeros(5), gains).user, [-1 / 3, -1 / 3, 1 / 2, -1 / 3, 1 / 2])


@given(case=st.integers(0, 20), step=st.sampled_from(STEPS), metric=st.sampled_from(METRICS))
def test_the_size_of_a_gain_does_not_matter(case, step, metric):
    scores, gains = random_list(case)
    here, there = (metric(step, n=5, gradient_budget=0.1).evaluate(scores, a) for a in (gains, np.sign(gains)))
    assert there.value == here.value
    assert_array_equal(there.user, here.user)


def test_without_negatives_auc_does_nothing():
    result = TruncatedAUC(gradient_budget=0.15).evaluate(np.array([1.0, 0.5]), np.ones(2))
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


@every_metric
@pytest.mark.parametrize("gain", [2.0, -2.0])
def test_a_single_item_feels_nothing(metric, gain):
    for step in STEPS:
        result = metric(step, n=3, squared_weight=1.0, gradient_budget=0.15).evaluate(np.array([3.0]), np.array([gain]))
        assert_array_equal(result.user, 0.0)
        assert result.value == (-1.0 if gain > 0 and metric is not TruncatedAUC else 0.0)


@every_metric
def test_rounding_is_not_blown_up_to_the_budget(metric):
    """All scores and gains equal: no force but rounding, which the budget must leave alone."""
    for m in range(2, 12):
        result = metric(truncate=False, gradient_budget=0.15).evaluate(np.full(m, 0.3), np.full(m, 0.7))
        assert np.abs(result.user).max() < 1e-12
