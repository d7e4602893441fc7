import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.errors import ParameterError
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction, make_step

STEPS = [ReLU(), Sigmoid(), Sigmoid(1.5), Laplace(), Laplace(7.0), Ramp(), Ramp(4.0)]
KINKS = {ReLU: lambda step: [0.0], Ramp: lambda step: [0.0, 1.0 / step.steepness]}


def kinks(step):
    return np.array(KINKS.get(type(step), lambda step: [])(step))


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_dh_is_the_derivative_of_h(step):
    x = np.concatenate([np.linspace(-3, 3, 601), np.linspace(-0.02, 0.02, 41)])
    away = np.all(np.abs(x[:, None] - kinks(step)[None, :]) > 1e-4, axis=1)
    x = x[away]
    numeric = (step.h(x + 1e-6) - step.h(x - 1e-6)) / 2e-6
    # The Laplace step has a continuous derivative whose own derivative jumps at 0: there the quotient is off by O(1e-6).
    assert_allclose(step.dh(x), numeric, rtol=1e-6, atol=1e-4 if isinstance(step, Laplace) else 1e-8)


@pytest.mark.parametrize("step", [ReLU(), Ramp(), Ramp(4.0)], ids=repr)
def test_the_slope_at_a_kink_is_zero(step):
    assert_array_equal(step.dh(kinks(step)), 0.0)


@pytest.mark.parametrize("step", [Sigmoid(), Laplace(), Ramp()], ids=repr)
def test_bounded_steps_go_from_zero_to_one(step):
    assert_allclose(step.h(np.array([-50.0, 50.0])), [0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("step", [Sigmoid(), Laplace()], ids=repr)
def test_symmetric_steps_share_one_between_both_directions(step):
    x = np.linspace(0, 5, 50)
    assert_allclose(step.h(x) + step.h(-x), 1.0, rtol=1e-14)
    assert_array_equal(step.dh(x), step.dh(-x))


def test_values_written_as_formulas():
    x = np.array([-0.3, 0.0, 0.2])
    assert_array_equal(ReLU().h(x), [0.0, 0.0, 0.2])
    assert_allclose(Sigmoid(7.0).h(x), 1 / (1 + np.exp(-7 * x)), rtol=1e-14)
    assert_allclose(Sigmoid(7.0).dh(x), 7 * np.exp(-7 * x) / (1 + np.exp(-7 * x)) ** 2, rtol=1e-14)
    assert_allclose(Laplace(3.0).h(x), [np.exp(-0.9) / 2, 0.5, 1 - np.exp(-0.6) / 2], rtol=1e-14)
    assert_allclose(Ramp(2.0).h(x), [0.0, 0.0, 0.4], rtol=1e-14)


@given(x=st.floats(-1e300, 1e300), step=st.sampled_from(STEPS))
def test_no_number_overflows(x, step):
    with np.errstate(all="raise", under="ignore"):
        h, dh = step.h(np.array([x / 10])), step.dh(np.array([x / 10]))
    assert np.isfinite(h).all()
    assert np.isfinite(dh).all()
    assert dh[0] >= 0.0


@pytest.mark.parametrize(
    ("name", "steepness", "expected"),
    [
        ("relu", None, ReLU()),
        ("sigmoid", None, Sigmoid(7.0)),
        ("sigmoid", 2, Sigmoid(2.0)),
        ("laplace", None, Laplace(3.0)),
        ("ramp", 0.5, Ramp(0.5)),
    ],
)
def test_steps_by_name(name, steepness, expected):
    assert make_step(name, steepness) == expected


def test_an_object_with_h_and_dh_is_a_step():
    class Mine:
        def h(self, x):
            return x

        def dh(self, x):
            return np.ones_like(x)

    mine = Mine()
    assert isinstance(mine, StepFunction)
    assert make_step(mine) is mine


def test_an_unknown_name_is_told_the_near_one():
    with pytest.raises(ParameterError, match=r"did you mean 'sigmoid'\?"):
        make_step("sigmod")


@pytest.mark.parametrize("value", [None, 3, object()])
def test_other_objects_are_refused(value):
    with pytest.raises(ParameterError, match="an object with methods"):
        make_step(value)
