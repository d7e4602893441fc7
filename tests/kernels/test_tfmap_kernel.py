"""TFMAP's kernel against its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of

from topnrank.kernels.ranks import SIGMOID, Step, sigmoid_terms
from topnrank.kernels.tfmap import tfmap_lists
from topnrank.objectives.tfmap import SmoothAP
from topnrank.rng import stream

LOGISTIC = Step(SIGMOID, 1.0, sigmoid_terms())


def check(lists, **occasion):
    assert_lists_equal(SmoothAP(), lists, lambda *arrays: tfmap_lists(LOGISTIC, *arrays), 1e-6, **occasion)


def test_random_lists():
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check(lists)
    check([(f, np.abs(a)) for f, a in lists])
    check(lists, sampled=5, weight=3.0)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4))
def test_lists_with_ties(drawn):
    check([(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


def test_hazards():
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check([*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def test_an_empty_list_reports_nothing():
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.ones(2))]
    batch, scores = batch_of(lists)
    G, report = np.empty((2, 2)), np.full((2, 2), np.nan)
    tfmap_lists(LOGISTIC, batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1, 0] == pytest.approx(SmoothAP().evaluate(*lists[1]).value)


def test_rows_of_the_history_only_are_left_alone():
    batch, scores = batch_of([(np.array([9.0, 0.5, 0.1]), np.ones(3))])
    batch = batch._replace(first=np.array([1]))
    G, report = np.full((2, 3), 7.0), np.empty((1, 2))
    tfmap_lists(LOGISTIC, batch, scores, G, report)
    assert G[:, 0].tolist() == [7.0, 7.0]
    assert report[0, 0] == pytest.approx(SmoothAP().evaluate(scores[1:], np.ones(2)).value)
    assert report[0, 1] == 2
