"""BPR: the loss of its drawn pairs, and what the draws mean on average."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from support.small_lists import RATED, UNOBSERVED, every_context, list_of_levels, pair_tests
from topnrank.losses.base import ListContext
from topnrank.losses.pairwise.reference import STRIDE, PairwiseLogistic
from topnrank.rng import draws_below, visit_keys

OBJECTIVES = (PairwiseLogistic(), PairwiseLogistic(tries=2), PairwiseLogistic(pairs=3))
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


def pairs_by_hand(objective, gains, context):
    """The (winner, loser) pairs of a visit, draw by draw."""
    own, found = gains.size - context.sampled, []

    def draw(row, t, n):
        return int(draws_below(context.key, row * STRIDE + t, n)[0])

    for i in range(own):
        for p in range(objective.pairs):
            if context.sampled:
                if gains[i] > 0:
                    found.append((i, own + draw(i, p, context.sampled)))
                continue
            for t in range(objective.tries):
                others = [j for j in range(own) if j != i]
                j = others[draw(i, p * objective.tries + t, own - 1)]
                if gains[j] != gains[i]:
                    found.append((i, j) if gains[i] > gains[j] else (j, i))
                    break
    return found


def formula(np, objective, f, a, context):
    return -sum(np.log(1.0 / (1.0 + np.exp(f[j] - f[i]))) for i, j in pairs_by_hand(objective, a, context))


TestRatedPairs, TestPairsWithUnobservedItems = pair_tests(OBJECTIVES, formula)


@every_context
@every_objective
def test_the_pairs_are_those_drawn_by_hand(objective, context):
    for case in range(5):
        _, gains = list_of_levels(case, context)
        assert_array_equal(objective.draw_pairs(gains, context), pairs_by_hand(objective, gains, context))


def means_and_errors(objective, scores, gains, sampled):
    """Mean of loss and gradient over many visits, and the standard errors."""
    visits = []
    for key in visit_keys(3, 0, np.arange(2000)):
        result = objective.evaluate(scores, gains, ListContext(sampled=sampled, key=int(key)))
        visits.append([result.value, *result.user])
    return np.mean(visits, axis=0), np.std(visits, axis=0) / np.sqrt(len(visits))


def sum_over(scores, pairs):
    """Loss and gradient of the sum over given pairs."""
    value, G = 0.0, np.zeros(scores.size)
    for i, j in pairs:
        value += np.log(1 + np.exp(scores[j] - scores[i]))
        force = 1 / (1 + np.exp(scores[i] - scores[j]))
        G[i] -= force
        G[j] += force
    return np.array([value, *G])


def test_on_average_rated_pairs_are_all_pairs_but_for_a_factor():
    scores, m = list_of_levels(0, m=5)[0], 5
    gains = np.array([0.5, -1.0, 3.0, 2.0, 0.0])
    mean, error = means_and_errors(PairwiseLogistic(), scores, gains, 0)
    whole = sum_over(scores, [(i, j) for i in range(m) for j in range(m) if gains[i] > gains[j]])
    assert np.all(np.abs(mean - 2 / (m - 1) * whole) < 4 * error)


def test_on_average_pairs_with_unobserved_items_are_all_such_pairs_but_for_a_factor():
    scores = list_of_levels(1, m=6)[0]
    gains = np.array([1.0, -1.0, 2.0, 0.0, 0.0, 0.0])
    mean, error = means_and_errors(PairwiseLogistic(pairs=2), scores, gains, 3)
    whole = sum_over(scores, [(i, j) for i in (0, 2) for j in (3, 4, 5)])
    assert np.all(np.abs(mean - 2 / 3 * whole) <= 4 * error)


def test_a_row_without_unequal_partner_gives_up_after_its_tries():
    """One unequal row among forty: few of the others find it in two tries, and none is paired with an equal one."""
    gains = np.zeros(40)
    gains[11] = 1.0
    pairs = PairwiseLogistic(tries=2).draw_pairs(gains, RATED)
    assert 1 <= len(pairs) < 20
    assert_array_equal(pairs[:, 0], 11)
    assert len(PairwiseLogistic(tries=1000).draw_pairs(gains, RATED)) == 40


def test_another_key_draws_other_pairs():
    gains = np.arange(30.0)
    first, again, other = (PairwiseLogistic().draw_pairs(gains, ListContext(key=key)) for key in (1, 1, 2))
    assert_array_equal(first, again)
    assert np.any(first != other)


@given(case=st.integers(0, 50))
def test_only_winners_rise_against_unobserved_items(case):
    scores, gains = list_of_levels(case, UNOBSERVED)
    G = PairwiseLogistic().evaluate(scores, gains, UNOBSERVED).user
    assert np.all(G[gains > 0] < 0)
    assert np.all(G[-4:] >= 0)
    assert_array_equal(G[:-4][gains[:-4] <= 0], 0.0)


def test_a_pair_far_in_the_wrong_order_costs_its_gap():
    result = PairwiseLogistic().evaluate(np.array([-1e6, 1e6]), np.array([1.0, 0.0]))
    assert result.value == pytest.approx(2 * 2e6)  # each of the two rows draws the other
    assert_array_equal(result.user, [-2.0, 2.0])
