"""What the tests of the truncated objectives share."""

import numpy as np
import pytest

from topnrank.objectives import Laplace, Ramp, ReLU, Sigmoid, TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.objectives.base import Occasion
from topnrank.rng import stream


class Twin:
    """The Laplace step in the clothes of a user's own object."""

    def h(self, x):
        return Laplace().h(x)

    def dh(self, x):
        return Laplace().dh(x)


STEPS = [ReLU(), Sigmoid(), Laplace(), Ramp(), Twin()]
METRICS = [TruncatedMRR, TruncatedMAP, TruncatedAUC]
START = Occasion(progress=0.0)

every_metric = pytest.mark.parametrize("metric", METRICS)
every_objective = pytest.mark.parametrize(
    "objective",
    [metric(step, n=3, truncate=cut) for metric in METRICS for step in STEPS for cut in (True, False)],
    ids=lambda o: f"{type(o).__name__}-{type(o.step).__name__}-{'cut' if o.truncate else 'whole'}",
)


def random_list(case: int, m: int = 9):
    """Distinct scores, none of them near a kink of a step function or the margin, and gains of both signs."""
    draw = stream(case, "test list")
    scores = np.round(draw.normal(size=m), 2) + np.linspace(0.001, 0.004, m)
    gains = draw.normal(size=m)
    gains[:2] = 1.0, -1.0
    return scores, gains


def ranks(step, f, among):
    """Smooth ranks of all items among some, by their definition."""
    return [sum(float(step.h(np.array(f[j] - f[i]))) for j in among if j != i) for i in range(len(f))]
