"""Objective kernels against their NumPy references, list by list."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of, near_a_cut
from numpy.testing import assert_allclose

from topnrank.kernels.objectives import DCGSettings, squared_lists, weighted_dcg_lists
from topnrank.kernels.ranks import LAPLACE, RAMP, RELU, SIGMOID, Step, sigmoid_terms
from topnrank.objectives import Laplace, Ramp, ReLU, Sigmoid, Squared, WeightedDCG
from topnrank.rng import stream

STEPS = {
    "relu": (Step(RELU, 1.0, sigmoid_terms()), ReLU(), 1e-9),
    "laplace": (Step(LAPLACE, 3.0, sigmoid_terms()), Laplace(), 1e-9),
    "ramp": (Step(RAMP, 1.0, sigmoid_terms()), Ramp(), 1e-9),
    "sigmoid": (Step(SIGMOID, 7.0, sigmoid_terms()), Sigmoid(), 1e-5),
}
VARIANTS = {
    "paper": {"n": 4, "truncate": True},
    "exact": {"n": 4, "truncate": True, "exact": True},
    "whole": {"truncate": False},
    "log": {"truncate": False, "discount": 0.0, "exact": True},
    "iterated log": {"truncate": False, "discount": 1.0},
    "power": {"truncate": False, "discount": -0.5},
    "default": {"truncate": False, "budget": 0.15, "anchor": 1.0},
    "annealed": {"n": 4, "truncate": True, "anneal": 0.5, "exact": True},
    "all": {"n": 4, "truncate": True, "budget": 0.15, "anchor": 0.5, "exact": True, "discount": 3.0, "anneal": 0.9},
}
every_step = pytest.mark.parametrize("name", STEPS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def settings_of(objective):
    o = objective
    return DCGSettings(float(o.n), o.truncate, o.exact, o.discount, o.budget, o.anchor, o.anneal)


def check_weighted_dcg(name, variant, lists, progress=0.2, slack=1.0):
    step, twin, tolerance = STEPS[name]
    objective = WeightedDCG(twin, **VARIANTS[variant])

    def run(*arrays):
        weighted_dcg_lists(step, settings_of(objective), *arrays)

    assert_lists_equal(objective, lists, run, slack * tolerance, progress=progress)


@every_step
@every_variant
def test_random_lists(name, variant):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check_weighted_dcg(name, variant, lists)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@every_step
@settings(max_examples=30)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), variant=st.sampled_from(sorted(VARIANTS)))
def test_lists_with_ties(name, drawn, variant):
    lists = [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn]
    assume(not near_a_cut(WeightedDCG(STEPS[name][1], **VARIANTS[variant]), lists, progress=0.2))
    # Where all forces cancel and the gate is steep, the sigmoid's approximation leaves up to 2e-7 of forces of size 10.
    check_weighted_dcg(name, variant, lists, slack=20.0 if name == "sigmoid" else 1.0)


@every_step
@every_variant
def test_hazards(name, variant):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check_weighted_dcg(name, variant, [*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def test_an_empty_list_reports_nothing():
    step, twin, _ = STEPS["laplace"]
    objective = WeightedDCG(twin, truncate=False)
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.array([1.0, -1.0]))]
    batch, scores = batch_of(lists)
    G, report = np.empty((2, 2)), np.full((2, 2), np.nan)
    weighted_dcg_lists(step, settings_of(objective), batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1, 0] == pytest.approx(objective.evaluate(*lists[1]).value)


def test_rows_of_the_history_only_are_no_part_of_the_list():
    step, twin, _ = STEPS["laplace"]
    objective = WeightedDCG(twin, n=2)
    f, a = np.array([9.0, 0.5, 0.1, -1.0]), np.array([5.0, 1.0, -1.0, 1.0])
    batch, scores = batch_of([(f, a)])
    batch = batch._replace(first=batch.first + 1)
    for run, reference in (
        (lambda *arrays: weighted_dcg_lists(step, settings_of(objective), *arrays), objective),
        (squared_lists, Squared()),
    ):
        G, report = np.full((2, 4), np.nan), np.full((1, 2), np.nan)
        run(batch, scores, G, report)
        expected = reference.evaluate(f[1:], a[1:])
        assert np.isnan(G[:, 0]).all()
        assert_allclose(G[:, 1:], [expected.user, expected.item], rtol=1e-12)
        assert_allclose(report[0], [expected.value, expected.active], rtol=1e-12)


@pytest.mark.parametrize("progress", [0.0, 0.2, 0.5, 0.75, 1.0])
def test_annealing_follows_the_progress(progress):
    draw = stream(3, "test lists")
    check_weighted_dcg(
        "laplace", "annealed", [(draw.normal(size=m), draw.normal(size=m)) for m in (2, 4, 9, 40)], progress
    )


def test_squared():
    draw = stream(2, "test lists")
    lists = [(draw.normal(size=m), draw.normal(size=m)) for m in (1, 2, 7, 100)]
    assert_lists_equal(Squared(), lists, squared_lists, 1e-12)


def test_the_kernel_and_its_reference_call_the_same_gradient_faint():
    """Kernels import nothing of ours, so the number stands in both files."""
    from topnrank.kernels import shaping as kernels
    from topnrank.objectives import shaping as reference

    assert kernels.FAINT == reference.FAINT


@given(n=st.integers(1, 30), m=st.integers(1, 60), anneal=st.floats(0, 1), progress=st.floats(0, 1))
def test_the_kernel_anneals_as_its_reference_does(n, m, anneal, progress):
    from topnrank.kernels import shaping as kernels
    from topnrank.objectives import shaping as reference

    assert kernels.annealed(float(n), m, anneal, progress) == reference.annealed(n, m, anneal, progress)
