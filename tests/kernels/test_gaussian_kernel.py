"""The kernel of Gaussian ranks against its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of
from numpy.testing import assert_allclose

from topnrank.kernels.gaussian import GaussianSettings, gaussian_lists
from topnrank.objectives.gaussian import GaussianDCG
from topnrank.rng import stream

VARIANTS = [GaussianDCG(), GaussianDCG(0.05), GaussianDCG(2.0, normalize=True)]
every_variant = pytest.mark.parametrize("objective", VARIANTS, ids=repr)


def run_of(objective):
    numbers = GaussianSettings(float(objective.floor), objective.normalize)
    return lambda *arrays: gaussian_lists(numbers, *arrays)


def check(objective, lists, **occasion):
    assert_lists_equal(objective, lists, run_of(objective), 1e-9, **occasion)


@every_variant
@pytest.mark.parametrize("sampled", [0, 4])
def test_random_lists(objective, sampled):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check(objective, lists, sampled=sampled)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@settings(max_examples=50)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), objective=st.sampled_from(VARIANTS))
def test_lists_with_ties(drawn, objective):
    check(objective, [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


@every_variant
def test_hazards(objective):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    gains = (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))
    check(objective, [*((huge, a) for a in gains), (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def gradient(objective, f, a):
    batch, scores = batch_of([(f, a)])
    G, report = np.empty((2, f.size)), np.empty((1, 2))
    run_of(objective)(batch, scores, G, report)
    return G[0], report[0, 0]


@every_variant
def test_scores_a_million_apart_keep_their_digits(objective):
    """The gradient is tiny here, and still right to nine digits of its largest entry."""
    draw = stream(2, "test lists")
    f, a = 1e6 * draw.normal(size=40), draw.normal(size=40)
    G, value = gradient(objective, f, a)
    expected = objective.evaluate(f, a)
    assert_allclose(G, expected.user, rtol=0, atol=1e-9 * np.abs(expected.user).max())
    assert value == pytest.approx(expected.value, rel=1e-9)


@every_variant
def test_a_large_mean_costs_no_digits(objective):
    """A sum of 20,000 scores of a million rounds; the second centring takes that away."""
    draw = stream(3, "test lists")
    f, a = np.round(1024 * draw.normal(size=20000)) / 1024, draw.normal(size=20000)
    here, there = gradient(objective, f, a)[0], gradient(objective, f + 1e6, a)[0]
    assert_allclose(there, here, rtol=0, atol=1e-12 * np.abs(here).max())


def test_an_empty_list_and_rows_of_the_history_are_left_alone():
    """List 0 is empty; list 1 begins after a row that belongs to the history only."""
    f, a = np.array([9.0, 0.5, 0.1]), np.array([7.0, 1.0, 0.2])
    batch, scores = batch_of([(np.empty(0), np.empty(0)), (f, a)])
    batch = batch._replace(first=np.array([0, 1]))
    G, report = np.full((2, 3), np.nan), np.full((2, 2), np.nan)
    run_of(GaussianDCG())(batch, scores, G, report)
    expected = GaussianDCG().evaluate(f[1:], a[1:])
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1].tolist() == pytest.approx([expected.value, 2.0], rel=1e-12)
    assert np.isnan(G[:, 0]).all()
    assert_allclose(G[:, 1:], [expected.user, expected.item], rtol=1e-9)
