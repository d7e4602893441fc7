"""Lists as batches, and the comparison of kernels with their references."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.batch import Batch
from topnrank.losses.base import ListContext, evaluate_list
from topnrank.losses.ranks import smooth_ranks
from topnrank.losses.shaping import annealed_n
from topnrank.losses.steps import Ramp, ReLU
from topnrank.losses.table import compiled_lists
from topnrank.losses.truncated.reference import TruncatedMRR
from topnrank.rng import visit_keys


def batch_of(lists, sampled=0, weight=1.0, progress=1.0, history=0):
    """Lists of (scores, gains) as a batch and its flat scores; objectives do not use the items.

    The first `history` rows of each list belong to the history only, and the last `sampled` of what is left count as
    unobserved items of that weight, with gain 0. A short list may so have no own rows, or be no list at all.
    """
    offsets = np.concatenate([[0], np.cumsum([f.size for f, _ in lists])]).astype(np.int64)
    scores, gains = (np.concatenate([np.empty(0), *column]) for column in zip(*lists, strict=True))
    first = np.minimum(offsets[:-1] + history, offsets[1:])
    own = np.maximum(offsets[1:] - sampled, first)
    for n in range(len(lists)):
        gains[own[n] : offsets[n + 1]] = 0.0
    users, items = np.arange(len(lists), dtype=np.int64), np.zeros(scores.size, np.int32)
    keys, weights, counts = visit_keys(5, 3, users), np.ones(scores.size), np.ones(len(lists))
    for n in range(len(lists)):  # weights that differ, with the mean asked for
        drawn = weights[own[n] : offsets[n + 1]]
        drawn[:] = weight * (1.0 + 0.5 * np.linspace(-1.0, 1.0, drawn.size)) if drawn.size > 1 else weight
    no_residuals, recency_weights = np.empty((0, 1), np.float32), np.ones(scores.size, np.float32)
    flat = (items, gains, no_residuals, recency_weights)
    return Batch(users, offsets, first, own, *flat, keys, weights, counts, float(progress)), scores


def context_of(batch, n):
    """The reference's context of list n."""
    sampled = int(batch.offsets[n + 1] - batch.own[n])
    return ListContext(sampled, batch.weights[batch.own[n] : batch.offsets[n + 1]], int(batch.keys[n]), batch.progress)


def run_kernel(objective, batch, scores):
    """G and report of the kernel of an objective; rows that it does not write are NaN."""
    G, report = np.full((2, scores.size), np.nan), np.full((batch.users.size, 2), np.nan)
    compiled_lists(objective)(batch, scores, G, report)
    return G, report


def assert_lists_equal(objective, lists, tolerance, **layout):
    """Kernel and `objective` agree to `tolerance` of each list's largest gradient, and the kernel writes nothing else."""
    batch, scores = batch_of(lists, **layout)
    G, report = run_kernel(objective, batch, scores)
    expected, expected_report = np.full_like(G, np.nan), np.empty_like(report)
    allowed, allowed_value = np.zeros_like(G), np.zeros(len(lists))
    for n in range(len(lists)):
        rows = slice(batch.first[n], batch.offsets[n + 1])
        f, a, context = scores[rows], batch.gains[rows], context_of(batch, n)
        result = evaluate_list(objective, f, a, context)
        expected_report[n] = result.value, result.active
        expected[:, rows] = result.user, result.item
        if f.size:
            allowed_value[n] = tolerance * max(abs(result.value), np.abs(a).sum(), 1e-3)
            least = 1e-3 * budget_scale(objective, f, a, context) * max(np.abs(a).max(), 1.0)
            allowed[:, rows] = tolerance * np.maximum(np.abs(expected[:, rows]).max(axis=1), least)[:, None]
    assert_allclose(report[:, 1], expected_report[:, 1], rtol=0, err_msg=f"active items of {objective}")
    assert_within(allowed_value, report[:, 0], expected_report[:, 0], f"values of {objective}")
    assert_array_equal(np.isnan(G), np.isnan(expected), f"rows written by {objective}")
    assert_within(allowed, np.nan_to_num(G), np.nan_to_num(expected), f"gradients of {objective}")


def assert_within(allowed, got, wanted, what):
    """Each number within its own distance of what it should be."""
    wrong = ~(np.abs(got - wanted) <= allowed)
    assert not wrong.any(), f"{what}: {got[wrong][:9]}, should be {wanted[wrong][:9]}, at {np.argwhere(wrong)[:9]}"


def budget_scale(objective, f, a, context):
    """The budget's factor at these scores; it also scales up the rounding of a gradient that nearly cancels."""
    if not getattr(objective, "gradient_budget", 0.0):
        return 1.0
    plain = replace(objective, gradient_budget=0.0, squared_weight=0.0).evaluate(f, a, context)
    return objective.budget_scale(plain, a)


def near_a_cut(objective, lists, **layout):
    """Whether a smooth rank is within rounding of a cut, where kernel and reference may fall on different sides.

    The ranks of ReLU and ramp on the tests' lists with ties (quarters) are exact, so these may lie on it.
    """
    if not hasattr(objective, "step") or isinstance(objective.step, ReLU | Ramp):
        return False
    batch, scores = batch_of(lists, **layout)
    for lo, hi in zip(batch.offsets, batch.offsets[1:], strict=False):
        f, a = scores[lo:hi], batch.gains[lo:hi]
        R = smooth_ranks(objective.step, f, batch.weights[lo:hi]).R
        cuts = (objective.n, annealed_n(objective.n, f.size, objective.anneal_n, batch.progress))
        if isinstance(objective, TruncatedMRR) and (a > 0).any():
            whole = replace(objective, truncate=False, squared_weight=0.0).evaluate(f, a)
            R = np.append(R, -1.0 / whole.value - 1.0)
        if any(np.abs(R - cut).min() < 1e-6 for cut in cuts):
            return True
    return False
