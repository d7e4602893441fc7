"""xCLiMF's kernel against its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of

from topnrank.kernels.xclimf import LARGEST, XCLiMFSettings, xclimf_lists
from topnrank.objectives import xclimf as reference
from topnrank.objectives.xclimf import XCLiMFBound
from topnrank.rng import stream

either = pytest.mark.parametrize("mean_pairs", [True, False])


def check(mean_pairs, lists, **occasion):
    numbers = XCLiMFSettings(mean_pairs)
    assert_lists_equal(XCLiMFBound(mean_pairs), lists, lambda *arrays: xclimf_lists(numbers, *arrays), 1e-9, **occasion)


@either
def test_random_lists(mean_pairs):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [
        (spread * draw.normal(size=m), (2.0 ** draw.integers(-1, 6, size=m) - 1.0) / 32.0)  # some below 0
        for m in sizes
        for spread in (0.01, 1.0, 30.0)
    ]
    check(mean_pairs, lists)
    check(mean_pairs, lists, sampled=5, weight=3.0)


gain = st.sampled_from([-1.0, 0.0, 1 / 32, 0.3, 31 / 32, 1.0])
tied_list = st.lists(st.tuples(st.integers(-6, 6), gain), min_size=1, max_size=30)


@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), mean_pairs=st.booleans())
def test_lists_with_ties(drawn, mean_pairs):
    check(mean_pairs, [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


@either
def test_hazards(mean_pairs):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    gains = (np.zeros(5), np.ones(5), np.full(5, 7.0), -np.ones(5), np.array([0.9, -1.0, 1.0, 0.0, 0.2]))
    lists = [(huge, a) for a in gains]
    check(mean_pairs, [*lists, (np.zeros(6), np.full(6, 0.5)), (np.array([2.0]), np.array([0.7]))])


def test_an_empty_list_reports_nothing():
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.array([0.2, 0.9]))]
    batch, scores = batch_of(lists)
    G, report = np.empty((2, 2)), np.full((2, 2), np.nan)
    xclimf_lists(XCLiMFSettings(True), batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1, 0] == pytest.approx(XCLiMFBound().evaluate(*lists[1]).value)


def test_rows_of_the_history_only_are_left_alone():
    q = np.array([0.5, 0.2, 0.9])
    batch, scores = batch_of([(np.array([9.0, 0.5, 0.1]), q)])
    batch = batch._replace(first=np.array([1]))
    G, report = np.full((2, 3), 7.0), np.empty((1, 2))
    xclimf_lists(XCLiMFSettings(True), batch, scores, G, report)
    assert G[:, 0].tolist() == [7.0, 7.0]
    assert report[0, 0] == pytest.approx(XCLiMFBound().evaluate(scores[1:], q[1:]).value)
    assert report[0, 1] == 2


def test_the_kernel_and_its_reference_clip_at_the_same_gain():
    """Kernels import nothing of ours, so the number stands in both files."""
    assert LARGEST == reference.LARGEST
