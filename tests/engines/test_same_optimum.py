"""Training ends where an independent optimizer ends: the papers' objectives in `autograd`, minimized by SciPy.

Losses and penalty are written down once more, without any code of ours. The optimum that SciPy finds must be a resting point
of our training; where the loss is convex, training must end there.
"""

from dataclasses import replace

import numpy as np
import pytest

from support.problems import N_ITEMS, N_USERS, make_problem, start
from topnrank import losses as objectives
from topnrank.engines.reference import ReferenceEngine
from topnrank.rng import stream
from topnrank.testing.losses import central_differences

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")
optimize = pytest.importorskip("scipy.optimize")


def softplus(x):
    return anp.logaddexp(0.0, x)


def log_sum_exp(x):
    top = anp.max(x)
    return top + anp.log(anp.sum(anp.exp(x - top)))


def climf(f, a):
    liked = f[a > 0]
    return anp.sum(softplus(-liked)) + anp.sum(softplus(liked[None, :] - liked[:, None]))


def xclimf(f, q):
    g = 1.0 / (1.0 + anp.exp(-(f[None, :] - f[:, None])))
    pairs = anp.log(1.0 - q[None, :] * g) * (1.0 - anp.eye(len(q)))
    return -anp.sum(q * (anp.sum(pairs, axis=1) - softplus(-f)))


def list_rank(f, a):
    target = anp.exp(a) / anp.sum(anp.exp(a))
    s = 1.0 / (1.0 + anp.exp(-f))
    return anp.sum(target * (log_sum_exp(s) - s))


def plackett_luce(f, a):
    return sum(log_sum_exp(f[a <= a[i]]) - f[i] for i in range(len(a)))


def tfmap(f, a):
    liked = f[a > 0]
    if len(liked) == 0:
        return 0.0
    g = 1.0 / (1.0 + anp.exp(-liked))
    return -anp.sum(g[:, None] / (1.0 + anp.exp(-(liked[None, :] - liked[:, None])))) / len(liked)


def squared(f, a):
    return 0.5 * anp.sum((f - anp.mean(f) - a + anp.mean(a)) ** 2)


CASES = {
    "CLiMF": (objectives.CLiMFBound(mean_pairs=False), climf),
    "xCLiMF": (objectives.XCLiMFBound(mean_pairs=False), xclimf),
    "ListRank": (objectives.TopOneCrossEntropy(per_item=False), list_rank),
    "ListPMF": (objectives.PlackettLuce(), plackett_luce),
    "TFMAP": (objectives.SmoothAP(), tfmap),
    "squared": (objectives.Squared(), squared),
}


def problem_of(name, blocks):
    """The small problem under an objective, full batches, of which only some blocks of parameters move."""
    problem = make_problem("factors", CASES[name][0], rate=0.1)
    gains = np.round(problem.rows.gains * 2) / 2  # a few levels, with ties
    if name == "xCLiMF":
        gains = np.clip(np.abs(gains) / 2, 0.0, 0.9)
    rules = {block: rule if block in blocks else rule._replace(rate=0.0) for block, rule in problem.rules.items()}
    rows = problem.rows._replace(gains=gains.astype(np.float32))
    return replace(problem, rows=rows, rules=rules)


def total_loss(problem, formula, U, V, b):
    """The papers' loss over all users, plus lambda ||theta||^2 for each visit."""
    rows, rules, total = problem.rows, problem.rules, 0.0
    for user in range(N_USERS):
        items, gains = rows.items[rows.of(user)], rows.gains[rows.of(user)].astype(float)
        total = total + formula(anp.dot(V[items], U[user]) + b[items], gains)
        total = total + 0.5 * rules["user_factors"].decay * anp.sum(U[user] ** 2)
        total = total + 0.5 * rules["item_factors"].decay * anp.sum(V[items] ** 2)
        total = total + 0.5 * rules["item_bias"].decay * anp.sum(b[items] ** 2)
    return total


def engine_at(problem, parameters):
    """The reference engine, stepping along the whole gradient, at these parameters."""
    state = start(problem)
    for name, block in parameters.items():
        state.parameters[name][...] = block
    return ReferenceEngine(problem, state)


@pytest.mark.parametrize("name", CASES)
def test_where_scipy_ends_nothing_moves_ours(name):
    """The optimum of the independent loss over the item biases is a resting point of our training, and not by chance."""
    problem, formula = problem_of(name, ["item_bias"]), CASES[name][1]
    U, V = 0.5 * stream(0, "u").normal(size=(N_USERS, 4)), 0.5 * stream(0, "v").normal(size=(N_ITEMS, 4))

    def loss(b):
        return total_loss(problem, formula, U, V, b)

    found = optimize.minimize(loss, np.zeros(N_ITEMS), jac=autograd.grad(loss), method="BFGS", options={"maxiter": 60})
    frozen = {"user_factors": U.astype(np.float32), "item_factors": V.astype(np.float32)}
    moved = [
        engine_at(problem, frozen | {"item_bias": b}).step(np.arange(N_USERS)).moved
        for b in (np.zeros(N_ITEMS), found.x)
    ]
    assert moved[1] < 1e-4 * moved[0]


@pytest.mark.parametrize("name", ["ListPMF", "squared"])
def test_training_ends_at_the_one_optimum_of_a_convex_loss(name):
    problem, formula = problem_of(name, ["item_bias"]), CASES[name][1]
    U, V, b = np.zeros((N_USERS, 4)), np.zeros((N_ITEMS, 4)), np.zeros(N_ITEMS)

    def loss(b):
        return total_loss(problem, formula, U, V, b)

    found = optimize.minimize(loss, b, jac=autograd.grad(loss), method="BFGS", options={"maxiter": 60})
    engine = engine_at(problem, {"user_factors": U, "item_factors": V, "item_bias": b})
    for _ in range(150):
        engine.step(np.arange(N_USERS))
    seen = np.unique(problem.rows.items)
    trained, theirs = (
        engine.state.parameters["item_bias"][seen],
        found.x[seen],
    )  # a common shift changes the penalty only
    np.testing.assert_allclose(trained - trained.mean(), theirs - theirs.mean(), atol=1e-3 * np.abs(theirs).max())


def test_the_independent_gradient_is_right():
    """A check of the checker."""
    problem, formula = problem_of("ListPMF", ["item_bias"]), plackett_luce
    U, V = np.zeros((N_USERS, 4)), np.zeros((N_ITEMS, 4))
    b = np.linspace(-1, 1, N_ITEMS)
    numeric = central_differences(lambda b: float(total_loss(problem, formula, U, V, b)), b)
    np.testing.assert_allclose(autograd.grad(lambda b: total_loss(problem, formula, U, V, b))(b), numeric, atol=1e-6)
