"""Every objective's kernel against its NumPy reference, by way of the table that ties the two together.

A new objective is a line in `CASES`.
"""

import inspect

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.lists import assert_lists_equal, near_a_cut
from support.rank_losses import Twin
from topnrank import losses as objectives
from topnrank.losses.climf.reference import CLiMFBound
from topnrank.losses.gaussian.reference import GaussianDCG
from topnrank.losses.links import LINKS
from topnrank.losses.listpmf.reference import TIES, PlackettLuce
from topnrank.losses.listrank.reference import TopOneCrossEntropy
from topnrank.losses.mfadg.reference import AveragedDiscountedGain
from topnrank.losses.pairwise.reference import PairwiseLogistic, WarpHinge
from topnrank.losses.squared import Squared
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.losses.table import compiled_lists
from topnrank.losses.tfmap.reference import SmoothAP
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.losses.xclimf.reference import XCLiMFBound
from topnrank.rng import stream

STEPS = {"relu": ReLU(), "laplace": Laplace(), "ramp": Ramp(), "sigmoid": Sigmoid()}
DCG = {
    "paper": {"n": 4, "truncate": True},
    "exact": {"n": 4, "truncate": True, "exact": True},
    "whole": {"truncate": False},
    "log": {"truncate": False, "discount": 0.0, "exact": True},
    "iterated log": {"truncate": False, "discount": 1.0},
    "power": {"truncate": False, "discount": -0.5},
    "default": {"truncate": False, "gradient_budget": 0.15, "squared_weight": 1.0},
    "catalog": {"truncate": False, "discount": -1.0, "exact": True, "length_power": 0.5},
    "annealed": {"n": 4, "truncate": True, "anneal_n": 0.5, "exact": True},
    "all": {
        "n": 4,
        "truncate": True,
        "gradient_budget": 0.15,
        "squared_weight": 0.5,
        "exact": True,
        "discount": 3.0,
        "anneal_n": 0.9,
    },
}
TRUNCATED = {
    "cut": {"n": 4},
    "whole": {"truncate": False},
    "annealed": {"n": 4, "anneal_n": 0.5},
    "shaped": {"truncate": False, "gradient_budget": 0.15, "squared_weight": 1.0},
    "all": {"n": 4, "gradient_budget": 0.15, "squared_weight": 0.5, "anneal_n": 0.9},
}
OWN = {TruncatedMRR: {"tau": 0.3}, TruncatedMAP: {}, TruncatedAUC: {"margin": 0.5}}
"""Other values of a metric's own number, in its last variant."""


def truncated(metric, step):
    return [metric(step, **TRUNCATED[name], **(OWN[metric] if name == "all" else {})) for name in TRUNCATED]


CASES = {
    "squared": (1e-12, [Squared()]),
    "climf": (1e-6, [CLiMFBound(), CLiMFBound(mean_pairs=False)]),
    "xclimf": (1e-9, [XCLiMFBound(), XCLiMFBound(mean_pairs=False)]),
    "tfmap": (1e-6, [SmoothAP()]),
    "listrank": (1e-9, [TopOneCrossEntropy(link, per_item, 2.5) for link in LINKS for per_item in (True, False)]),
    "listpmf": (1e-9, [PlackettLuce(ties, link, normalize=link == "sigmoid") for ties in TIES for link in LINKS]),
    "gaussian": (1e-9, [GaussianDCG(), GaussianDCG(0.05), GaussianDCG(2.0, normalize=True)]),
    "mfadg": (1e-6, [AveragedDiscountedGain(), AveragedDiscountedGain(7.0)]),
    "bpr": (1e-10, [PairwiseLogistic(), PairwiseLogistic(tries=2, pairs=3)]),
    "warp": (1e-10, [WarpHinge(), WarpHinge(margin=0.25, tries=3)]),
}
"""For each objective how nearly its kernel agrees (the logistic function is approximated), and its variants."""
for _name, _step in STEPS.items():
    _tolerance = 1e-5 if _name == "sigmoid" else 1e-9
    CASES[f"dcg-{_name}"] = (_tolerance, [WeightedDCG(_step, **variant) for variant in DCG.values()])
    for _metric in OWN:
        CASES[f"{_metric.__name__[-3:].lower()}-{_name}"] = (_tolerance, truncated(_metric, _step))

every_objective = pytest.mark.parametrize(
    ("objective", "tolerance"), [(o, tolerance) for tolerance, variants in CASES.values() for o in variants], ids=str
)
LAYOUTS = (
    {"progress": 0.25},
    {"progress": 0.25, "sampled": 1, "weight": 1234.5},
    {"progress": 0.25, "sampled": 5, "weight": 3.0},
    {"progress": 0.25, "sampled": 40, "weight": 2.51},
)


