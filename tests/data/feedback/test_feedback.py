import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank import (
    Centered,
    ConversionRate,
    EventWeights,
    Interactions,
    ItemCount,
    Threshold,
    Unary,
    WeightColumn,
)
from topnrank.data import Feedback
from topnrank.data.feedback.by_name import feedback_from, feedback_from_dict, fitted_feedback
from topnrank.errors import DataError, ParameterError

RATED = Interactions.from_arrays([1, 1, 1, 2], [1, 2, 3, 1], ratings=[5, 4, 3, 2])
EVENTS = Interactions.from_arrays(
    [1, 1, 1, 2, 2], ["a", "a", "b", "a", "b"], types=["view", "buy", "view", "view", "cart"]
)
PLAIN_CONTEXT = Interactions.from_arrays([1, 2], [3, 4])
COUNTED = Interactions.from_arrays([1, 2], [3, 4], weights=[5, -2])
WEIGHTS = {"buy": 1.0, "cart": 0.5, "dislike": -2.0, "view": 0.25}


def test_threshold_is_plus_and_minus_one():
    assert Threshold(4)(RATED).weights.tolist() == [1, 1, -1, -1]
    assert Threshold(2)(RATED).weights.tolist() == [1, 1, 1, 1]
    assert Threshold()(RATED).ratings.tolist() == RATED.ratings.tolist()


def test_centered_subtracts_the_users_mean():
    assert Centered(1)(RATED).weights.tolist() == [1, 0, -1, 0]
    without_user_2 = RATED.take(RATED.user_index == 0)
    assert Centered(1)(without_user_2).weights.tolist() == [1, 0, -1]


def test_centered_is_in_units_of_the_scale():
    unit = np.std([5, 4, 3, 2]) / 1.12
    assert Centered()(RATED).weights.tolist() == pytest.approx([1 / unit, 0, -1 / unit, 0])
    assert fitted_feedback(Centered(), RATED).unit == pytest.approx(unit)
    for factor, shift in ((0.2, 0), (20, 0), (1, -7)):
        other = Interactions.from_arrays([1, 1, 1, 2], [1, 2, 3, 1], ratings=factor * np.array([5, 4, 3, 2.0]) + shift)
        assert Centered()(other).weights == pytest.approx(Centered()(RATED).weights, abs=1e-6)
    equal = Interactions.from_arrays([1, 1], [1, 2], ratings=[3, 3])
    assert Centered()(equal).weights.tolist() == [0, 0]


def test_item_count_scales_the_base():
    assert ItemCount()(RATED).weights.tolist() == [3, 3, -3, -1]
    assert ItemCount(Centered(1), power=-1)(RATED).weights.tolist() == pytest.approx([1 / 3, 0, -1 / 3, 0])
    with pytest.raises(DataError, match="weights must be finite numbers, got inf"):
        ItemCount(power=500)(RATED)


def test_conversion_rate_counts_pairs_with_the_target():
    # views: (1, a) was bought, (1, b) and (2, a) were not
    rates = ConversionRate("buy").event_weights(EVENTS)
    assert rates.weights == {"buy": 1, "cart": 0, "view": pytest.approx(1 / 3)}
    assert ConversionRate("buy")(EVENTS).weights.tolist() == pytest.approx([1, 1 / 3, 1 / 3, 0])
    assert rates(EVENTS).fingerprint() == ConversionRate("buy")(EVENTS).fingerprint()


def test_unary_and_weight_column():
    assert Unary()(EVENTS).weights.tolist() == [1, 1, 1, 1]
    assert WeightColumn()(COUNTED).weights.tolist() == [5, -2]


def test_rating_policies_take_the_latest_type_else_the_largest_rating():
    columns = {"types": ["view", "buy"], "ratings": [5, 1]}
    timed = Interactions.from_arrays([1, 1], [2, 2], timestamps=[1, 2], **columns)
    assert Threshold()(timed).weights.tolist() == [-1]
    untimed = Interactions.from_arrays([1, 1], [2, 2], **columns)
    assert Threshold()(untimed).weights.tolist() == [1]
    assert Centered()(untimed).types is None


EVENT = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(sorted(WEIGHTS)))


@settings(deadline=None)
@given(st.dictionaries(EVENT, st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1), st.booleans())
def test_combining_equals_plain_python(events, timed):
    data = Interactions.from_arrays(
        *zip(*[key[:2] for key in events], strict=True),
        types=[key[2] for key in events],
        ratings=[rating for rating, _ in events.values()],
        timestamps=[clock for _, clock in events.values()] if timed else None,
    )
    pairs = defaultdict(list)
    for (user, item, kind), (rating, clock) in sorted(events.items()):
        pairs[user, item].append((WEIGHTS[kind], rating, clock if timed else 0, kind))
    best = {"max": lambda row: (abs(row[0]), row[2], row[3]), "last": lambda row: (row[2], row[3])}
    for rule in ("max", "last") if timed else ("max",):
        combined = EventWeights(WEIGHTS, rule)(data)
        winners = [max(pairs[pair], key=best[rule]) for pair in sorted(pairs)]
        assert combined.weights.tolist() == [row[0] for row in winners]
        assert combined.ratings.tolist() == [row[1] for row in winners]
        assert not timed or combined.timestamps.tolist() == [row[2] for row in winners]
    combined = EventWeights(WEIGHTS, "sum")(data)
    assert combined.weights.tolist() == [sum(row[0] for row in pairs[pair]) for pair in sorted(pairs)]
    assert combined.ratings.tolist() == [sum(row[1] for row in pairs[pair]) for pair in sorted(pairs)]
    assert not timed or combined.timestamps.tolist() == [max(row[2] for row in pairs[pair]) for pair in sorted(pairs)]
    assert (combined.types, combined.type_names) == (None, ())


