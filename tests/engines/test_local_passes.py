"""Several visits of a batch between two exchanges."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import topnrank as tnr
from topnrank.engines.base import State, TrainingTime
from topnrank.engines.cpu import CpuEngine
from topnrank.models.factor.prepare import prepare
from topnrank.spark.engine import tasks as spark_tasks
from topnrank.spark.engine.item_store import merge
from topnrank.spark.engine.local_passes import ACCUMULATED, copies, expected_rows, moments, move_items
from topnrank.spark.engine.tasks import Step, TrainingBlock, UserVectors, apply, cut, visit_block

DATA = tnr.synthetic(40, 15, seed=3)
MODELS = {
    "history": tnr.TopNRank(factors=3),
    "factors": tnr.TopNRank(user_representation="factors", factors=3),
    "paper": tnr.TopNRank.paper(factors=3),
    "catalog": tnr.TopNRank(task="catalog", factors=3),
    "sampled": tnr.BPR(factors=3, negatives=4),
}


def problem_and_state(model):
    model = model.settled(DATA)
    prepared = prepare(DATA, model.policy(), model.selection())
    problem = model.problem(prepared.rows, prepared.frozen)
    state = model.start_state(DATA.n_users, DATA.n_items, prepared.frozen)
    return replace(problem, item_rows=expected_rows(problem, DATA.n_items)), state


def visit_in_blocks(problem, state, n_blocks, step):
    """A visit as the Spark engine does it, in this process: the blocks' sums, one after another."""
    own, parts = problem.scorer.user_block, []
    for block in cut(problem.rows, n_blocks):
        users = slice(block.first, block.first + block.rows.indptr.size - 1)
        vectors = None if own is None else UserVectors(state.parameters[own][users], state.accumulators[own][users])
        left = visit_block(replace(problem, n_items=DATA.n_items), step, block, vectors)
        if own is not None:
            state.parameters[own][users], state.accumulators[own][users] = left.vectors
        parts.append(left.sums)
    return parts


def step_of(problem, state, passes, iteration=2):
    own = problem.scorer.user_block
    items, beside = (
        {name: block for name, block in b.items() if name != own} for b in (state.parameters, state.accumulators)
    )
    return Step(problem.rules, items, None, TrainingTime(iteration), passes, 1.0, beside)


@pytest.mark.parametrize("name", MODELS)
def test_one_block_makes_the_visits_of_the_cpu_engine(name):
    problem, state = problem_and_state(MODELS[name])
    start = State(copies(state.parameters), copies(state.accumulators))
    parts = visit_in_blocks(problem, state, 1, step_of(problem, state, 3))
    moved = apply(problem, state, merge(parts), 3)
    engine = CpuEngine(problem, start, num_threads=1)
    visits = [engine.step(np.arange(DATA.n_users), when) for when in moments(TrainingTime(2), 3)]
    assert moved > 0.0
    assert parts[0].step.value == pytest.approx(visits[0].value)
    for blocks, wanted in ((state.parameters, start.parameters), (state.accumulators, start.accumulators)):
        for block in wanted:
            assert_allclose(blocks[block], wanted[block], rtol=1e-4, atol=1e-6, err_msg=block)


def test_items_go_to_the_mean_of_where_the_blocks_took_them():
    problem, state = problem_and_state(MODELS["history"])
    start, accumulated = copies(state.parameters), state.accumulators["item_factors"].copy()
    parts = visit_in_blocks(problem, state, 3, step_of(problem, state, 2))
    rows, moves, squares = np.zeros(DATA.n_items), *np.zeros((2, *start["item_factors"].shape))
    for part in parts:
        rows[part.items] += part.in_lists
        moves[part.items] += part.gradients["item_factors"]
        squares[part.items] += part.gradients[ACCUMULATED + "item_factors"]
    move_items(state, merge(parts))
    assert_array_equal(rows, 2 * np.bincount(problem.rows.items, minlength=DATA.n_items))
    assert_allclose(state.parameters["item_factors"], start["item_factors"] + moves / rows[:, None], rtol=1e-5)
    grown = state.accumulators["item_factors"] - accumulated
    assert_allclose(grown, squares / rows[:, None] ** 2, rtol=1e-3, atol=1e-6)


def test_plain_descent_in_one_local_pass_over_all_users_is_the_usual_iteration():
    """What is expected of other blocks is what they have, and sums of scaled sums over shares are the sums."""
    problem, state = problem_and_state(MODELS["paper"])
    problem = replace(problem, rules={name: rule._replace(decay=0.0) for name, rule in problem.rules.items()})
    start = State(copies(state.parameters), copies(state.accumulators))
    usual = visit_in_blocks(problem, state, 4, step_of(problem, state, 1))
    apply(problem, state, merge(usual), 1)
    step = step_of(problem, start, 2, iteration=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_tasks, "moments", lambda when, _passes: [when])
        local = visit_in_blocks(problem, start, 4, step)
    apply(problem, start, merge(local), 2)
    for name, block in state.parameters.items():
        assert_allclose(start.parameters[name], block, rtol=1e-4, atol=1e-6, err_msg=name)


def test_no_two_visits_draw_the_same_random_numbers():
    named = [when.iteration for exchange in range(3) for when in moments(TrainingTime(exchange), 4)]
    assert named == list(range(12))


def test_expected_rows_count_lists_and_samples():
    problem, _ = problem_and_state(MODELS["sampled"])
    users = DATA.n_users
    found = expected_rows(problem, DATA.n_items)
    assert found.sum() == pytest.approx(problem.rows.items.size + 4 * users)
    halves = [expected_rows(replace(problem, rows=block.rows), DATA.n_items) for block in cut(problem.rows, 2)]
    assert_allclose(sum(halves), found)


def test_a_task_leaves_what_it_was_given():
    problem, state = problem_and_state(MODELS["factors"])
    step = step_of(problem, state, 2)
    before = copies(step.parameters)
    block = TrainingBlock(0, problem.rows)
    vectors = UserVectors(state.parameters["user_factors"].copy(), state.accumulators["user_factors"].copy())
    first = visit_block(replace(problem, n_items=DATA.n_items), step, block, vectors)
    second = visit_block(replace(problem, n_items=DATA.n_items), step, block, vectors)
    for name, array in before.items():
        assert_array_equal(step.parameters[name], array)
    for name, array in first.sums.gradients.items():
        assert_array_equal(second.sums.gradients[name], array)
