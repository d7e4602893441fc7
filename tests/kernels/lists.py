"""Lists as batches, and how kernels are held against their references."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from topnrank.kernels.context import Batch
from topnrank.objectives import Ramp, ReLU, TruncatedMRR
from topnrank.objectives.base import Occasion
from topnrank.objectives.ranks import smooth_ranks
from topnrank.objectives.shaping import annealed
from topnrank.rng import visit_keys


def batch_of(lists, sampled=0, weight=1.0, progress=1.0):
    """Lists of (scores, gains) as a batch and its flat scores; items do not matter to objectives.

    The last `sampled` rows of each list (but never its first) count as unobserved items of that weight, with gain 0.
    """
    offsets = np.concatenate([[0], np.cumsum([f.size for f, _ in lists])]).astype(np.int64)
    flat = int(offsets[-1])
    gains = np.concatenate([a for _, a in lists]).astype(np.float64) if flat else np.empty(0)
    users, items = np.arange(len(lists), dtype=np.int64), np.zeros(flat, np.int32)
    own = np.minimum(np.maximum(offsets[1:] - sampled, offsets[:-1] + 1), offsets[1:])
    for n in range(len(lists)):
        gains[own[n] : offsets[n + 1]] = 0.0
    keys, weights = visit_keys(5, 3, users), np.full(len(lists), float(weight))
    no_residuals = np.empty(0, np.float32)
    batch = Batch(users, offsets, offsets[:-1].copy(), own, items, gains, no_residuals, keys, weights, float(progress))
    return batch, np.concatenate([f for f, _ in lists]) if flat else np.empty(0)


def occasion_of(batch, n):
    """What the reference is told about list n."""
    sampled = int(batch.offsets[n + 1] - batch.own[n])
    return Occasion(sampled, float(batch.weights[n]), int(batch.keys[n]), batch.progress)


def assert_lists_equal(objective, lists, run, tolerance, **occasion):
    """`run(batch, scores, G, report)` says what `objective` says, to `tolerance` of the largest gradient of the list."""
    batch, scores = batch_of(lists, **occasion)
    G, report = np.full((2, scores.size), np.nan), np.full((len(lists), 2), np.nan)
    run(batch, scores, G, report)
    for n in range(len(lists)):
        rows = slice(batch.offsets[n], batch.offsets[n + 1])
        f, a = scores[rows], batch.gains[rows]
        told = occasion_of(batch, n)
        expected = objective.evaluate(f, a, told)
        # What rounding and the sigmoid's approximation leave in a gradient that nearly cancels, the budget scales up.
        blown_up = objective.frozen_scale(f, a, told) if hasattr(objective, "frozen_scale") else 1.0
        for got, wanted in zip(G[:, rows], (expected.user, expected.item), strict=True):
            scale = max(np.abs(wanted).max(), 1e-3 * blown_up * np.abs(a).max())
            assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)
        assert report[n, 0] == pytest.approx(expected.value, rel=tolerance, abs=tolerance * max(np.abs(a).sum(), 1e-3))
        assert report[n, 1] == expected.active


def near_a_cut(objective, lists, progress=1.0):
    """Whether a smooth rank is within rounding of a cut, where kernel and reference may fall on different sides.

    The ranks of ReLU and ramp on the tests' lists with ties (quarters) are exact, so these may lie on it.
    """
    if isinstance(objective.step, ReLU | Ramp):
        return False
    for f, a in lists:
        R = smooth_ranks(objective.step, f, np.ones_like(f)).R
        cuts = (objective.n, annealed(objective.n, f.size, objective.anneal, progress))
        if isinstance(objective, TruncatedMRR) and (a > 0).any():
            whole = replace(objective, truncate=False, anchor=0.0).evaluate(f, a)
            R = np.append(R, -1.0 / whole.value - 1.0)
        if any(np.abs(R - cut).min() < 1e-6 for cut in cuts):
            return True
    return False
