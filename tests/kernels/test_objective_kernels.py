"""Objective kernels against their NumPy references, list by list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from topnrank.kernels.context import Batch
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
    "all": {"n": 4, "truncate": True, "budget": 0.15, "anchor": 0.5, "exact": True, "discount": 3.0},
}
every_step = pytest.mark.parametrize("name", STEPS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def batch_of(lists):
    """Lists of (scores, gains) as a batch and its flat scores; items do not matter to objectives."""
    offsets = np.concatenate([[0], np.cumsum([f.size for f, _ in lists])]).astype(np.int64)
    flat = int(offsets[-1])
    gains = np.concatenate([a for _, a in lists]) if flat else np.empty(0)
    users, items = np.arange(len(lists), dtype=np.int64), np.zeros(flat, np.int32)
    batch = Batch(users, offsets, items, gains, np.empty(0, np.float32))
    return batch, np.concatenate([f for f, _ in lists])


def assert_lists_equal(objective, lists, G, report, tolerance):
    lo = 0
    for n, (f, a) in enumerate(lists):
        expected = objective.evaluate(f, a)
        # What rounding and the sigmoid's approximation leave in a gradient that nearly cancels, the budget scales up.
        blown_up = objective.frozen_scale(f, a) if isinstance(objective, WeightedDCG) else 1.0
        for got, wanted in zip(G[:, lo : lo + f.size], (expected.user, expected.item), strict=True):
            scale = max(np.abs(wanted).max(), 1e-3 * blown_up * np.abs(a).max())
            assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)
        assert report[n, 0] == pytest.approx(expected.value, rel=tolerance, abs=tolerance * np.abs(a).sum())
        assert report[n, 1] == expected.active
        lo += f.size


def check_weighted_dcg(name, variant, lists):
    step, twin, tolerance = STEPS[name]
    objective = WeightedDCG(twin, **VARIANTS[variant])
    o = objective
    numbers = DCGSettings(float(o.n), o.truncate, o.exact, o.discount, o.budget, o.anchor)
    batch, scores = batch_of(lists)
    G, report = np.full((2, scores.size), np.nan), np.full((len(lists), 2), np.nan)
    weighted_dcg_lists(step, numbers, batch, scores, G, report)
    assert_lists_equal(objective, lists, G, report, tolerance)


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
    check_weighted_dcg(name, variant, lists)


@every_step
@every_variant
def test_hazards(name, variant):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    check_weighted_dcg(name, variant, [*lists, (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def test_an_empty_list_reports_nothing():
    step, twin, _ = STEPS["laplace"]
    lists = [(np.empty(0), np.empty(0)), (np.array([0.5, 0.1]), np.array([1.0, -1.0]))]
    batch, scores = batch_of(lists)
    G, report = np.empty((2, 2)), np.full((2, 2), np.nan)
    weighted_dcg_lists(step, DCGSettings(20.0, False, False, 2.0, 0.0, 0.0), batch, scores, G, report)
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1, 0] == pytest.approx(WeightedDCG(twin, truncate=False).evaluate(*lists[1]).value)


def test_squared():
    draw = stream(2, "test lists")
    lists = [(draw.normal(size=m), draw.normal(size=m)) for m in (1, 2, 7, 100)]
    batch, scores = batch_of(lists)
    G, report = np.full((2, scores.size), np.nan), np.full((4, 2), np.nan)
    squared_lists(batch, scores, G, report)
    assert_lists_equal(Squared(), lists, G, report, 1e-12)


def test_the_kernel_and_its_reference_call_the_same_gradient_faint():
    """Kernels import nothing of ours, so the number stands in both files."""
    from topnrank.kernels import objectives as kernels
    from topnrank.objectives import topnrank as reference

    assert kernels.FAINT == reference.FAINT
