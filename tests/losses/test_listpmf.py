"""The Plackett-Luce likelihood: draws one after another in loops, ties."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.errors import ParameterError
from topnrank.losses.base import ListContext
from topnrank.losses.links import LINKS
from topnrank.losses.listpmf.reference import TIES, PlackettLuce
from topnrank.models.listwise import ListPMF
from topnrank.rng import stream, uniforms
from topnrank.testing.losses import ObjectiveTests

OBJECTIVES = [PlackettLuce(ties, link, normalize) for ties in TIES for link in LINKS for normalize in (False, True)]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
VISIT = ListContext(key=12345)


class TestBreslow(ObjectiveTests):
    objectives = (PlackettLuce(), PlackettLuce(normalize=True))
    contexts = (VISIT,)

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        s = 1 / (1 + np.exp(-f)) if objective.link == "sigmoid" else f
        left = what_is_left(objective, a, context.key)
        total = sum(np.log(np.sum(np.exp(s[np.array(left[i])]))) - s[i] for i in range(f.size))
        return total / f.size if objective.normalize else total


class TestBreslowWithASigmoid(TestBreslow):
    objectives = (PlackettLuce(link="sigmoid"), PlackettLuce(link="sigmoid", normalize=True))
    only_differences = False


class TestShuffledAndFixed(TestBreslow):
    objectives = tuple(o for o in OBJECTIVES if o.ties != "breslow" and o.link == "identity")
    any_order = False


class TestShuffledAndFixedWithASigmoid(TestShuffledAndFixed):
    objectives = tuple(o for o in OBJECTIVES if o.ties != "breslow" and o.link == "sigmoid")
    only_differences = False


def random_list(case: int, m: int = 9):
    """Scores, and stars with ties, centered."""
    draw = stream(case, "test list")
    stars = draw.integers(1, 6, size=m).astype(np.float64)
    return draw.normal(size=m), stars - stars.mean()


def what_is_left(objective, gains, key):
    """B_i of each item as a list of positions, by the definitions of ties."""
    m = len(gains)
    if objective.ties == "breslow":
        return [[j for j in range(m) if gains[j] <= gains[i]] for i in range(m)]
    draws = uniforms(key, 0, m) if objective.ties == "shuffled" else np.zeros(m)
    order = sorted(range(m), key=lambda i: (-gains[i], draws[i], i))
    return [order[order.index(i) :] for i in range(m)]


def loss_in_loops(objective, scores, gains, key=VISIT.key):
    s = [1 / (1 + math.exp(-f)) for f in scores] if objective.link == "sigmoid" else list(scores)
    left = what_is_left(objective, gains, key)
    loss = -sum(math.log(math.exp(s[i]) / sum(math.exp(s[j]) for j in left[i])) for i in range(len(s)))
    return loss / len(s) if objective.normalize else loss


@every_objective
def test_the_value_is_the_likelihood_of_the_order(objective):
    for case in range(3):
        scores, gains = random_list(case)
        expected = loss_in_loops(objective, scores, gains)
        assert objective.evaluate(scores, gains, VISIT).value == pytest.approx(expected, rel=1e-12)


def test_the_value_of_three_items():
    f, a = np.array([0.2, -0.4, 1.0]), np.array([2.0, 3.0, 1.0])  # drawn: item 1, item 0, item 2
    e = np.exp(f)
    probability = e[1] / e.sum() * e[0] / (e[0] + e[2])
    assert PlackettLuce().evaluate(f, a).value == pytest.approx(-np.log(probability), rel=1e-14)


@pytest.mark.parametrize("ties", TIES)
def test_the_probabilities_of_all_orders_add_up_to_one(ties):
    scores = random_list(1, 5)[0]
    orders = itertools.permutations(range(5))
    values = [PlackettLuce(ties).evaluate(scores, np.array(order, np.float64)).value for order in orders]
    assert np.exp(-np.array(values)).sum() == pytest.approx(1.0, rel=1e-12)


@given(case=st.integers(0, 50), ties=st.sampled_from(TIES))
def test_only_the_order_of_the_gains_matters(case, ties):
    scores, gains = random_list(case)
    here, there = (PlackettLuce(ties).evaluate(scores, a, VISIT) for a in (gains, np.exp(gains)))
    assert there.value == here.value
    assert_array_equal(there.user, here.user)


@given(case=st.integers(0, 50), m=st.integers(1, 20))
def test_without_ties_all_rules_agree(case, m):
    draw = stream(case, "test list")
    scores, gains = draw.normal(size=m), draw.permutation(m).astype(np.float64)
    results = [PlackettLuce(ties).evaluate(scores, gains, VISIT) for ties in TIES]
    assert results[0].value == results[1].value == results[2].value
    assert_array_equal(results[0].user, results[1].user)
    assert_array_equal(results[0].user, results[2].user)


def test_a_shuffle_belongs_to_its_visit():
    scores, gains = random_list(3, 12)
    values = [PlackettLuce("shuffled").evaluate(scores, gains, ListContext(key=key)).value for key in (1, 1, 2, 3)]
    assert values[0] == values[1]
    assert len(set(values)) == 3


def test_shuffles_prefer_no_order_of_equal_items():
    """The mean gradient over many visits is that of the mean over all orders of the ties."""
    scores, gains = np.array([0.3, -0.2, 0.9, 0.1]), np.array([1.0, 1.0, 1.0, 0.0])
    frozen = PlackettLuce("fixed")
    expected = np.zeros(4)
    for order in itertools.permutations(range(3)):
        places = [*order, 3]
        expected[places] += frozen.evaluate(scores[places], gains[places]).user / 6
    drawn = [PlackettLuce("shuffled").evaluate(scores, gains, ListContext(key=key)).user for key in range(4000)]
    assert_allclose(np.mean(drawn, axis=0), expected, atol=0.03)


def test_fixed_ties_stand_in_the_order_of_the_list():
    result = PlackettLuce("fixed").evaluate(np.zeros(3), np.ones(3))
    assert_allclose(result.user, [1 / 3 - 1, 1 / 3 + 1 / 2 - 1, 1 / 3 + 1 / 2 + 1 - 1], rtol=1e-14)


@every_objective
def test_no_loss_is_negative_and_no_force_exceeds_the_length(objective):
    for scores in (np.array([1e6, -1e6, 0.0, 1e6, 1e-6, -3.0]), np.full(6, 0.1)):
        for gains in (np.zeros(6), np.ones(6), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 5.0])):
            result = objective.evaluate(scores, gains, VISIT)
            assert result.value >= 0.0
            assert np.abs(result.user).max() <= 6.0


@every_objective
def test_a_single_item_feels_nothing(objective):
    result = objective.evaluate(np.array([3.0]), np.array([2.0]), VISIT)
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


def test_equal_gains_and_equal_scores_rest_under_breslow():
    assert_allclose(PlackettLuce().evaluate(np.full(7, 0.3), np.full(7, 2.0)).user, 0.0, atol=1e-14)


@pytest.mark.parametrize(("name", "value"), [("ties", "breslaw"), ("link", "identety")])
def test_unknown_names_are_refused(name, value):
    with pytest.raises(ParameterError, match="did you mean"):
        PlackettLuce(**{name: value})


def test_the_model_hands_its_settings_on():
    model = ListPMF(ties="shuffled", link="sigmoid", normalize=True)
    model.check()
    assert model.objective() == PlackettLuce("shuffled", "sigmoid", normalize=True)


@pytest.mark.parametrize(("name", "value"), [("link", "logit"), ("ties", "random"), ("normalize", 1)])
def test_the_model_refuses_bad_settings(name, value):
    with pytest.raises(ParameterError, match=name):
        ListPMF(**{name: value}).check()
