"""CLiMF's kernel and its exponential sum against the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of

from topnrank.kernels.climf import CLiMFSettings, climf_lists, log_terms
from topnrank.kernels.ranks import SIGMOID, Step, sigmoid_terms
from topnrank.objectives.climf import CLiMFBound
from topnrank.rng import stream

LOGISTIC = Step(SIGMOID, 1.0, sigmoid_terms())
either = pytest.mark.parametrize("mean_pairs", [True, False])


def check(mean_pairs, lists, **occasion):
    numbers = CLiMFSettings(mean_pairs, log_terms())
    assert_lists_equal(
        CLiMFBound(mean_pairs), lists, lambda *arrays: climf_lists(LOGISTIC, numbers, *arrays), 1e-6, **occasion
    )


@pytest.mark.parametrize("terms", [4, 8, 12, 16])
def test_the_exponential_sum_keeps_its_bound(terms):
    t = np.linspace(0.0, 1.0, 20001)
    error = np.abs(np.polynomial.polynomial.polyval(t, np.append(0.0, log_terms(terms))) - np.log1p(t)).max()
    assert error <= (3.0 + 2.0 * np.sqrt(2.0)) ** -terms


@either
def test_random_lists(mean_pairs):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check(mean_pairs, lists)
    check(mean_pairs, [(f, np.abs(a)) for f, a in lists])
    check(mean_pairs, lists, sampled=5, weight=3.0)


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_the_loss_keeps_its_bound(spread):
    f = spread * stream(3, "test lists").normal(size=400)
    batch, scores = batch_of([(f, np.ones(400))])
    G, report = np.empty((2, 400)), np.empty((1, 2))
    climf_lists(LOGISTIC, CLiMFSettings(False, log_terms()), batch, scores, G, report)
    expected = CLiMFBound(mean_pairs=False).evaluate(f, np.ones(400))
    assert report[0, 0] == pytest.approx(expected.value, rel=9.4e-10)
    assert np.abs(G[0] - expected.user).max() <= 2 * 399 * 6.6e-10


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), mean_pairs=st.booleans())
def test_lists_with_ties(drawn, mean_pairs):
    check(mean_pairs, [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


@either
def test_hazards(mean_pairs):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check(mean_pairs, [*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def test_an_empty_list_reports_nothing():
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.ones(2))]
    batch, scores = batch_of(lists)
    G, report = np.empty((2, 2)), np.full((2, 2), np.nan)
    climf_lists(LOGISTIC, CLiMFSettings(True, log_terms()), batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1, 0] == pytest.approx(CLiMFBound().evaluate(*lists[1]).value)


def test_rows_of_the_history_only_are_left_alone():
    batch, scores = batch_of([(np.array([9.0, 0.5, 0.1]), np.ones(3))])
    batch = batch._replace(first=np.array([1]))
    G, report = np.full((2, 3), 7.0), np.empty((1, 2))
    climf_lists(LOGISTIC, CLiMFSettings(True, log_terms()), batch, scores, G, report)
    assert G[:, 0].tolist() == [7.0, 7.0]
    assert report[0, 0] == pytest.approx(CLiMFBound().evaluate(scores[1:], np.ones(2)).value)
    assert report[0, 1] == 2
