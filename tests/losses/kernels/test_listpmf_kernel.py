"""The Plackett-Luce kernel where scores are large."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.lists import batch_of, context_of, run_kernel
from topnrank.losses.links import LINKS
from topnrank.losses.listpmf.reference import TIES, PlackettLuce
from topnrank.rng import stream


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ties", TIES)
def test_close_scores_of_a_million_lose_no_digits(ties, link):
    """Each coordinate keeps its own digits, also those much smaller than the largest."""
    objective = PlackettLuce(ties, link, normalize=link == "sigmoid")
    draw = stream(2, "test lists")
    f, a = 1e6 + np.round(4096 * draw.normal(size=40)) / 4096, draw.integers(1, 6, size=40).astype(np.float64)
    f[:10] -= 2e6
    batch, scores = batch_of([(f, a)])
    G, report = run_kernel(objective, batch, scores)
    expected = objective.evaluate(f, a, context_of(batch, 0))
    assert_allclose(G[0], expected.user, rtol=1e-12, atol=1e-13)
    assert report[0, 0] == pytest.approx(expected.value, rel=1e-12)
