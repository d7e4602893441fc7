"""Full-batch descent with a step that adapts itself."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.problems import N_ITEMS, N_USERS, SCORERS, make_problem, start
from topnrank.engines import TrainingTime, make_engine
from topnrank.engines.adaptive import STEP, AdaptiveEngine
from topnrank.engines.reference import ReferenceEngine, visited
from topnrank.losses.steps import Laplace
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.testing.losses import central_differences

EVERYBODY = np.arange(N_USERS)
every_scorer = pytest.mark.parametrize("scorer", SCORERS)


def adaptive_problem(scorer, **settings):
    problem = make_problem(scorer, WeightedDCG(Laplace(), exact=True, squared_weight=0.3), rate=0.5, **settings)
    return replace(problem, simultaneous=True, adaptive=True)


def adaptive_state(problem):
    state = start(problem)
    state.accumulators[STEP] = np.full(1, 8.0)
    return state


def loss(problem, parameters):
    """Lists plus lambda ||theta||^2 for each visit, written out."""
    total = 0.0
    for user in EVERYBODY:
        one = visited(problem.rows, int(user), problem, N_ITEMS, key=0)
        total += problem.objective.evaluate(problem.scorer.scores(parameters, one), one.gains[one.first :]).value
        for name, block in parameters.items():
            rows = [user] if name == problem.scorer.user_block else one.items
            total += 0.5 * problem.rules[name].decay * np.sum(block[rows] ** 2)
    return total


@every_scorer
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_the_loss_falls_at_every_step_and_the_step_adapts(scorer, engine):
    problem = adaptive_problem(scorer)
    driven = make_engine(engine, problem, adaptive_state(problem))
    assert isinstance(driven, AdaptiveEngine)
    losses, steps = [], []
    for t in range(15):
        losses.append(loss(problem, driven.state.parameters))
        steps.append(float(driven.state.accumulators[STEP][0]))
        driven.step(EVERYBODY, TrainingTime(t))
    assert np.all(np.diff(losses) < 0)
    assert len(set(steps)) > 2


@every_scorer
def test_one_step_is_plain_descent_along_the_whole_gradient(scorer):
    problem = adaptive_problem(scorer)
    driven = AdaptiveEngine(ReferenceEngine(problem, adaptive_state(problem)))
    before = {name: block.copy() for name, block in driven.state.parameters.items()}
    driven.step(EVERYBODY)
    claim = 0.5 * float(driven.state.accumulators[STEP][0]) / 2.0  # the rule's rate times the step before it doubled
    for name, block in before.items():
        gradient = central_differences(lambda b, name=name: loss(problem, before | {name: b}), block)
        assert_allclose(driven.state.parameters[name], block - claim * gradient, atol=1e-5 * np.abs(gradient).max())


def test_where_no_step_helps_nothing_moves():
    problem = adaptive_problem("history")
    driven = AdaptiveEngine(ReferenceEngine(problem, adaptive_state(problem)))
    for block in driven.state.parameters.values():
        block[...] = 0.0
    problem.rows.gains[:] = 0.0
    report = driven.step(EVERYBODY)
    assert report.moved == 0.0
    assert not driven.state.parameters["item_factors"].any()
