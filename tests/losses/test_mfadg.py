"""MF-ADG (reconstruction): the smoothed gain of positives among sampled items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.losses.base import ListContext
from topnrank.losses.mfadg.reference import AveragedDiscountedGain
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests

SAMPLED = ListContext(sampled=6, weight=12.5)
OBJECTIVES = (AveragedDiscountedGain(), AveragedDiscountedGain(7.0))
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


class TestAveragedDiscountedGain(ObjectiveTests):
    objectives = OBJECTIVES
    contexts = (SAMPLED, ListContext(sampled=1, weight=1e5), ListContext())
    needs_positives = ignores_others = True
    tolerance = 1e-6  # the weight scales up rounding as well

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        own = f.size - context.sampled
        positives = f[:own][a[:own] > 0]
        above = 1.0 / (1.0 + np.exp(-objective.steepness * (f[own:][None, :] - positives[:, None])))
        return -np.mean(np.log(2.0) / np.log(2.0 + context.weight * np.sum(above, axis=1)))


def random_list(case, m=14, sampled=6):
    """Scores, and gains of both signs; sampled rows have none."""
    draw = stream(case, "test list")
    scores, gains = draw.normal(size=m), draw.integers(-1, 3, m).astype(float)
    gains[0] = 1.0
    gains[m - sampled :] = 0.0
    return scores, gains


def adg_by_hand(C, scores, gains, context):
    """ADG by its definition, one positive and one sampled item at a time."""
    own = scores.size - context.sampled
    positives = [i for i in range(own) if gains[i] > 0]
    total = 0.0
    for i in positives:
        R = sum(context.weight / (1 + np.exp(-C * (scores[s] - scores[i]))) for s in range(own, scores.size))
        total += 1 / np.log2(2 + R)
    return total / len(positives)


@every_objective
@pytest.mark.parametrize("case", range(5))
def test_the_value_is_minus_the_averaged_discounted_gain(objective, case):
    scores, gains = random_list(case)
    expected = -adg_by_hand(objective.steepness, scores, gains, SAMPLED)
    assert objective.evaluate(scores, gains, SAMPLED).value == pytest.approx(expected, rel=1e-12)


def test_two_positives_and_one_sampled_item_by_hand():
    scores, gains = np.array([0.0, np.log(3.0), 0.0]), np.array([1.0, 4.0, 0.0])
    R = np.array([0.5, 0.25]) * 8.0  # g(0) = 1/2, g(-ln 3) = 1/4
    c = np.log(2) / (2 * (2 + R) * np.log(2 + R) ** 2)
    slope = np.array([0.25, 0.25 * 0.75]) * 8.0
    result = AveragedDiscountedGain().evaluate(scores, gains, ListContext(sampled=1, weight=8.0))
    assert result.value == pytest.approx(-(1 / np.log2(6) + 1 / np.log2(4)) / 2, rel=1e-14)
    assert_allclose(result.user, [*(-c * slope), c @ slope], rtol=1e-14)


@given(case=st.integers(0, 50))
def test_positives_rise_sampled_items_fall_and_the_others_stay(case):
    scores, gains = random_list(case)
    result = AveragedDiscountedGain().evaluate(scores, gains, SAMPLED)
    assert -1.0 < result.value < 0.0
    assert np.all(result.user[gains > 0] < 0)
    assert np.all(result.user[-6:] > 0)
    assert_array_equal(result.user[:-6][gains[:-6] <= 0], 0.0)


@given(case=st.integers(0, 50), other=st.floats(-50, 50))
def test_positives_do_not_push_each_other_down(case, other):
    """The gain of one positive is the same wherever another one stands."""
    scores, gains = random_list(case)
    gains = np.where(np.arange(14) < 2, 1.0, 0.0)
    apart = [
        AveragedDiscountedGain().evaluate(np.array([a, b, *scores[2:]]), gains, SAMPLED).value
        for a, b in ((0.3, 0.3), (0.3, other), (other, other))
    ]
    assert apart[1] == pytest.approx((apart[0] + apart[2]) / 2, rel=1e-12)


def test_a_user_who_has_seen_everything_feels_nothing():
    result = AveragedDiscountedGain().evaluate(np.array([0.3, 5.0, -1.0]), np.array([1.0, 2.0, -1.0]))
    assert result.value == -1.0
    assert_array_equal(result.user, np.zeros(3))


def test_the_rank_is_estimated_without_bias():
    """Over all samples of two items from a small catalog, with replacement, the mean rank is the true one."""
    catalog, own = np.array([0.4, -1.0, 2.0, 0.1, 0.9]), np.array([0.5])
    true = float(np.sum(1 / (1 + np.exp(-(catalog - 0.5)))))
    ranks = []
    for first in catalog:
        for second in catalog:
            scores, context = np.array([*own, first, second]), ListContext(sampled=2, weight=2.5)
            gain = -AveragedDiscountedGain().evaluate(scores, np.array([1.0, 0.0, 0.0]), context).value
            ranks.append(2 ** (1 / gain) - 2)
    assert np.mean(ranks) == pytest.approx(true, rel=1e-12)
