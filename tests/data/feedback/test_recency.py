"""Recency: weights halve with age, ages are counted from the training rows."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank import (
    ConversionRate,
    DataError,
    EventWeights,
    Interactions,
    ItemCount,
    ParameterError,
    Recency,
    Threshold,
    Unary,
)
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict, fitted_feedback, remembered
from topnrank.data.feedback.policies import Feedback
from topnrank.data.feedback.recency import timeless

DAY = 86_400
EVENTS = Interactions.from_arrays(
    [1, 1, 1, 2, 2],
    ["a", "a", "b", "a", "b"],
    types=["view", "buy", "view", "view", "cart"],
    timestamps=[0, 10 * DAY, 20 * DAY, 30 * DAY, 40 * DAY],
)
WEIGHTS = EventWeights({"view": 0.1, "cart": 0.5, "buy": 1.0})


def test_a_weight_halves_with_each_half_life():
    # of (1, a) the purchase wins, with its own age of 30 days
    faded = Recency(WEIGHTS, half_life_days=10)(EVENTS)
    assert faded.weights.tolist() == pytest.approx([1.0 / 8, 0.1 / 4, 0.1 / 2, 0.5])
    assert faded.types is None
    assert Recency(WEIGHTS, 1e9)(EVENTS).weights.tolist() == pytest.approx(WEIGHTS(EVENTS).weights.tolist())


def test_the_sign_stays_however_old_a_row_is():
    old = Interactions.from_arrays([1, 1, 1], [1, 2, 3], ratings=[5, 1, 4], timestamps=[0, 0, 10**12])
    assert np.sign(Recency(Threshold(4), 1)(old).weights).tolist() == [1, -1, 1]


def test_ages_are_counted_from_the_training_rows():
    policy = Recency(WEIGHTS, 10).fitted_to(EVENTS)
    assert policy == Recency(WEIGHTS, 10, latest=40 * DAY)
    early = EVENTS.take(EVENTS.timestamps < 15 * DAY)
    assert policy(early).weights.tolist() == pytest.approx([1 / 8])
    later = Interactions.from_arrays([1], ["a"], types=["buy"], timestamps=[90 * DAY])
    assert policy(later).weights.tolist() == [1.0]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.floats(0.5, 500))
def test_it_is_the_formula(times, days):
    data = Interactions.from_arrays(np.arange(len(times)), np.zeros(len(times), int), timestamps=times)
    plain = [2.0 ** -((max(times) - t) / (days * 86_400)) for t in times]
    np.testing.assert_allclose(Recency(Unary(), days)(data).weights, plain, rtol=1e-5, atol=1e-37)


def test_what_others_take_from_the_rows_is_fitted_too():
    nested = ItemCount(Recency(ConversionRate("buy"), 10), 0.5)
    fitted = fitted_feedback(nested, EVENTS)
    rates = ConversionRate("buy").event_weights(EVENTS)
    assert fitted == ItemCount(Recency(rates, 10, latest=40 * DAY), 0.5)
    assert fitted(EVENTS).fingerprint() == nested(EVENTS).fingerprint()
    assert fitted_feedback(Threshold(3), EVENTS) == Threshold(3)


def test_without_times_nothing_ages():
    assert timeless(ItemCount(Recency(Threshold(3), 10), 0.5)) == ItemCount(Threshold(3), 0.5)
    assert timeless(Threshold(3)) == Threshold(3)


def test_json_and_back():
    policy = ItemCount(Recency(WEIGHTS, 7, latest=123), 0.5)
    assert isinstance(policy.base, Feedback)
    assert feedback_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert remembered(policy) == policy.to_dict()

    class Mine:
        def __call__(self, data):
            return data

        def to_dict(self):
            return {"kind": "mine"}

    assert remembered(Mine()) is None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Recency(Unary(), 0), ParameterError, "Recency.half_life_days must be a finite number above 0, got 0"),
        (lambda: Recency(Unary(), float("inf")), ParameterError, "Recency.half_life_days must be a finite number"),
        (lambda: Recency("unary"), ParameterError, "Recency.base must be a feedback policy"),
        (lambda: Recency(Unary(), 3, "now"), ParameterError, "Recency.latest must be a finite number"),
        (lambda: feedback_from("recency", EVENTS), ParameterError, "feedback must be one of"),
        (
            lambda: Recency(Unary())(Interactions.from_arrays([1], [1])),
            DataError,
            "Recency needs timestamps and the data",
        ),
        (lambda: Recency(Unary())(EVENTS.take(np.zeros(5, bool))), DataError, "Recency needs rows"),
        (lambda: Recency(Threshold())(EVENTS), DataError, "Threshold needs ratings"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
