"""Ratings as grades."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from topnrank.data import Grades, Relevance
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

RATED = Interactions.from_arrays([1, 1, 1, 2], [1, 2, 3, 1], ratings=[5, 4.5, 0.5, 2])
every_policy = pytest.mark.parametrize("policy", [Grades(), Relevance()], ids=repr)


def weights(policy, data):
    return policy(data).weights


def test_grades_are_ratings_divided_by_the_largest():
    assert_allclose(weights(Grades(), RATED), [1.0, 0.9, 0.1, 0.4], rtol=1e-6)


def test_relevance_is_the_probability_that_a_rating_satisfies():
    expected = (2.0 ** np.array([5, 4.5, 0.5, 2]) - 1) / 2.0**5
    assert_allclose(weights(Relevance(), RATED), expected, rtol=1e-6)


def test_relevance_is_a_probability_on_any_scale():
    ratings = [-3, 0, 1, 50, 99, 100]
    got = weights(Relevance(), Interactions.from_arrays([1] * 6, range(6), ratings=ratings))
    assert got.min() == 0.0
    assert got.max() < 1.0
    assert np.all(np.diff(got[1:]) > 0)


@every_policy
def test_the_top_of_the_scale_is_that_of_the_training_rows(policy):
    fitted = policy.fitted_to(RATED)
    assert fitted.maximum == 5.0
    later = Interactions.from_arrays([1], [1], ratings=[2])
    assert weights(fitted, later)[0] == weights(policy, RATED)[3]
    assert weights(policy, later)[0] != weights(fitted, later)[0]
    assert fitted.fitted_to(later) is fitted


@every_policy
def test_without_ratings_the_weights_are_the_grades(policy):
    data = Interactions.from_arrays([1, 1], [1, 2], weights=[2.0, 1.0])
    same = Interactions.from_arrays([1, 1], [1, 2], ratings=[2.0, 1.0])
    assert_allclose(weights(policy, data), weights(policy, same))


@every_policy
def test_policies_have_names_and_come_back_from_files(policy):
    assert feedback_from(policy.kind, RATED) == policy
    for one in (policy, policy.fitted_to(RATED)):
        assert feedback_from_dict(json.loads(json.dumps(one.to_dict()))) == one


@every_policy
def test_a_scale_without_a_top_is_refused(policy):
    with pytest.raises(DataError, match="the largest rating or weight is 0"):
        policy(Interactions.from_arrays([1, 1], [1, 2], ratings=[0, -1]))
    with pytest.raises(ParameterError, match=r"maximum must be a finite number above 0, got 0"):
        type(policy)(maximum=0)
    with pytest.raises(ParameterError, match="maximum must be a finite number"):
        type(policy)(maximum=np.inf)
