"""Kernels of truncated MRR, MAP and AUC against their NumPy references, list by list."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of, near_a_cut
from numpy.testing import assert_allclose

from topnrank.kernels.ranks import LAPLACE, RAMP, RELU, SIGMOID, Step, sigmoid_terms
from topnrank.kernels.truncated import TruncatedSettings, auc_lists, map_lists, mrr_lists
from topnrank.objectives import Laplace, Ramp, ReLU, Sigmoid, TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.rng import stream

STEPS = {
    "relu": (Step(RELU, 1.0, sigmoid_terms()), ReLU(), 1e-9),
    "laplace": (Step(LAPLACE, 3.0, sigmoid_terms()), Laplace(), 1e-9),
    "ramp": (Step(RAMP, 1.0, sigmoid_terms()), Ramp(), 1e-9),
    "sigmoid": (Step(SIGMOID, 7.0, sigmoid_terms()), Sigmoid(), 1e-5),
}
METRICS = {"mrr": (TruncatedMRR, mrr_lists), "map": (TruncatedMAP, map_lists), "auc": (TruncatedAUC, auc_lists)}
VARIANTS = {
    "cut": {"n": 4},
    "whole": {"truncate": False},
    "annealed": {"n": 4, "anneal": 0.5},
    "shaped": {"truncate": False, "budget": 0.15, "anchor": 1.0},
    "all": {"n": 4, "budget": 0.15, "anchor": 0.5, "anneal": 0.9},
}
OWN = {"mrr": {"tau": 0.3}, "map": {}, "auc": {"margin": 0.5}}
"""Other values of a metric's own number, in the last variant."""

every_step = pytest.mark.parametrize("name", STEPS)
every_metric = pytest.mark.parametrize("metric", METRICS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def objective_of(name, metric, variant):
    own = OWN[metric] if variant == "all" else {}
    return METRICS[metric][0](STEPS[name][1], **VARIANTS[variant], **own)


def settings_of(objective):
    o = objective
    own = (getattr(o, "tau", 1.0), getattr(o, "margin", 1.0))
    return TruncatedSettings(float(o.n), o.truncate, o.budget, o.anchor, o.anneal, *own)


def check(name, metric, variant, lists, progress=0.2):
    objective = objective_of(name, metric, variant)
    step, _, tolerance = STEPS[name]

    def run(*arrays):
        METRICS[metric][1](step, settings_of(objective), *arrays)

    assert_lists_equal(objective, lists, run, tolerance, progress=progress)


@every_step
@every_metric
@every_variant
def test_random_lists(name, metric, variant):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.normal(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check(name, metric, variant, lists)


@every_metric
@pytest.mark.parametrize("share", [0.02, 0.98])
def test_few_and_many_positives(metric, share):
    draw = stream(4, "test lists")
    lists = [(draw.normal(size=m), np.where(draw.random(m) < share, 1.0, -1.0)) for m in (20, 100, 300)]
    check("laplace", metric, "cut", lists)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.0, 1.0, 2.5])), min_size=1, max_size=30)


@every_step
@every_metric
@settings(max_examples=40)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), variant=st.sampled_from(sorted(VARIANTS)))
def test_lists_with_ties(name, metric, drawn, variant):
    lists = [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn]
    assume(not near_a_cut(objective_of(name, metric, variant), lists, progress=0.25))
    check(name, metric, variant, lists, progress=0.25)


@every_step
@every_metric
@every_variant
def test_hazards(name, metric, variant):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    lists = [(huge, a) for a in (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]))]
    one = [(np.array([2.0]), np.array([gain])) for gain in (1.0, -1.0)]
    check(name, metric, variant, [*lists, (np.zeros(6), np.ones(6)), (np.zeros(6), np.arange(6) - 2.0), *one])


@every_metric
@pytest.mark.parametrize("progress", [0.0, 0.2, 0.5, 0.75, 1.0])
def test_annealing_follows_the_progress(metric, progress):
    draw = stream(3, "test lists")
    lists = [(draw.normal(size=m), draw.normal(size=m)) for m in (2, 4, 9, 40)]
    check("laplace", metric, "annealed", lists, progress)


@every_metric
def test_sampled_items_are_negatives_like_others(metric):
    draw = stream(5, "test lists")
    objective = objective_of("laplace", metric, "cut")
    lists = [(draw.normal(size=m), draw.normal(size=m)) for m in (2, 9, 40)]

    def run(*arrays):
        METRICS[metric][1](STEPS["laplace"][0], settings_of(objective), *arrays)

    assert_lists_equal(objective, lists, run, 1e-9, sampled=5, weight=30.0)


@every_metric
def test_an_empty_list_reports_nothing_and_history_rows_are_left_alone(metric):
    objective = objective_of("laplace", metric, "cut")
    f, a = np.array([9.0, 0.5, 0.1, -1.0]), np.array([5.0, 1.0, -1.0, 1.0])
    batch, scores = batch_of([(np.empty(0), np.empty(0)), (f, a)])
    batch = batch._replace(first=batch.first + np.array([0, 1]))
    G, report = np.full((2, 4), np.nan), np.full((2, 2), np.nan)
    METRICS[metric][1](STEPS["laplace"][0], settings_of(objective), batch, scores, G, report)
    expected = objective.evaluate(f[1:], a[1:])
    assert report[0].tolist() == [0.0, 0.0]
    assert np.isnan(G[:, 0]).all()
    assert_allclose(G[:, 1:], [expected.user, expected.item], rtol=1e-12)
    assert_allclose(report[1], [expected.value, expected.active], rtol=1e-12)
