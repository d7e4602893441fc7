"""Shared by the tests of losses with smooth ranks: Top-N-Rank's DCG, and truncated MRR, MAP and AUC."""

from dataclasses import replace

import numpy as np

from support.lists import budget_scale
from topnrank.losses.squared import Squared
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests


class Twin:
    """The Laplace step as a user's own class."""

    def __repr__(self):  # in test ids, which must be the same in every process
        return "Twin()"

    def h(self, x):
        return Laplace().h(x)

    def dh(self, x):
        return Laplace().dh(x)


STEPS = [ReLU(), Sigmoid(), Laplace(), Ramp(), Twin()]


def random_list(case, m=9):
    """Distinct scores, none of them near a kink of a step function or the margin, and gains of both signs."""
    draw = stream(case, "test list")
    scores = np.round(draw.normal(size=m), 2) + np.linspace(0.001, 0.004, m)
    gains = draw.normal(size=m)
    gains[:2] = 1.0, -1.0
    return scores, gains


def ranks(step, f, among=None):
    """Smooth ranks of all items among some (all), by their definition."""
    among = range(len(f)) if among is None else among
    return np.array([sum(float(step.h(np.array(f[j] - f[i]))) for j in among if j != i) for i in range(len(f))])


def step_by_autograd(np, step, x):
    """h(x) once more; shares no line with the library."""
    C = getattr(step, "steepness", 3.0)
    if isinstance(step, ReLU):
        return np.maximum(x, 0.0)
    if isinstance(step, Sigmoid):
        return 1.0 / (1.0 + np.exp(-C * x))
    if isinstance(step, Ramp):
        return np.minimum(np.maximum(C * x, 0.0), 1.0)
    return 0.5 + 0.5 * np.sign(x) * (1.0 - np.exp(-C * np.abs(x)))


def above_by_autograd(np, step, f):
    """(m, m) h(f_j - f_i) without the diagonal: its row sums are the ranks."""
    return step_by_autograd(np, step, f[None, :] - f[:, None]) * (1.0 - np.eye(f.size))


def cut_by_hand(objective, m, progress):
    """The gate's N of a list of m items at this progress of training."""
    longer = max(m - objective.n, 0)
    return objective.n + (longer * max(1.0 - progress / objective.anneal_n, 0.0) if objective.anneal_n else 0.0)


class BudgetTests(ObjectiveTests):
    """Objectives with a budget and perhaps a squared term: the budget's scale is held constant when differentiating."""

    every_item_counts = False
    test_value_and_gradient_are_those_of_the_formula_by_autograd = None  # no formula has that gradient

    def differentiated(self, objective, scores, gains, context):
        scale = budget_scale(objective, scores, gains, context)
        plain = replace(objective, gradient_budget=0.0, squared_weight=0.0)

        def loss(f):
            squared = objective.squared_weight * Squared().evaluate(f, gains).value
            return scale * plain.evaluate(f, gains, context).value + squared

        return loss
