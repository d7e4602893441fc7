"""The kernel of the averaged discounted gain against its NumPy reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.mfadg import mfadg_lists
from topnrank.kernels.ranks import SIGMOID, Step, sigmoid_terms
from topnrank.objectives.base import Occasion
from topnrank.objectives.mfadg import AveragedDiscountedGain
from topnrank.rng import stream

OCCASIONS = {
    "nothing sampled": {},
    "one sampled": {"sampled": 1, "weight": 1234.5},
    "some sampled": {"sampled": 40, "weight": 2.51},
}
every_occasion = pytest.mark.parametrize("occasion", OCCASIONS)
every_steepness = pytest.mark.parametrize("steepness", [1.0, 7.0])


def run(steepness, *batch):
    mfadg_lists(Step(SIGMOID, steepness, sigmoid_terms()), *batch)


def check(steepness, lists, occasion):
    objective = AveragedDiscountedGain(steepness)
    assert_lists_equal(objective, lists, lambda *batch: run(steepness, *batch), 1e-6, **OCCASIONS[occasion])


@every_steepness
@every_occasion
def test_random_lists(steepness, occasion):
    draw = stream(1, "test lists")
    sizes, spreads = [1, 2, 3, 10, 50, 300], (0.01, 1.0, 30.0)
    check(steepness, [(s * draw.normal(size=m), draw.normal(size=m)) for m in sizes for s in spreads], occasion)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@every_steepness
@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), occasion=st.sampled_from(sorted(OCCASIONS)))
def test_lists_with_ties(steepness, drawn, occasion):
    lists = [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn]
    check(steepness, lists, occasion)


@every_steepness
@every_occasion
def test_hazards(steepness, occasion):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check(steepness, [*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))], occasion)


def test_an_empty_list_reports_nothing():
    batch, scores = batch_of([(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.array([1.0, -1.0]))], sampled=1)
    G, report = np.full((2, 2), np.nan), np.full((2, 2), np.nan)
    run(1.0, batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert np.isfinite(G).all()
    assert report[1, 1] == 2


def test_rows_of_the_history_are_left_alone():
    """Five rows of history, three of the list, four sampled."""
    f, a = stream(2, "test lists").normal(size=12), np.array([9.0] * 5 + [1.0, 2.0, 1.0] + [0.0] * 4)
    batch, scores = batch_of([(f, a)], sampled=4, weight=50.0)
    batch = batch._replace(first=np.array([5]))
    G, report = np.full((2, 12), np.nan), np.full((1, 2), np.nan)
    run(1.0, batch, scores, G, report)
    expected = AveragedDiscountedGain().evaluate(f[5:], a[5:], Occasion(4, 50.0))
    assert np.isnan(G[:, :5]).all()
    assert_allclose(G[:, 5:], [expected.user, expected.item], rtol=1e-6)
    assert report[0] == pytest.approx([expected.value, 7])


@pytest.mark.parametrize("own", [0, 3], ids=["sampled rows follow", "all own rows are history"])
def test_a_list_of_sampled_rows_only_has_no_loss(own):
    batch, scores = batch_of([(np.arange(5.0), np.zeros(5))])
    batch = batch._replace(own=np.array([own]), first=np.array([own]))
    G, report = np.full((2, 5), np.nan), np.full((1, 2), np.nan)
    run(1.0, batch, scores, G, report)
    assert_array_equal(G[:, own:], 0.0)
    assert report[0].tolist() == [0.0, 5.0 - own]
