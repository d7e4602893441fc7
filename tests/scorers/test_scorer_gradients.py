"""Gradients of every block of parameters are the derivatives of the total loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.problems import N_ITEMS, N_USERS, make_problem, start
from topnrank.engines.reference import ReferenceEngine, user_rows
from topnrank.losses.base import PLAIN_CONTEXT, evaluate_list
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.scorers import Factors, RatingResiduals
from topnrank.testing.losses import central_differences

STEPS = [ReLU(), Sigmoid(), Laplace(), Ramp()]
BLOCKS = {
    "factors": ("user_factors", "item_factors", "item_bias"),
    "history": ("item_factors", "history_factors", "rating_factors", "item_bias"),
}
USER_SIDE = {"factors": ("user_factors",), "history": ("history_factors", "rating_factors")}
every_step = pytest.mark.parametrize("step", STEPS, ids=repr)


def float64(blocks):
    return {name: block.astype(np.float64) for name, block in blocks.items()}


def visits(problem):
    """Every user's rows as a visit sees them."""
    return [user_rows(problem.rows, user, problem, N_ITEMS, key=user) for user in range(N_USERS)]


def evaluate(problem, parameters, one):
    return evaluate_list(
        problem.objective, problem.scorer.scores(parameters, one), one.gains[one.first :], PLAIN_CONTEXT
    )


def total_loss(problem, parameters):
    """sum_u L_u(scores(theta))."""
    return sum(evaluate(problem, parameters, one).value for one in visits(problem))


def gradients(problem, parameters):
    """The scorer's gradients of all blocks, summed over the users."""
    scorer = problem.scorer
    sums = {name: np.zeros_like(block) for name, block in parameters.items()}
    for one in visits(problem):
        g = evaluate(problem, parameters, one)
        if scorer.user_block is not None:
            sums[scorer.user_block][one.user] += scorer.user_gradient(parameters, one, g.user)
        for name, part in scorer.item_gradients(parameters, one, g.user, g.item).items():
            items = one.items[: one.own] if name in scorer.history_blocks else one.items[one.first :]
            np.add.at(sums[name], items, part)
    return sums


def numeric_gradient(problem, parameters, name):
    return central_differences(lambda block: total_loss(problem, parameters | {name: block}), parameters[name])


