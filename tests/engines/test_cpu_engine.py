"""The CPU engine equals the reference engine, for everything the two can be asked."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.problems import LISTS, N_USERS, SCORERS, make_problem, start, visit_all
from support.rank_losses import Twin
from topnrank import losses as objectives
from topnrank.engines import TrainingTime, make_engine
from topnrank.engines.cpu import CpuEngine
from topnrank.engines.reference import ReferenceEngine
from topnrank.errors import ParameterError
from topnrank.losses.squared import Squared
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.losses.table import compiled_lists
from topnrank.losses.weighted_dcg.reference import WeightedDCG

STEPS = [ReLU(), Sigmoid(), Laplace(), Ramp()]
VARIANTS = {
    "paper": {"n": 3, "truncate": True},
    "default": {"truncate": False, "gradient_budget": 0.15, "squared_weight": 1.0},
    "log": {"truncate": False, "discount": 0.0},
}

every_scorer = pytest.mark.parametrize("scorer", SCORERS)
every_optimizer = pytest.mark.parametrize("adagrad", [False, True], ids=["sgd", "adagrad"])


def assert_engines_agree(problem, least=1e-3):
    """The two make the same visits; every block moves by at least `least`."""
    cpu, reference = CpuEngine(problem, start(problem)), ReferenceEngine(problem, start(problem))
    for ours, theirs in zip(visit_all(cpu), visit_all(reference), strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-5, abs=1e-4)  # a sum of terms of both signs
        assert ours.moved == pytest.approx(theirs.moved, rel=1e-4)
        assert (ours.active, ours.lists) == (theirs.active, theirs.lists)
    before = start(problem).parameters
    for kind in ("parameters", "accumulators"):
        for name, block in getattr(cpu.state, kind).items():
            expected = getattr(reference.state, kind)[name]
            assert_allclose(block, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(), err_msg=f"{kind} {name}")
    for name, block in cpu.state.parameters.items():
        assert np.abs(block - before[name]).max() > least, f"{name} did not move"


@every_scorer
@every_optimizer
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("exact", [False, True], ids=["paper's", "exact"])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_weighted_dcg(scorer, adagrad, variant, exact, step):
    objective = WeightedDCG(step, exact=exact, **VARIANTS[variant])
    assert_engines_agree(make_problem(scorer, objective, adagrad=adagrad))


@every_scorer
@every_optimizer
@pytest.mark.parametrize("lists", LISTS)
def test_lists_of_liked_and_of_sampled_items(scorer, adagrad, lists):
    assert_engines_agree(make_problem(scorer, WeightedDCG(Laplace(), exact=True), adagrad=adagrad, lists=lists))


def test_draws_follow_seed_and_iteration():
    problem = make_problem("factors", WeightedDCG(Laplace(), exact=True), lists="sampled")
    users, states = np.arange(N_USERS), []
    for seed, iteration in ((3, 0), (3, 0), (3, 1), (4, 0)):
        engine = CpuEngine(replace(problem, seed=seed), start(problem))
        engine.step(users, TrainingTime(iteration))
        states.append(engine.state.parameters["item_factors"].tobytes())
    assert states[0] == states[1]
    assert len(set(states)) == 3


@every_scorer
@every_optimizer
def test_squared(scorer, adagrad):
    assert_engines_agree(make_problem(scorer, Squared(), adagrad=adagrad))


OBJECTIVES = [
    objectives.CLiMFBound(),
    objectives.XCLiMFBound(),
    objectives.SmoothAP(),
    objectives.TopOneCrossEntropy(),
    objectives.PlackettLuce(),
    objectives.PlackettLuce(ties="shuffled"),
    objectives.GaussianDCG(),
    objectives.AveragedDiscountedGain(),
    objectives.PairwiseLogistic(),
    objectives.WarpHinge(),
    objectives.TruncatedMRR(n=4, anneal_n=0.5, gradient_budget=0.2),
    objectives.TruncatedMAP(n=4, anneal_n=0.5, gradient_budget=0.2, squared_weight=0.5),
    objectives.TruncatedAUC(n=4, anneal_n=0.5, gradient_budget=0.2),
    WeightedDCG(n=4, anneal_n=0.5),
]


@every_scorer
@pytest.mark.parametrize("lists", LISTS)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_every_objective(scorer, lists, objective):
    assert not isinstance(compiled_lists(objective).func, type(compiled_lists)), "no kernel"
    assert_engines_agree(make_problem(scorer, objective, rate=0.05, lists=lists), least=0.0)


@every_scorer
def test_a_step_of_ones_own_equals_its_builtin_twin(scorer):
    own, builtin = (
        CpuEngine(problem, start(problem))
        for problem in (make_problem(scorer, WeightedDCG(step, n=4)) for step in (Twin(), Laplace()))
    )
    visit_all(own), visit_all(builtin)
    for name, block in own.state.parameters.items():
        assert_allclose(block, builtin.state.parameters[name], rtol=1e-5, atol=1e-6)


@every_scorer
def test_an_objective_of_ones_own_runs_through_its_numpy_code(scorer):
    class Half:
        def evaluate(self, scores, gains, context):
            whole = Squared().evaluate(scores, gains)
            return whole._replace(value=whole.value / 2, user=whole.user / 2, item=whole.item / 2)

    assert_engines_agree(make_problem(scorer, Half(), rate=0.05))


@every_scorer
def test_blocks_with_rate_zero_and_items_not_visited_stay(scorer):
    problem = make_problem(scorer)
    problem.rules["item_bias"] = problem.rules["item_bias"]._replace(rate=0.0)
    engine, before = CpuEngine(problem, start(problem)), start(problem).parameters
    engine.step(np.array([3]))
    visited = problem.rows.items[problem.rows.of(3)]
    moved = np.abs(engine.state.parameters["item_factors"] - before["item_factors"]).max(axis=1) > 0
    assert np.flatnonzero(moved).tolist() == visited.tolist()
    assert np.array_equal(engine.state.parameters["item_bias"], before["item_bias"])


def test_the_number_of_threads_is_set_back():
    import numba

    before = numba.get_num_threads()
    problem = make_problem("factors")
    CpuEngine(problem, start(problem), num_threads=1).step(np.array([0, 1]))
    assert numba.get_num_threads() == before


def test_engines_by_name():
    problem = make_problem("history")
    assert isinstance(make_engine("cpu", problem, start(problem)), CpuEngine)
    assert isinstance(make_engine("reference", problem, start(problem)), ReferenceEngine)
    with pytest.raises(ParameterError, match="engine must be one of 'cpu', 'reference', 'spark', got 'gpu'"):
        make_engine("gpu", problem, start(problem))


def test_a_batch_of_too_many_rows_is_refused_with_what_to_do(monkeypatch):
    problem = make_problem("factors", Squared())
    monkeypatch.setattr("topnrank.engines.cpu.MAX_ROWS", 3)
    with pytest.raises(ParameterError, match=r"batch_size: a batch has .* rows, the most is 3; take fewer users"):
        CpuEngine(problem, start(problem)).step(np.arange(N_USERS))
