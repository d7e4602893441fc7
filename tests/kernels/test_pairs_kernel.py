"""The kernels of drawn pairs, BPR and WARP, against their NumPy references: the same draws, the same numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.pairs import STRIDE, BPRSettings, WarpSettings, bpr_lists, warp_lists
from topnrank.objectives import draws
from topnrank.objectives.base import Occasion
from topnrank.objectives.bpr import PairwiseLogistic
from topnrank.objectives.warp import WarpHinge
from topnrank.rng import stream


def bpr_kernel(objective):
    return lambda *batch: bpr_lists(BPRSettings(objective.tries, objective.pairs), *batch)


def warp_kernel(objective):
    return lambda *batch: warp_lists(WarpSettings(objective.margin, objective.tries), *batch)


TWINS = {
    "bpr": (PairwiseLogistic(), bpr_kernel),
    "bpr with three pairs and two tries": (PairwiseLogistic(tries=2, pairs=3), bpr_kernel),
    "warp": (WarpHinge(), warp_kernel),
    "warp with three tries": (WarpHinge(margin=0.25, tries=3), warp_kernel),
}
every_twin = pytest.mark.parametrize("name", TWINS)
OCCASIONS = {
    "rated": {},
    "one sampled": {"sampled": 1, "weight": 1234.5},
    "some sampled": {"sampled": 40, "weight": 2.51},
}
every_occasion = pytest.mark.parametrize("occasion", OCCASIONS)


def check(name, lists, occasion):
    objective, kernel = TWINS[name]
    assert_lists_equal(objective, lists, kernel(objective), 1e-10, **OCCASIONS[occasion])


@every_twin
@every_occasion
@pytest.mark.parametrize("levels", [1, 100], ids=["equal gains", "unequal gains"])
def test_random_lists(name, occasion, levels):
    draw = stream(1, "test lists")
    sizes, spreads = [1, 2, 3, 10, 50, 300], (0.01, 1.0, 30.0)
    lists = [
        (spread * draw.normal(size=m), draw.integers(-levels, levels + 1, m) / 2.0) for m in sizes for spread in spreads
    ]
    check(name, lists, occasion)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@every_twin
@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), occasion=st.sampled_from(sorted(OCCASIONS)))
def test_lists_with_ties(name, drawn, occasion):
    lists = [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn]
    check(name, lists, occasion)


@every_twin
@every_occasion
def test_hazards(name, occasion):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check(name, [*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))], occasion)


@every_twin
def test_an_empty_list_reports_nothing(name):
    objective, kernel = TWINS[name]
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.array([1.0, -1.0]))]
    batch, scores = batch_of(lists)
    G, report = np.full((2, 2), np.nan), np.full((2, 2), np.nan)
    kernel(objective)(batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert np.isfinite(G).all()
    assert report[1, 1] == 2


@every_twin
def test_rows_of_the_history_are_left_alone(name):
    """Five rows of history, three of the list, four sampled: rows count from the list's beginning."""
    objective, kernel = TWINS[name]
    f, a = stream(2, "test lists").normal(size=12), np.array([9.0] * 5 + [1.0, 2.0, 1.0] + [0.0] * 4)
    batch, scores = batch_of([(f, a)], sampled=4, weight=50.0)
    batch = batch._replace(first=np.array([5]))
    G, report = np.full((2, 12), np.nan), np.full((1, 2), np.nan)
    kernel(objective)(batch, scores, G, report)
    expected = objective.evaluate(f[5:], a[5:], Occasion(4, 50.0, int(batch.keys[0])))
    assert np.isnan(G[:, :5]).all()
    assert_allclose(G[:, 5:], [expected.user, expected.item], rtol=1e-12)
    assert report[0] == pytest.approx([expected.value, 7])


@every_twin
@pytest.mark.parametrize("own", [0, 3], ids=["sampled rows follow", "all own rows are history"])
def test_a_list_of_sampled_rows_only_has_no_loss(name, own):
    objective, kernel = TWINS[name]
    batch, scores = batch_of([(np.arange(5.0), np.zeros(5))])
    batch = batch._replace(own=np.array([own]), first=np.array([own]))
    G, report = np.full((2, 5), np.nan), np.full((1, 2), np.nan)
    kernel(objective)(batch, scores, G, report)
    assert_array_equal(G[:, own:], 0.0)
    assert report[0].tolist() == [0.0, 5.0 - own]


def test_kernels_and_references_give_each_row_the_same_draws():
    """Kernels import nothing of ours, so the number stands in both files."""
    assert STRIDE == draws.STRIDE