@every_step
@pytest.mark.parametrize(("scorer", "name"), [(scorer, name) for scorer, names in BLOCKS.items() for name in names])
def test_the_exact_gradient_of_every_block(scorer, name, step):
    problem = make_problem(scorer, WeightedDCG(step, n=4, exact=True, squared_weight=0.2))
    parameters = float64(start(problem).parameters)
    numeric = numeric_gradient(problem, parameters, name)
    assert_allclose(gradients(problem, parameters)[name], numeric, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("lists", ["liked", "sampled"])
@pytest.mark.parametrize(("scorer", "name"), [(scorer, name) for scorer, names in BLOCKS.items() for name in names])
def test_the_exact_gradient_with_rows_aside_and_sampled_items(scorer, name, lists):
    problem = make_problem(scorer, WeightedDCG(Laplace(), exact=True, squared_weight=0.2), lists=lists)
    parameters = float64(start(problem).parameters)
    numeric = numeric_gradient(problem, parameters, name)
    assert np.abs(numeric).max() > 1e-3
    assert_allclose(gradients(problem, parameters)[name], numeric, atol=1e-5 * np.abs(numeric).max())


@every_step
@pytest.mark.parametrize(("scorer", "name"), [(scorer, name) for scorer, names in USER_SIDE.items() for name in names])
def test_the_papers_gradient_is_exact_on_the_users_side(scorer, name, step):
    problem = make_problem(scorer, WeightedDCG(step, n=4))
    parameters = float64(start(problem).parameters)
    numeric = numeric_gradient(problem, parameters, name)
    assert_allclose(gradients(problem, parameters)[name], numeric, atol=1e-5 * np.abs(numeric).max())


def test_a_step_of_the_engine_follows_the_gradient_and_the_penalty_of_each_visit():
    """One visit of all users with the history scorer: theta - rate * (gradient + decay * visits * theta)."""
    problem = make_problem("history", WeightedDCG(Laplace(), n=4, exact=True))
    engine = ReferenceEngine(problem, start(problem))
    before = {name: block.copy() for name, block in engine.state.parameters.items()}
    engine.step(np.arange(N_USERS))
    active_items = np.bincount(problem.rows.items, minlength=N_ITEMS)
    for name, gradient in gradients(problem, before).items():
        rule = problem.rules[name]
        times = active_items.reshape(-1, *[1] * (gradient.ndim - 1))
        expected = before[name] - rule.rate * (gradient + rule.decay * times * before[name])
        assert_allclose(engine.state.parameters[name], expected, rtol=1e-10, atol=1e-12)


def test_items_see_the_users_after_their_step():
    """The paper's order: the user steps, scores are computed again, then the items step."""
    problem = make_problem("factors", WeightedDCG(Laplace(), n=4))
    engine = ReferenceEngine(problem, start(problem))
    parameters = {name: block.copy() for name, block in engine.state.parameters.items()}
    rule = problem.rules["user_factors"]
    slope = gradients(problem, parameters)["user_factors"] + rule.decay * parameters["user_factors"]
    parameters["user_factors"] -= rule.rate * slope
    engine.step(np.arange(N_USERS))
    assert_allclose(engine.state.parameters["user_factors"], parameters["user_factors"], rtol=1e-12)
    rule, active_items = problem.rules["item_bias"], np.bincount(problem.rows.items, minlength=N_ITEMS)
    slope = gradients(problem, parameters)["item_bias"] + rule.decay * active_items * parameters["item_bias"]
    assert_allclose(engine.state.parameters["item_bias"], parameters["item_bias"] - rule.rate * slope, rtol=1e-12)


def test_leave_one_out_an_items_own_rating_does_not_move_its_score():
    problem = make_problem("history")
    parameters, rows = float64(start(problem).parameters), problem.rows
    one = user_rows(rows, 0, problem, N_ITEMS, key=0)
    changed = one.residuals.copy()
    changed[0] += 5.0
    scores = (problem.scorer.scores(parameters, report) for report in (one, one._replace(residuals=changed)))
    moved = -np.subtract(*scores)
    assert moved[0] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.abs(moved[1:]) > 1e-6)


def test_the_paper_start_values_are_uniform_up_to_b():
    blocks = Factors(10, "paper").initialize(4000, 50, seed=0)
    b = 2 / 70**0.25
    assert blocks["user_factors"].min() >= 0.0
    assert blocks["user_factors"].max() <= b
    assert blocks["user_factors"].mean() == pytest.approx(b / 2, rel=0.02)
    assert not blocks["item_bias"].any()


def test_rating_residuals_by_their_formula():
    indptr, items = np.array([0, 2, 3]), np.array([0, 1, 1])
    ratings = np.array([5.0, 3.0, 4.0])
    means = [(8 + 3 * 4) / 5, (4 + 3 * 4) / 4]
    offsets = [(5 - means[0]) / 6, (3 - means[0] + 4 - means[1]) / 7]
    fitted = RatingResiduals.of_sums(RatingResiduals.sums(indptr, items, ratings, 4.0, 3), 4.0)
    assert_allclose(fitted.offsets, [*offsets, 0.0], rtol=1e-6)
    r = ratings - np.array([offsets[0], offsets[1], offsets[1]])
    expected = [*(r[:2] - (r[:2].sum() + 3 * r.mean()) / 5), r[2] - (r[2] + 3 * r.mean()) / 4]
    assert_allclose(fitted.of(indptr, items, ratings)[:, 0], expected, rtol=1e-5)
