"""learn_event_weights: planted weights are found, the test rows stay unseen, bad input is refused."""

import math

import numpy as np
import pytest

import topnrank
from topnrank import (
    EASE,
    DataError,
    EventWeights,
    ImplicitModel,
    Interactions,
    ItemMean,
    ParameterError,
    Unary,
    evaluate,
    learn_event_weights,
)
from topnrank.experiments.tuning import event_weights


def shop(seed=0, *, timed=True, users=120, items=40):
    """Users of two tastes: carts and purchases follow them, views are noise among the items of the other taste."""
    rng = np.random.default_rng(seed)
    rows = {}
    for user in range(users):
        mine = np.flatnonzero(np.arange(items) % 2 == user % 2)
        for kind, pool, count in (("buy", mine, 4), ("cart", mine, 5), ("view", np.arange(items), 12)):
            rows |= {(user, int(item), kind): int(rng.integers(10**6)) for item in rng.choice(pool, count, False)}
    columns = zip(*rows, strict=True)
    times = {"timestamps": list(rows.values())} if timed else {}
    who, what, kinds = columns
    return Interactions.from_arrays(who, what, types=kinds, **times)


MODEL = EASE(regularization=5.0)


def test_what_follows_the_target_is_worth_more_than_noise():
    found = learn_event_weights(MODEL, shop(), target="buy", trials=12)
    weights = found.feedback.weights
    assert weights["buy"] == 1.0
    assert weights["cart"] > 3 * abs(weights["view"])
    assert len(found.trials) == 12
    assert found.value == max(trial["value"] for trial in found.trials)
    first = [trial["weights"] for trial in found.trials[:2]]
    assert first == [{"cart": 1.0, "view": 1.0}, {"cart": 0.0, "view": 0.0}]
    assert found.value > found.trials[0]["value"] + 0.05
    assert MODEL.feedback is None


def test_the_value_is_that_of_the_held_out_purchases():
    log = shop()
    found = learn_event_weights(MODEL, log, target="buy", trials=3, metric="recall@5", combine="sum")
    train, held_out = event_weights._parts(log, "buy", 0)
    model = EASE(regularization=5.0, feedback=found.feedback).fit(train)
    assert found.feedback.combine == "sum"
    assert evaluate(model, held_out, protocol="catalog", metrics="recall@5")["recall@5"] == found.value


def test_the_latest_purchase_of_each_user_is_held_out_with_all_its_events():
    log = shop()
    train, held_out = event_weights._parts(log, "buy", 0)
    assert np.diff(held_out.indptr).tolist() == [1] * log.n_users
    bought = log.types == log.type_names.index("buy")
    for user in range(0, log.n_users, 17):
        mine = bought & (log.user_index == user)
        last = log.indices[mine][np.argmax(log.timestamps[mine])]
        assert held_out.indices[user] == last
        assert last not in train.indices[train.indptr[user] : train.indptr[user + 1]]
    lost = {(u, i) for u, i in zip(log.user_index, log.indices, strict=True)} - {
        (u, i) for u, i in zip(train.user_index, train.indices, strict=True)
    }
    assert len(lost) == log.n_users


def test_without_times_one_at_random_by_the_seed():
    log = shop(timed=False)
    first, again, other = (event_weights._parts(log, "buy", seed)[1] for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_a_user_of_one_item_keeps_it():
    log = Interactions.from_arrays([1, 2, 2, 3], [1, 1, 2, 1], types=["buy", "buy", "view", "view"])
    train, held_out = event_weights._parts(log, "buy", 0)
    assert held_out.user_index.tolist() == [1]
    assert train.user_index.tolist() == [0, 1, 2]


def test_the_same_seed_finds_the_same():
    first, second = (learn_event_weights(MODEL, shop(), target="buy", trials=8, seed=3) for _ in range(2))
    assert first.feedback == second.feedback
    assert [one["weights"] for one in first.trials] == [one["weights"] for one in second.trials]


def test_negative_types_are_searched_below_zero():
    log = shop()
    names = ("buy", "cart", "dislike")  # what were views
    renamed = Interactions.from_arrays(
        log.user_index, log.indices, types=[names[code] for code in log.types], timestamps=log.timestamps
    )
    found = learn_event_weights(MODEL, renamed, target="buy", trials=10, negative=["dislike"])
    assert all(trial["weights"]["dislike"] <= 0 <= trial["weights"]["cart"] for trial in found.trials)
    assert found.trials[0]["weights"]["dislike"] == -1.0
    assert all(
        abs(weight) <= event_weights.MAX_WEIGHT for trial in found.trials for weight in trial["weights"].values()
    )


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")  # implicit's advice on speed
def test_adapters_are_models_too():
    als = pytest.importorskip("implicit.als").AlternatingLeastSquares(factors=8, random_state=0, num_threads=1)
    adapter = ImplicitModel(als)
    found = learn_event_weights(adapter, shop(), target="buy", trials=4)
    assert adapter.feedback is None
    assert not math.isnan(found.value)
    assert len({trial["value"] for trial in found.trials}) > 1


def test_a_model_that_fails_with_some_weights_does_not_end_the_search():
    log = Interactions.from_arrays(
        [1, 1, 2, 2], [1, 2, 2, 3], types=["buy", "view", "buy", "view"], timestamps=[1, 2, 3, 4]
    )
    found = learn_event_weights(MODEL, log, target="buy", trials=3)  # no purchase is left to train on
    assert found.trials[1]["value"] is None
    assert "none of the 2 rows has a weight above 0" in found.trials[1]["error"]
    assert found.feedback.weights["view"] > 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: learn_event_weights(MODEL, {"user": [1]}, target="buy"), ParameterError, "needs Interactions"),
        (
            lambda: learn_event_weights(MODEL, Unary()(shop()), target="buy"),
            DataError,
            "needs feedback types and the data",
        ),
        (
            lambda: learn_event_weights(MODEL, shop(), target="bye"),
            ParameterError,
            "target must be .* did you mean 'buy'",
        ),
        (
            lambda: learn_event_weights(MODEL, shop(), target="buy", trials=0),
            ParameterError,
            "trials must be an integer",
        ),
        (
            lambda: learn_event_weights(MODEL, shop(), target="buy", metric="novelty@5"),
            ParameterError,
            "the metric before",
        ),
        (
            lambda: learn_event_weights(MODEL, shop(), target="buy", negative=["hate"]),
            ParameterError,
            "a negative type",
        ),
        (lambda: learn_event_weights(MODEL, shop(), target="buy", combine="min"), ParameterError, "combine must be"),
        (lambda: learn_event_weights(ItemMean(), shop(), target="buy"), ParameterError, "parameter `feedback`"),
        (lambda: learn_event_weights(EASE, shop(), target="buy"), ParameterError, "parameter `feedback`"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_data_that_cannot_teach_weights_are_refused():
    log = shop()
    only = log.take(log.types == log.type_names.index("buy"))
    with pytest.raises(DataError, match="'buy' is the only type of the data"):
        learn_event_weights(MODEL, only, target="buy")
    lonely = Interactions.from_arrays([1, 2], [1, 1], types=["buy", "view"])
    with pytest.raises(DataError, match="no user has an item with 'buy' and another item"):
        learn_event_weights(MODEL, lonely, target="buy")


def test_the_name_is_public():
    assert topnrank.learn_event_weights is learn_event_weights
    assert isinstance(learn_event_weights(MODEL, shop(), target="buy", trials=1).feedback, EventWeights)
