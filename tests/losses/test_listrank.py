"""ListRank's cross entropy: the paper's formula in loops, its least value, its symmetries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.errors import ParameterError
from topnrank.losses.links import LINKS
from topnrank.losses.listrank.reference import TopOneCrossEntropy
from topnrank.models.listwise import ListRank
from topnrank.rng import stream
from topnrank.testing.losses import ObjectiveTests

OBJECTIVES = [
    TopOneCrossEntropy(link, per_item, scale) for link in LINKS for per_item, scale in [(True, 1), (False, 3)]
]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
PAPER = TopOneCrossEntropy(per_item=False)


class TestSigmoid(ObjectiveTests):
    objectives = (TopOneCrossEntropy(), TopOneCrossEntropy(per_item=False, scale=3))
    gains = "grades"
    only_differences = False

    @staticmethod
    def autograd_formula(np, objective, f, a, context):
        s = 1 / (1 + np.exp(-f)) if objective.link == "sigmoid" else f
        p_s, p_r = np.exp(s) / np.sum(np.exp(s)), np.exp(a) / np.sum(np.exp(a))
        return -objective.scale * (f.size if objective.per_item else 1) * np.sum(p_r * np.log(p_s))


class TestIdentity(TestSigmoid):
    objectives = (TopOneCrossEntropy("identity"), TopOneCrossEntropy("identity", per_item=False, scale=3))
    only_differences = True


def random_list(case: int, m: int = 9):
    """Scores, and grades of one to five stars divided by five."""
    draw = stream(case, "test list")
    return draw.normal(size=m), draw.integers(1, 6, size=m) / 5.0


def loss_in_loops(objective, scores, gains):
    """- sum_j P(r_j) ln P(g(f_j)), as printed, times the options' factors."""
    s = [1 / (1 + math.exp(-f)) for f in scores] if objective.link == "sigmoid" else list(scores)
    loss = 0.0
    for j in range(len(s)):
        target = math.exp(gains[j]) / sum(math.exp(a) for a in gains)
        loss -= target * math.log(math.exp(s[j]) / sum(math.exp(x) for x in s))
    return objective.scale * (len(s) if objective.per_item else 1) * loss


@every_objective
@pytest.mark.parametrize("case", range(3))
def test_the_value_is_the_papers_formula(objective, case):
    scores, gains = random_list(case)
    assert objective.evaluate(scores, gains).value == pytest.approx(loss_in_loops(objective, scores, gains), rel=1e-13)


def test_the_papers_gradient():
    """(p^s - p^r) g (1 - g), by numbers."""
    f, a = np.array([0.5, -1.0]), np.array([1.0, 0.2])
    g = 1 / (1 + np.exp(-f))
    p_s, p_r = np.exp(g) / np.exp(g).sum(), np.exp(a) / np.exp(a).sum()
    result = PAPER.evaluate(f, a)
    assert_allclose(result.user, (p_s - p_r) * g * (1 - g), rtol=1e-13)
    assert result.active == 2


@every_objective
def test_the_least_value_is_the_entropy_of_the_grades(objective):
    """Reached where the linked scores are the grades, up to a constant."""
    _, gains = random_list(5)
    shifted = gains - 0.1  # within (0, 1)
    best = np.log(shifted / (1 - shifted)) if objective.link == "sigmoid" else shifted
    result = objective.evaluate(best, gains)
    p = np.exp(gains) / np.exp(gains).sum()
    factor = objective.scale * (gains.size if objective.per_item else 1)
    assert result.value == pytest.approx(-factor * np.sum(p * np.log(p)), rel=1e-13)
    assert_allclose(result.user, 0.0, atol=1e-15 * factor)


@given(case=st.integers(0, 50), m=st.integers(1, 30), link=st.sampled_from(LINKS))
def test_no_value_is_below_the_entropy_of_the_grades(case, m, link):
    scores, gains = random_list(case, m)
    p = np.exp(gains) / np.exp(gains).sum()
    assert TopOneCrossEntropy(link, per_item=False).evaluate(scores, gains).value >= -np.sum(p * np.log(p)) - 1e-12


@given(case=st.integers(0, 50), m=st.integers(1, 30), link=st.sampled_from(LINKS))
def test_per_item_multiplies_by_the_length(case, m, link):
    scores, gains = random_list(case, m)
    once, per_item = (TopOneCrossEntropy(link, flag).evaluate(scores, gains) for flag in (False, True))
    assert per_item.value == pytest.approx(m * once.value, rel=1e-12)
    assert_allclose(per_item.user, m * once.user, rtol=1e-12, atol=1e-15)


@given(case=st.integers(0, 20), link=st.sampled_from(LINKS))
def test_only_differences_of_gains_matter(case, link):
    scores, gains = random_list(case)
    here, there = (TopOneCrossEntropy(link).evaluate(scores, a) for a in (gains, gains + 0.3))
    assert there.value == pytest.approx(here.value, rel=1e-12)
    assert_allclose(there.user, here.user, atol=1e-13)


@every_objective
def test_equal_grades_and_equal_scores_rest(objective):
    assert_allclose(objective.evaluate(np.full(7, 0.3), np.full(7, 0.4)).user, 0.0, atol=1e-15)


@every_objective
def test_a_single_item_feels_nothing(objective):
    result = objective.evaluate(np.array([3.0]), np.array([0.4]))
    assert result.value == 0.0
    assert_array_equal(result.user, 0.0)


def test_equal_grades_pull_the_scores_together():
    assert_array_equal(np.sign(PAPER.evaluate(np.array([1.0, 0.0, -1.0]), np.ones(3)).user)[[0, 2]], [1.0, -1.0])


def test_an_unknown_link_is_refused():
    with pytest.raises(ParameterError, match=r"did you mean 'sigmoid'\?"):
        TopOneCrossEntropy("sigmod")


def test_the_model_hands_its_settings_on():
    model = ListRank(link="identity", per_item=False, scale=2)
    model.check()
    assert model.objective() == TopOneCrossEntropy("identity", per_item=False, scale=2.0)
    assert model.default_feedback == "grades"


@pytest.mark.parametrize(
    ("name", "value"), [("link", "logit"), ("per_item", 1), ("scale", 0.0), ("scale", float("nan"))]
)
def test_the_model_refuses_bad_settings(name, value):
    with pytest.raises(ParameterError, match=name):
        ListRank(**{name: value}).check()
