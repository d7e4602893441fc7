"""Gaussian ranks: the formula in loops, what the floor does."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.errors import ParameterError
from topnrank.losses.gaussian.reference import GaussianDCG
from topnrank.models.listwise import GaussianRank
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests

OBJECTIVES = [GaussianDCG(floor, normalize) for floor in (0.5, 0.01, 3.0) for normalize in (False, True)]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)


class TestGaussianDCG(ObjectiveTests):
    objectives = OBJECTIVES

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        z = (f - np.mean(f)) / np.sqrt(np.var(f) + objective.floor**2)
        points = 0.5 * z[:, None] * (1.0 + NODES)  # the normal density, integrated from 0 to z
        half = 0.5 * z * np.dot(np.exp(-0.5 * points**2), WEIGHTS) / np.sqrt(2.0 * np.pi)
        R = (f.size - 1) * (0.5 - half)
        return -np.sum(a / np.log(R + 2)) / (np.abs(a).sum() if objective.normalize else 1.0)


def random_list(case: int, m: int = 9):
    draw = stream(case, "test list")
    return draw.normal(size=m), draw.normal(size=m)


def loss_in_loops(objective, scores, gains):
    """- sum_i a_i / ln(R_i + 2) with R from the normal distribution function of the standard library."""
    m = len(scores)
    mu = sum(scores) / m
    sigma = math.sqrt(sum((f - mu) ** 2 for f in scores) / m + objective.floor**2)
    R = [(m - 1) * NormalDist().cdf(-(f - mu) / sigma) for f in scores]
    loss = -sum(a / math.log(r + 2) for a, r in zip(gains, R, strict=True))
    return loss / sum(abs(a) for a in gains) if objective.normalize else loss


@every_objective
def test_the_value_is_the_formula(objective):
    for case in range(3):
        scores, gains = random_list(case)
        expected = loss_in_loops(objective, scores, gains)
        assert objective.evaluate(scores, gains).value == pytest.approx(expected, rel=1e-12)


def test_the_value_of_two_items():
    """Scores 1 and -1, floor 0.75: sigma = 1.25, z = 0.8 and -0.8."""
    above = NormalDist().cdf(0.8)
    expected = -2 / math.log(2 + 1 - above) + 1 / math.log(2 + above)
    result = GaussianDCG(0.75).evaluate(np.array([1.0, -1.0]), np.array([2.0, -1.0]))
    assert result.value == pytest.approx(expected, rel=1e-14)
    assert result.active == 2


@every_objective
def test_a_large_mean_costs_no_digits(objective):
    """The first mean rounds; the second centering takes that away."""
    scores, gains = random_list(6, 1000)
    scores = np.round(1024 * scores) / 1024
    here, there = (objective.evaluate(f, gains).user for f in (scores, scores + 1e6))
    assert_allclose(there, here, rtol=0, atol=1e-12 * np.abs(here).max())


@given(case=st.integers(0, 50), scale=st.floats(0.01, 100.0))
def test_scores_and_floor_scaled_alike_change_nothing(case, scale):
    scores, gains = random_list(case)
    here, there = GaussianDCG(0.5).evaluate(scores, gains), GaussianDCG(0.5 * scale).evaluate(scale * scores, gains)
    assert there.value == pytest.approx(here.value, rel=1e-10, abs=1e-12)
    assert_allclose(scale * there.user, here.user, atol=1e-12)


@given(case=st.integers(0, 50))
def test_without_a_floor_the_scale_of_the_scores_would_not_matter(case):
    """The gradient has no part along the centered scores but for the floor's."""
    scores, gains = random_list(case)
    along = [float(GaussianDCG(floor).evaluate(scores, gains).user @ (scores - scores.mean())) for floor in (0.5, 1e-6)]
    assert abs(along[1]) < 1e-10
    assert abs(along[0]) > abs(along[1])


def test_the_floor_bounds_the_gradient_where_scores_meet():
    gains = np.array([1.0, -1.0, 1.0, 0.5])
    close = 1e-9 * np.array([1.0, 2.0, -3.0, 0.0])
    assert np.abs(GaussianDCG(0.5).evaluate(close, gains).user).max() < 2.0
    assert np.abs(GaussianDCG(1e-12).evaluate(close, gains).user).max() > 1e6


@given(case=st.integers(0, 50), m=st.integers(2, 40), factor=st.floats(0.1, 10.0))
def test_normalized_the_size_of_the_gains_does_not_matter(case, m, factor):
    scores, gains = random_list(case, m)
    here, there = (GaussianDCG(normalize=True).evaluate(scores, a) for a in (gains, factor * gains))
    assert there.value == pytest.approx(here.value, rel=1e-10)
    assert_allclose(there.user, here.user, atol=1e-13)
    assert abs(here.value) <= 1 / math.log(2)


def test_a_gain_pulls_up_and_its_opposite_down():
    scores = np.array([1.0, 0.0, -1.0])
    one = np.array([0.0, 1.0, 0.0])
    up, down = GaussianDCG().evaluate(scores, one).user, GaussianDCG().evaluate(scores, -one).user
    assert up[1] < 0.0 < down[1]
    assert_allclose(up, -down, rtol=1e-14)


@every_objective
def test_without_gains_there_is_nothing(objective):
    result = objective.evaluate(np.array([1e6, -1e6, 0.0]), np.zeros(3))
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


@every_objective
def test_a_single_item_is_first_and_feels_nothing(objective):
    result = objective.evaluate(np.array([3.0]), np.array([2.0]))
    assert result.value == pytest.approx(-(1.0 if objective.normalize else 2.0) / math.log(2))
    assert_array_equal(result.user, 0.0)


def test_ranks_stay_within_the_list_when_one_item_is_far_ahead():
    """The largest z there is: the tail must not round below 0."""
    scores = np.zeros(20000)
    scores[0] = 1e6
    result = GaussianDCG().evaluate(scores, np.eye(1, 20000)[0])
    assert result.value == pytest.approx(-1 / math.log(2), rel=1e-12)


@pytest.mark.parametrize("floor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_floor_that_is_none_is_refused(floor):
    with pytest.raises(ParameterError, match="floor must be a finite number above 0"):
        GaussianDCG(floor)


def test_the_model_hands_its_settings_on():
    model = GaussianRank(floor=2, normalize=True)
    model.check()
    assert model.objective() == GaussianDCG(2.0, normalize=True)


@pytest.mark.parametrize(("name", "value"), [("floor", 0.0), ("floor", "wide"), ("normalize", 1)])
def test_the_model_refuses_bad_settings(name, value):
    with pytest.raises(ParameterError, match=name):
        GaussianRank(**{name: value}).check()
