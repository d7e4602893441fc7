"""Gaussian ranks: the formula in loops, gradients by quotients and by autograd, what the floor does."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.errors import ParameterError
from topnrank.models.gaussian_rank import GaussianRank
from topnrank.objectives.gaussian import GaussianDCG
from topnrank.rng import stream
from topnrank.testing.gradients import central_differences

OBJECTIVES = [GaussianDCG(floor, normalize) for floor in (0.5, 0.01, 3.0) for normalize in (False, True)]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)


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
@pytest.mark.parametrize("case", range(3))
def test_the_value_is_the_formula(objective, case):
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
@pytest.mark.parametrize("case", range(3))
def test_the_gradient_is_the_derivative_of_the_value(objective, case):
    scores, gains = random_list(case)
    numeric = central_differences(lambda f: objective.evaluate(f, gains).value, scores)
    result = objective.evaluate(scores, gains)
    assert_allclose(result.user, numeric, atol=1e-7 * np.abs(numeric).max())
    assert_array_equal(result.item, result.user)


@every_objective
def test_the_gradient_is_that_of_autograd(objective):
    autograd = pytest.importorskip("autograd")
    anp = pytest.importorskip("autograd.numpy")
    norm = pytest.importorskip("autograd.scipy.stats").norm
    scores, gains = random_list(4, 60)

    def loss(f):
        sigma = anp.sqrt(anp.var(f) + objective.floor**2)
        R = (f.size - 1) * norm.cdf(-(f - anp.mean(f)) / sigma)
        return -anp.sum(gains / anp.log(R + 2)) / (np.abs(gains).sum() if objective.normalize else 1.0)

    expected = autograd.grad(loss)(scores)
    assert_allclose(objective.evaluate(scores, gains).user, expected, atol=1e-12 * np.abs(expected).max())


@given(case=st.integers(0, 50), m=st.integers(1, 40), shift=st.floats(-1e6, 1e6), floor=st.sampled_from([0.05, 0.5]))
def test_only_differences_of_scores_matter(case, m, shift, floor):
    scores, gains = random_list(case, m)
    scores = np.round(scores * 2**20) / 2**20  # the shift itself rounds less
    here, there = (GaussianDCG(floor).evaluate(f, gains) for f in (scores, scores + round(shift)))
    assert there.value == pytest.approx(here.value, rel=1e-9, abs=1e-9)
    assert_allclose(there.user, here.user, atol=1e-8 * np.abs(gains).sum())
    assert abs(here.user.sum()) < 1e-12 * max(np.abs(gains).sum(), 1.0)


@given(case=st.integers(0, 50), scale=st.floats(0.01, 100.0))
def test_scores_and_floor_scaled_alike_change_nothing(case, scale):
    scores, gains = random_list(case)
    here, there = GaussianDCG(0.5).evaluate(scores, gains), GaussianDCG(0.5 * scale).evaluate(scale * scores, gains)
    assert there.value == pytest.approx(here.value, rel=1e-10, abs=1e-12)
    assert_allclose(scale * there.user, here.user, atol=1e-12)


@given(case=st.integers(0, 50))
def test_without_a_floor_the_scale_of_the_scores_would_not_matter(case):
    """The gradient has no part along the centred scores but for the floor's."""
    scores, gains = random_list(case)
    along = [float(GaussianDCG(floor).evaluate(scores, gains).user @ (scores - scores.mean())) for floor in (0.5, 1e-6)]
    assert abs(along[1]) < 1e-10
    assert abs(along[0]) > abs(along[1])


def test_the_floor_bounds_the_gradient_where_scores_meet():
    gains = np.array([1.0, -1.0, 1.0, 0.5])
    close = 1e-9 * np.array([1.0, 2.0, -3.0, 0.0])
    assert np.abs(GaussianDCG(0.5).evaluate(close, gains).user).max() < 2.0
    assert np.abs(GaussianDCG(1e-12).evaluate(close, gains).user).max() > 1e6


@given(case=st.integers(0, 50))
def test_the_order_of_the_list_does_not_matter(case):
    scores, gains = random_list(case)
    order = stream(case, "test order").permutation(scores.size)
    here, there = GaussianDCG().evaluate(scores, gains), GaussianDCG().evaluate(scores[order], gains[order])
    assert_allclose(there.user, here.user[order], atol=1e-13)


@given(case=st.integers(0, 50), m=st.integers(2, 40), factor=st.floats(0.1, 10.0))
def test_normalised_the_size_of_the_gains_does_not_matter(case, m, factor):
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
@pytest.mark.parametrize(
    "gains",
    [np.zeros(6), np.ones(6), -np.ones(6), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 5.0])],
    ids=["zero", "equal", "negative", "mixed"],
)
@pytest.mark.parametrize(
    "scores",
    [
        np.array([1e6, -1e6, 0.0, 1e6, 1e-6, -3.0]),
        np.zeros(6),
        np.full(6, 0.1),
        np.array([3.0, 3.0, 2.0, 1.0, 1.0, 0.0]),
    ],
    ids=["huge", "zero", "all tied", "some tied"],
)
def test_hazards_stay_finite(objective, scores, gains):
    with np.errstate(all="raise", under="ignore"):
        result = objective.evaluate(scores, gains)
    assert np.isfinite(result.value)
    assert np.isfinite(result.user).all()
    if not gains.any():
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
