"""Event logs: types become weights in training, and the same weights judge held-out rows."""

import numpy as np
import pytest

from topnrank import (
    ConversionRate,
    DataError,
    EventWeights,
    Interactions,
    ItemMean,
    TopNRank,
    TopNRankWarning,
    evaluate,
    load,
    split_per_user,
)

WEIGHTS = EventWeights({"buy": 1.0, "view": 0.1, "dislike": -1.0})


def event_log(kinds=("buy", "view", "dislike"), seed=0):
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.permutation(40 * 25)[:700], 25)
    return Interactions.from_arrays(users, items, types=rng.choice(kinds, 700))


@pytest.mark.parametrize("users", ["history", "factors"])
def test_validation_judges_by_the_weights_of_training(users):
    model = TopNRank(task="rated", user_representation=users, factors=4, epochs=4, feedback=WEIGHTS)
    model.fit(event_log(), validation=0.3)
    values = [record["ndcg@10"] for record in model.history_]
    assert all(0.3 < value < 0.999 for value in values)


def test_types_without_weights_are_not_all_relevant_by_accident(tmp_path):
    train, test = split_per_user(event_log(), test=0.4)
    model = TopNRank(task="rated", factors=4, epochs=2, feedback=WEIGHTS).fit(train)
    with pytest.raises(DataError, match=r"model\.weigh\(test\)"):
        evaluate(model, test)
    judged = evaluate(model, model.weigh(test))
    assert judged["ndcg@10"] == evaluate(model, WEIGHTS(test))["ndcg@10"] < 1.0
    with pytest.warns(TopNRankWarning, match="every test row is relevant"):
        assert evaluate(model, test, relevant=None)["ndcg@10"] == 1.0
    model.save(tmp_path / "shop.safetensors")
    assert evaluate(load(tmp_path / "shop.safetensors"), model.weigh(test)).values == judged.values


def test_conversion_rates_are_those_of_the_training_rows():
    train, test = split_per_user(event_log(("buy", "view", "cart")), test=0.4)
    policy = ConversionRate(target="buy")
    model = TopNRank(factors=4, epochs=1, feedback=policy).fit(train)
    np.testing.assert_array_equal(model.weigh(test).weights, policy.event_weights(train)(test).weights)


def test_rows_without_types_stay_as_they_are():
    rated = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], ratings=[1, 5, 4, 2])
    for model in (ItemMean().fit(rated), TopNRank(task="rated", factors=2, epochs=1).fit(rated)):
        assert model.weigh(rated) is rated


def test_a_validation_that_cannot_be_wrong_is_refused():
    liked = EventWeights({"buy": 1.0, "view": 0.1})
    with pytest.raises(DataError, match="every order of them is right"):
        TopNRank(task="rated", factors=4, epochs=2, feedback=liked).fit(event_log(("buy", "view")), validation=0.3)
