"""Arguments of the wrong kind: one clear sentence instead of an error from deep inside."""

import pytest

from topnrank import ItemMean, ParameterError, evaluate, synthetic

data = synthetic(30, 30, 400)
model = ItemMean().fit(data)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evaluate(model, {"user": [1]}), "needs Interactions, got dict"),
        (lambda: evaluate(model, data, relevant="x"), "relevant must be 'auto', a rating or None"),
        (lambda: evaluate(model, data, num_threads="a"), "num_threads must be an integer of at least 0"),
        (lambda: evaluate(model, data, num_threads=-1), "num_threads must be an integer of at least 0"),
        (lambda: model.recommend(history=5), "a history is a list of items"),
        (lambda: model.recommend(history="abc"), "a history is a list of items"),
        (lambda: model.recommend([[1, 2]]), "flat list of ids"),
        (lambda: model.recommend([1], exclude_sen=True), "did you mean 'exclude_seen'"),
        (lambda: model.fit({"user": [1]}), "needs Interactions, got dict"),
    ],
)
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
