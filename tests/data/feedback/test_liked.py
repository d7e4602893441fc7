"""What is liked, on every scale, and that a change of unit changes nothing."""

import numpy as np
import pytest

from topnrank.data.feedback.liked import LikedRule, likes_feedback, remembered_rule, rule_for, rule_of
from topnrank.data.feedback.policies import Amounts, ItemCount, Threshold, Unary, WeightColumn
from topnrank.data.interactions import Interactions
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError, ParameterError

SCALES = {
    "1 to 5": (np.arange(1, 6), 4),
    "half stars": (np.arange(0.5, 5.1, 0.5), 4),
    "0 to 5": (np.arange(6), 4),
    "0 to 5 in halves": (np.arange(0, 5.1, 0.5), 4),
    "1 to 10": (np.arange(1, 11), 8),
    "0 to 10": (np.arange(11), 8),
    "0 to 10 in halves": (np.arange(0, 10.1, 0.5), 8),
    "0 to 100": (np.arange(101), 80),
    "1 to 100": (np.arange(1, 101), 80),
    "thumbs": (np.arange(2), 1),
    "-1, 0, 1": (np.arange(-1, 2), 1),
    "1 to 4": (np.arange(1, 5), 4),
    "1 to 7": (np.arange(1, 8), 6),
    "fifths": (np.arange(1, 6) / 5, 0.8),
}
FACTORS, SHIFTS = (0.1, 0.2, 0.5, 2, 20, 3.7), (-7, -3, -1, -0.5, 0.1, 5, 100)


def rule(values):
    return rule_of(RatingCounts.of(np.asarray(values, np.float32)))


def rated(values, **columns):
    n = len(values)
    return Interactions.from_arrays(np.zeros(n, int), np.arange(n), ratings=values, **columns)


@pytest.mark.parametrize("name", SCALES)
def test_liked_is_the_upper_fifth_of_the_scale(name):
    values, lowest = SCALES[name]
    found = rule(values)
    assert found.at == lowest
    assert found.flags(values.astype(np.float32)).tolist() == (values >= lowest).tolist()


@pytest.mark.parametrize("name", SCALES)
def test_the_unit_does_not_change_what_is_liked(name):
    values = SCALES[name][0]
    liked = rule(values).flags(values.astype(np.float32)).tolist()
    for other in [values * factor for factor in FACTORS] + [values + shift for shift in SHIFTS]:
        if name == "1 to 4" and other.max() == 5:
            continue  # 2 to 5 is what people make of 1 to 5
        written = other.astype(np.float32)
        assert rule(written).flags(written).tolist() == liked


def test_the_lower_end_of_a_usual_scale_may_be_missing():
    assert rule([3, 4, 5]).at == 4
    assert rule([6, 8, 10]).at == 8
    assert rule([2, 4, 5]).at == 4
    assert rule([1, 2, 3, 4, 4.5, 5]).at == 4


def test_values_without_steps_have_a_rule():
    values = np.linspace(0, 1, 5001) ** 2
    assert rule(values).at == pytest.approx(0.8, abs=1e-3)


def test_what_float32_makes_of_a_tenth_does_not_matter():
    ratings = rated(np.float64([1, 2, 3, 4, 5]) / 10 * 7)
    assert rule_of(ratings.rating_counts).at == 2.8
    assert Threshold(2.8)(ratings).weights.tolist() == [-1, -1, -1, 1, 1]
    assert Threshold(0.7)(rated([0.6, 0.7])).weights.tolist() == [-1, 1]


def test_the_rule_says_where_it_comes_from():
    assert str(rule(range(1, 11))) == "rating >= 8, four fifths of the scale 1 to 10"
    assert str(rule([0, 1])) == "rating >= 1, the top of the scale 0 to 1"
    assert str(rule([5, 5])) == "rating >= 5, the only rating there is"
    assert str(LikedRule(3.5)) == "rating >= 3.5"


@pytest.mark.parametrize(
    "amounts",
    [np.random.default_rng(0).lognormal(2, 1.5, 9000), np.random.default_rng(0).zipf(2, 9000)],
    ids=["hours", "counts"],
)
def test_amounts_have_no_scale_and_all_are_liked(amounts):
    found = rule(amounts)
    assert found.at is None
    assert str(found).startswith("rating > 0, as amounts from ")
    assert found.flags(np.float32([0, 0.01, 5000])).tolist() == [False, True, True]
    assert likes_feedback(None, rated(amounts)) == Amounts()


def test_no_ratings_no_rule():
    assert rule_for("auto", None, Interactions.from_arrays([1, 2], [1, 2]).rating_counts) is None


def test_weights_that_are_counts_are_likes():
    hours = Interactions.from_arrays(np.zeros(20, int), np.arange(20), weights=np.arange(20.0) ** 2)
    assert likes_feedback(None, hours) == Amounts()
    assert likes_feedback(WeightColumn(), hours) == WeightColumn()
    thought = Interactions.from_arrays([0, 0, 0], [0, 1, 2], weights=[1, 0.1, 3])
    assert likes_feedback(None, thought) == WeightColumn()
    shares = Interactions.from_arrays(np.zeros(20, int), np.arange(20), weights=0.5 ** np.arange(20))
    assert likes_feedback(None, shares) == WeightColumn()


def test_amounts_are_signs():
    assert Amounts()(rated([0, 3, 5000])).weights.tolist() == [0, 1, 1]
    assert Amounts()(rated([0, 3])).ratings is None
    weighted = Interactions.from_arrays([0, 0], [0, 1], weights=[-2, 700])
    assert Amounts()(weighted).weights.tolist() == [-1, 1]
    with pytest.raises(DataError, match="Amounts needs ratings or weights"):
        Amounts()(Interactions.from_arrays([0], [0]))


def test_a_model_remembers_the_threshold_it_was_given():
    counts = RatingCounts.of(np.float32([1, 2, 3, 4, 5]))
    assert remembered_rule(Unary(), counts) == rule_of(counts)
    assert remembered_rule(Threshold(4), counts) == rule_of(counts)
    assert remembered_rule(ItemCount(Threshold(3)), counts) == LikedRule(3)
    assert remembered_rule(Threshold(3), None) is None


def test_an_argument_relevant_is_read():
    counts, known = RatingCounts.of(np.float32([1, 10])), LikedRule(7)
    assert rule_for("auto", known, counts) == known
    assert rule_for("auto", None, counts) == rule_of(counts)
    assert rule_for("auto", None, None) is None
    assert rule_for(3, known, counts) == LikedRule(3)
    assert rule_for(None, known, counts) is None
    for wrong in ("x", True, [3]):
        with pytest.raises(ParameterError, match="relevant must be 'auto', a rating or None"):
            rule_for(wrong, None, counts)
    with pytest.raises(ParameterError, match="finite"):
        rule_for(float("nan"), None, counts)


def test_counts_of_parts_make_those_of_the_whole():
    ratings = np.float32([1, 2, 2, 3, 5, 5, 5])
    joined = RatingCounts.joined([RatingCounts.of(ratings[:3]), RatingCounts.of(ratings[3:])])
    whole = RatingCounts.of(ratings)
    assert joined.values.tolist() == whole.values.tolist()
    assert joined.counts.tolist() == whole.counts.tolist()
    assert joined.unit == whole.unit == pytest.approx(np.std(ratings) / 1.12)
