"""WARP: the hinge on the first violator, weighted by the rank its rarity suggests."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from support.small_lists import RATED, pair_tests
from topnrank.losses.base import ListContext
from topnrank.losses.pairwise.reference import STRIDE, WarpHinge
from topnrank.rng import draws_below, visit_keys

OBJECTIVES = (WarpHinge(), WarpHinge(tries=3), WarpHinge(margin=0.2))


def violators_by_hand(objective, scores, gains, context):
    """(positive, violator, Phi) of a visit, draw by draw."""
    own, found = gains.size - context.sampled, []
    for i in range(own):
        lower = [j for j in range(own) if gains[j] < gains[i]]
        unobserved = round(context.weight * context.sampled) if gains[i] > 0 else 0
        J = unobserved if context.sampled else len(lower)
        T = 0
        for t in range(objective.tries if J else 0):
            j = int(draws_below(context.key, i * STRIDE + t, context.sampled or own)[0])
            if context.sampled:
                j += own
            elif j not in lower:
                continue
            T += 1
            if scores[j] > scores[i] - objective.margin:
                found.append((i, j, np.log(1 + max(np.floor(J / T), 1))))
                break
    return found


def formula(np, objective, f, a, context):
    """Phi is constant: no score of the lists crosses a margin within the step of a difference quotient."""
    found = violators_by_hand(objective, getattr(f, "_value", f), a, context)
    return sum(phi * np.maximum(0.0, objective.margin - f[i] + f[j]) for i, j, phi in found)


TestRatedPairs, TestAgainstUnobservedItems = pair_tests(OBJECTIVES, formula)


def test_a_positive_below_all_candidates_has_the_full_rank():
    scores, gains = np.array([-5.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.0, 0.0, 0.0])
    result = WarpHinge().evaluate(scores, gains, ListContext(sampled=3, weight=100.0))
    assert result.user[0] == -np.log(301)
    assert result.user[1:].sum() == pytest.approx(np.log(301))
    rated = WarpHinge().evaluate(scores, gains)
    assert rated.user[0] == -np.log(4)


def test_a_positive_above_all_margins_feels_nothing():
    scores, gains = np.array([3.1, 1.0, 2.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    for sampled in (0, 3):
        result = WarpHinge().evaluate(scores, gains, ListContext(sampled=sampled))
        assert result.value == 0.0
        assert_array_equal(result.user, 0.0)


def test_a_candidate_exactly_at_the_margin_is_no_violator():
    assert WarpHinge().evaluate(np.array([1.0, 0.0]), np.array([1.0, 0.0])).value == 0.0
    assert WarpHinge().evaluate(np.array([1.0, 0.001]), np.array([1.0, 0.0])).value > 0.0


def test_a_violator_found_after_more_draws_than_candidates_has_rank_one():
    """Two candidates, one of them a violator that some visits draw third or later."""
    scores, gains = np.array([2.0, 0.0, 1.5]), np.array([1.0, 0.0, 0.0])
    weights = set()
    for key in range(200):
        G = WarpHinge().evaluate(scores, gains, ListContext(key=key)).user
        assert G[1] == 0.0
        weights.add(round(float(G[2]), 12))
    assert weights == {round(np.log(2), 12), round(np.log(3), 12)}


def test_draws_that_are_no_candidates_do_not_count():
    """Of 21 rows one is a candidate and it violates: T is 1 whenever it is found, and seldom in three tries."""
    scores, gains = np.zeros(21), np.ones(21)
    gains[5] = 0.0
    G = WarpHinge(tries=3).evaluate(scores, gains, RATED).user
    rose = np.delete(-G, 5)
    assert set(rose.tolist()) == {0.0, np.log(2)}
    assert 0 < (rose > 0).sum() < 10


def test_the_rank_estimate_follows_the_waiting_time_for_a_violator():
    """A fifth of the candidates violates: P(T) = 0.2 * 0.8^(T-1), and 50 // T is about twice the true 10 on average."""
    scores = np.concatenate([[2.0], np.zeros(40), np.full(10, 1.5)])
    gains = np.concatenate([[1.0], np.zeros(50)])
    ranks = []
    for key in visit_keys(0, 0, np.arange(2000)):
        _, phi = WarpHinge(tries=200).violator(0, scores, gains, ListContext(sampled=50, key=int(key)))
        ranks.append(np.expm1(phi))
    T = np.arange(1, 200)
    expected = float(np.sum(0.2 * 0.8 ** (T - 1) * np.maximum(50 // T, 1)))
    assert 19 < expected < 20
    assert abs(np.mean(ranks) - expected) < 4 * np.std(ranks) / np.sqrt(len(ranks))


def test_the_weight_is_within_a_constant_of_the_harmonic_sum():
    """What the docstring says of Phi(rank) = ln(1 + rank)."""
    ranks = np.arange(1, 100_001)
    short = np.cumsum(1.0 / ranks) - np.log1p(ranks)
    assert short.min() > 0.0
    assert short.max() < 0.58