def test_a_view_a_cart_and_a_purchase_of_one_item_are_one_weight():
    log = Interactions.from_arrays(
        [1, 1, 1, 1], ["a", "a", "a", "b"], types=["buy", "view", "cart", "view"], timestamps=[2, 3, 1, 9]
    )
    for rule, weight, clock in (("max", 1.0, 2), ("sum", 1.75, 3), ("last", 0.25, 3)):
        combined = EventWeights(WEIGHTS, rule)(log)
        assert combined.weights.tolist() == [weight, 0.25]
        assert combined.timestamps.tolist() == [clock, 9]


def test_data_without_rows_stay_without_rows():
    nothing = EVENTS.take(np.zeros(len(EVENTS), dtype=bool))
    for rule in ("max", "sum"):
        assert len(EventWeights(WEIGHTS, rule)(nothing)) == 0


@pytest.mark.parametrize(
    ("policy", "data", "message"),
    [
        (
            Threshold(),
            PLAIN_CONTEXT,
            "Threshold needs ratings and the data has none; name that column or choose another",
        ),
        (Centered(), EVENTS, "Centered needs ratings"),
        (ItemCount(), PLAIN_CONTEXT, "Threshold needs ratings"),
        (WeightColumn(), RATED, "WeightColumn needs weights"),
        (EventWeights({"buy": 1}), RATED, "EventWeights needs feedback types"),
        (EventWeights({"buy": 1}), EVENTS, "no weight for the feedback types 'cart', 'view' of the data; add them"),
        (EventWeights(WEIGHTS, "last"), EVENTS, "combine='last' needs timestamps"),
        (ConversionRate(), RATED, "ConversionRate needs feedback types"),
        (ConversionRate("sale"), EVENTS, "ConversionRate.target must be .* 'buy', 'cart', 'view', got 'sale'"),
    ],
)
def test_data_that_lack_what_a_policy_needs(policy, data, message):
    with pytest.raises(DataError, match=message):
        policy(data)


def test_only_types_that_occur_need_a_weight():
    views = EVENTS.take(EVENTS.types == EVENTS.type_names.index("view"))
    assert EventWeights({"view": 2})(views).weights.tolist() == [2, 2, 2]
    with pytest.raises(DataError, match="must be a feedback type of the data"):
        ConversionRate("buy")(views)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(float("nan")), "Threshold.at must be a finite number, got nan"),
        (lambda: Threshold("4"), "Threshold.at must be a finite number, got '4'"),
        (lambda: ItemCount(power=float("inf")), "ItemCount.power must be"),
        (lambda: EventWeights({}), "EventWeights.weights must map"),
        (lambda: EventWeights({"buy": None}), r"EventWeights.weights\['buy'\] must be a finite number, got None"),
        (lambda: EventWeights({"buy": 1}, "maximum"), "EventWeights.combine must be one of 'max', 'sum', 'last'"),
        (lambda: ConversionRate(combine="x"), "ConversionRate.combine must be one of"),
        (lambda: WeightColumn("x"), "WeightColumn.combine must be one of"),
        (lambda: feedback_from("centred", RATED), "did you mean 'centered'"),
        (lambda: feedback_from("events", EVENTS), "feedback must be one of"),
        (lambda: feedback_from(4, RATED), "feedback must be one of .* got 4"),
        (lambda: feedback_from_dict({"kind": "magic"}), "feedback kind must be one of"),
        (lambda: feedback_from_dict({}), "feedback kind must be one of .* got None"),
        (lambda: feedback_from_dict({"kind": "unary", "at": 3}), "feedback 'unary' has no setting 'at'"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_the_natural_policy_follows_the_columns():
    assert feedback_from(None, RATED) == Centered()
    assert feedback_from(None, COUNTED) == WeightColumn()
    assert feedback_from(None, PLAIN_CONTEXT) == Unary()
    with pytest.raises(DataError, match=r"say what they mean with EventWeights\(\{'buy': \.\.\., 'cart'"):
        feedback_from(None, EVENTS)


def test_policies_by_name():
    names = ["threshold", "centered", "weights", "unary", "item-count", "conversion"]
    found = [feedback_from(name, RATED) for name in names]
    assert found == [Threshold(), Centered(), WeightColumn(), Unary(), ItemCount(), ConversionRate()]
    assert feedback_from(Threshold(3), RATED) == Threshold(3)


@pytest.mark.parametrize(
    "policy",
    [
        Threshold(3.5),
        Threshold(np.float32(3.5)),
        Centered(),
        Unary(),
        EventWeights({"buy": np.float32(1)}),
        WeightColumn("sum"),
        EventWeights(WEIGHTS, "sum"),
        ConversionRate("cart", "last"),
        ItemCount(ItemCount(EventWeights(WEIGHTS), 0.5), -1.0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_json_and_back(policy):
    assert isinstance(policy, Feedback)
    assert feedback_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy


def test_event_weights_do_not_change_with_the_callers_dict():
    weights = {"buy": 1.0}
    policy = EventWeights(weights)
    weights["buy"] = 5.0
    assert policy.weights == {"buy": 1.0}
