"""The Plackett-Luce kernel against its reference over pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of, occasion_of
from numpy.testing import assert_allclose

from topnrank.kernels.listpmf import BRESLOW, FIXED, SHUFFLED, PlackettLuceSettings, listpmf_lists
from topnrank.objectives.links import LINKS
from topnrank.objectives.listpmf import TIES, PlackettLuce
from topnrank.rng import stream

NUMBERS = {"breslow": BRESLOW, "shuffled": SHUFFLED, "fixed": FIXED}
VARIANTS = [PlackettLuce(ties, link, normalize=link == "sigmoid") for ties in TIES for link in LINKS]
every_variant = pytest.mark.parametrize("objective", VARIANTS, ids=repr)


def run_of(objective):
    numbers = PlackettLuceSettings(NUMBERS[objective.ties], objective.link == "sigmoid", objective.normalize)
    return lambda *arrays: listpmf_lists(numbers, *arrays)


def check(objective, lists, **occasion):
    assert_lists_equal(objective, lists, run_of(objective), 1e-9, **occasion)


@every_variant
@pytest.mark.parametrize("levels", [5, 100000], ids=["stars", "hardly a tie"])
@pytest.mark.parametrize("sampled", [0, 4])
def test_random_lists(objective, levels, sampled):
    draw = stream(1, "test lists")
    lists = [
        (spread * draw.normal(size=m), draw.integers(1, levels + 1, size=m) / levels)
        for m in (1, 2, 3, 10, 50, 300)
        for spread in (0.01, 1.0, 30.0)
    ]
    check(objective, lists, sampled=sampled)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.5, 1.0, 2.5])), min_size=1, max_size=30)


@settings(max_examples=50)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), objective=st.sampled_from(VARIANTS))
def test_lists_with_ties(drawn, objective):
    check(objective, [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


@every_variant
def test_hazards(objective):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    gains = (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))
    check(objective, [*((huge, a) for a in gains), (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


@every_variant
def test_close_scores_of_a_million_lose_no_digits(objective):
    """Each coordinate keeps its own digits, also those much smaller than the largest."""
    draw = stream(2, "test lists")
    f, a = 1e6 + np.round(4096 * draw.normal(size=40)) / 4096, draw.integers(1, 6, size=40).astype(np.float64)
    f[:10] -= 2e6
    batch, scores = batch_of([(f, a)])
    G, report = np.empty((2, 40)), np.empty((1, 2))
    run_of(objective)(batch, scores, G, report)
    expected = objective.evaluate(f, a, occasion_of(batch, 0))
    assert_allclose(G[0], expected.user, rtol=1e-12, atol=1e-13)
    assert report[0, 0] == pytest.approx(expected.value, rel=1e-12)


@every_variant
def test_zero_gains_and_equal_scores(objective):
    """The gradient is rounding here, with which no relative tolerance can deal."""
    f, a = np.full(7, 0.3), np.zeros(7)
    batch, scores = batch_of([(f, a)])
    G, report = np.empty((2, 7)), np.empty((1, 2))
    run_of(objective)(batch, scores, G, report)
    assert_allclose(G[0], objective.evaluate(f, a, occasion_of(batch, 0)).user, atol=1e-14)


@every_variant
def test_an_empty_list_and_rows_of_the_history_are_left_alone(objective):
    """List 0 is empty; list 1 begins after a row that belongs to the history only."""
    f, a = np.array([9.0, 0.5, 0.1, 0.3]), np.array([7.0, 1.0, 0.2, 1.0])
    batch, scores = batch_of([(np.empty(0), np.empty(0)), (f, a)])
    batch = batch._replace(first=np.array([0, 1]))
    G, report = np.full((2, 4), np.nan), np.full((2, 2), np.nan)
    run_of(objective)(batch, scores, G, report)
    expected = objective.evaluate(f[1:], a[1:], occasion_of(batch, 1))
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1].tolist() == pytest.approx([expected.value, 3.0], rel=1e-12)
    assert np.isnan(G[:, 0]).all()
    assert_allclose(G[:, 1:], [expected.user, expected.item], rtol=1e-9)
