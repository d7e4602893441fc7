"""Small lists that the tests of several objectives share."""

import math

import numpy as np
import pytest

from topnrank.losses.base import ListContext
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests

RATED = ListContext(key=7)
UNOBSERVED = ListContext(sampled=4, weight=24.9, key=7)
every_context = pytest.mark.parametrize("context", [RATED, UNOBSERVED], ids=["rated", "unobserved"])


def g(x):
    """The logistic function of a number."""
    return 1.0 / (1.0 + math.exp(-x))


def list_of_positives(case, m=9):
    """Scores, and gains of which only those above 0 are likes."""
    draw = stream(case, "test list")
    return 2.0 * draw.normal(size=m), draw.choice([-1.0, 0.0, 0.5, 1.0, 3.0], size=m)


def list_of_levels(case, context=RATED, m=20):
    """Scores, and gains of both signs with some equal ones; sampled rows have none."""
    draw = stream(case, "test list")
    scores, gains = draw.normal(size=m), draw.integers(-2, 3, m).astype(float)
    gains[m - context.sampled :] = 0.0
    return scores, gains


class DrawnPairTests(ObjectiveTests):
    """Objectives that draw pairs: their formula draws them one by one."""

    def test_the_value_is_that_of_the_formula(self, objective, context):
        for case in range(5):
            scores, gains = list_of_levels(case, context)
            expected = self.autograd_formula(np, objective, scores, gains, context)
            assert expected > 0.0
            assert objective.evaluate(scores, gains, context).value == pytest.approx(expected, rel=1e-12)


class RatedPairTests(DrawnPairTests):
    """Objectives that draw pairs of the user's own rows; each row has its own draws."""

    contexts = (RATED,)
    any_order = False

    def test_without_unequal_gains_there_is_no_loss(self, objective, context):
        for m in (1, 3):
            result = objective.evaluate(np.linspace(0, 1, m), np.full(m, 3.0), context)
            assert result.value == 0.0
            assert not result.user.any()


class UnobservedPairTests(DrawnPairTests):
    """Objectives that draw pairs of positives and sampled rows."""

    contexts = (UNOBSERVED,)
    any_order = False
    needs_positives = True


def pair_tests(objectives, formula):
    """The test classes of objectives that draw pairs: of rated rows, and against unobserved items."""
    own = {"objectives": objectives, "autograd_formula": staticmethod(formula)}
    return type("TestRatedPairs", (RatedPairTests,), own), type("TestUnobservedPairs", (UnobservedPairTests,), own)


class LikesOnlyTests(ObjectiveTests):
    """Objectives that see the rows with a gain above 0 only, and raise them."""

    only_differences = False
    needs_positives = ignores_others = True