def gains_of(draw, m):
    """Gains of six kinds: real, all above 0, stars, a few levels of both signs, few likes, many."""
    yield draw.normal(size=m)
    yield np.abs(draw.normal(size=m))
    yield draw.integers(1, 6, size=m) / 5.0
    yield draw.integers(-1, 2, size=m) / 2.0
    yield np.where(draw.random(m) < 0.04, 1.0, -1.0)
    yield np.where(draw.random(m) < 0.96, 1.0, -1.0)


def random_lists():
    """All sizes with all spreads, and some of the sizes with all kinds of gains."""
    draw = stream(1, "test lists")
    kinds = [(draw.normal(size=m), a) for m in (2, 10, 50) for a in gains_of(draw, m)]
    spreads = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in SIZES for spread in (0.01, 1.0, 30.0)]
    return [*kinds, *spreads, (30.0 * draw.normal(size=300), np.abs(draw.normal(size=300)))]


SIZES = (1, 2, 3, 10, 50, 300)
RANDOM = random_lists()


@every_objective
def test_random_lists(objective, tolerance):
    assert_lists_equal(objective, RANDOM, tolerance, progress=0.2)


@every_objective
def test_lists_with_sampled_rows(objective, tolerance):
    """Shorter lists consist of sampled rows only."""
    for layout in LAYOUTS[1:]:
        assert_lists_equal(objective, RANDOM[:-4:2], tolerance, **layout)


tied_list = st.lists(
    st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 0.3, 1.0, 2.5])), min_size=1, max_size=30
)


@settings(max_examples=25)
@given(data=st.data(), drawn=st.lists(tied_list, min_size=1, max_size=4), layout=st.sampled_from(LAYOUTS))
@pytest.mark.parametrize("name", CASES)
def test_lists_with_ties(name, data, drawn, layout):
    tolerance, variants = CASES[name]
    objective = data.draw(st.sampled_from(variants))
    lists = [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn]
    assume(not near_a_cut(objective, lists, **layout))
    # Where all forces cancel and the gate is steep, the sigmoid's approximation leaves up to 2e-7 of forces of size 10.
    assert_lists_equal(objective, lists, 20.0 * tolerance if name == "dcg-sigmoid" else tolerance, **layout)


HUGE = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
HAZARDS = [
    *((HUGE, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.full(5, 7.0), HUGE[::-1].copy())),
    (HUGE, np.array([1.0, -1.0, 1.0, 0.0, 2.0])),
    *((np.full(7, 0.3), a) for a in (np.zeros(7), np.ones(7), np.arange(7) - 2.0)),
    *((np.array([2.0]), np.array([a])) for a in (1.0, 0.7, -1.0)),
]


@every_objective
def test_hazards(objective, tolerance):
    for layout in LAYOUTS[:3]:
        assert_lists_equal(objective, HAZARDS, tolerance, **layout)


@every_objective
def test_empty_lists_and_rows_of_the_history(objective, tolerance):
    """Lists without rows, of history only, without own rows, and with all kinds of rows."""
    draw = stream(2, "test lists")
    lists = [(draw.normal(size=m), np.append(9.0, draw.normal(size=m))[:m]) for m in (0, 2, 5, 6, 9, 12)]
    for sampled in (0, 4):
        assert_lists_equal(objective, lists, tolerance, history=2, sampled=sampled, weight=50.0)


@pytest.mark.parametrize("name", ["dcg-laplace", "mrr-laplace", "map-laplace", "auc-laplace"])
def test_annealing_follows_the_progress(name):
    draw = stream(3, "test lists")
    lists = [(draw.normal(size=m), draw.normal(size=m)) for m in (2, 4, 9, 40)]
    tolerance, variants = CASES[name]
    for objective in (o for o in variants if o.anneal_n > 0.0):
        for progress in (0.0, 0.2, 0.5, 0.75, 1.0):
            assert_lists_equal(objective, lists, tolerance, progress=progress)


def test_every_objective_has_a_kernel_and_is_tested():
    tested = {type(objective): objective for _, variants in CASES.values() for objective in variants}
    named = (getattr(objectives, name) for name in objectives.__all__ if name != "Objective")
    assert set(tested) == {kind for kind in named if inspect.isclass(kind) and hasattr(kind, "evaluate")}
    for kind, objective in tested.items():
        run = compiled_lists(objective)
        assert getattr(run, "func", run).__module__.endswith(".kernel"), kind


def test_an_objective_without_kernel_is_run_by_its_reference():
    objective = WeightedDCG(Twin(), n=4)
    assert compiled_lists(objective).func.__module__ == "topnrank.losses.table"
    assert_lists_equal(objective, RANDOM[:30], 1e-12)
    test_empty_lists_and_rows_of_the_history(objective, 1e-12)
