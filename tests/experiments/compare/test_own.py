"""Splits, metrics, models and lists of one's own, in `compare` and `evaluate`."""

from functools import partial

import numpy as np
import pytest

import topnrank as tnr
from topnrank import EASE, DataError, Interactions, ParameterError, Popularity, compare, evaluate

DATA = tnr.synthetic(60, 40, 1500, seed=5)
TRAIN, TEST = tnr.split_per_user(DATA, test=0.3, seed=0)
FAST = {"protocol": "catalog", "controls": False}


class Mine:
    """Scores of items by their number of rows: what Popularity does."""

    def fit(self, train):
        self.counts = dict(zip(train.items.ids.tolist(), np.bincount(train.indices).tolist(), strict=False))

    def score(self, users, items):
        return np.array([self.counts.get(item, 0) for item in items.tolist()])


def halves(data, seed):
    return tnr.split_per_user(data, test=0.5, seed=seed)


def test_a_fixed_split_is_compared_as_it_is():
    fixed = compare([EASE(regularization=10.0)], (TRAIN, TEST), repeats=1, metrics="ndcg@10", **FAST)
    expected = evaluate(EASE(regularization=10.0).fit(TRAIN), TEST, metrics="ndcg@10")["ndcg@10"]
    assert fixed.mean("ease", "catalog", "ndcg@10") == pytest.approx(expected, rel=1e-12)
    frames = compare(
        [EASE(regularization=10.0)], (TRAIN.to_pandas(), TEST.to_pandas()), repeats=1, metrics="ndcg@10", **FAST
    )
    assert frames.mean("ease", "catalog", "ndcg@10") == pytest.approx(expected, rel=1e-12)
    assert fixed.settings["split"].startswith("given: ")
    assert fixed.settings["seeds_vary"].startswith("the models")


def test_several_fixed_splits_are_the_repeats():
    splits = [tnr.split_per_user(DATA, test=0.3, seed=seed) for seed in (0, 1)]
    given = compare([Popularity()], splits=splits, metrics="ndcg@10", **FAST)
    named = compare([Popularity()], DATA, test=0.3, repeats=2, metrics="ndcg@10", **FAST)
    assert given.repeats == 2
    assert given.repeat_means("popularity", "catalog", "ndcg@10").tolist() == pytest.approx(
        named.repeat_means("popularity", "catalog", "ndcg@10").tolist(), rel=1e-12
    )


def test_a_split_with_other_users_in_its_parts():
    parts = TRAIN.compact(), TEST.take(TEST.user_index > 5).compact()
    found = compare([Popularity()], splits=[parts, (TRAIN, TEST)], metrics="ndcg@10", **FAST)
    expected = evaluate(Popularity().fit(parts[0]), parts[1], metrics="ndcg@10")["ndcg@10"]
    assert found.repeat_means("popularity", "catalog", "ndcg@10")[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("split", [halves, lambda data: halves(data, 0), partial(tnr.split_per_user, test=0.5)])
def test_a_split_is_any_function(split):
    own = compare([Popularity()], DATA, split=split, repeats=1, metrics="ndcg@10", **FAST)
    usual = compare([Popularity()], DATA, test=0.5, repeats=1, metrics="ndcg@10", **FAST)
    assert own.mean("popularity", "catalog", "ndcg@10") == usual.mean("popularity", "catalog", "ndcg@10")


def test_a_function_is_a_metric_of_the_ranked_relevance():
    both = compare({"mine": Mine(), "popularity": Popularity()}, DATA, metrics=[ten, "hit@10"], repeats=1, **FAST)
    assert both.metrics == ("ten", "hit@10")
    assert "ten" in str(both)
    assert "ten is a function of the caller" in both.facts["conventions"]["catalog"]


def ten(relevance):
    return float(relevance[:10].any())


def test_an_own_metric_is_the_library_one_where_nothing_ties():
    def reciprocal(relevance):
        return 1 / (1 + np.argmax(relevance))

    model = EASE(regularization=10.0).fit(TRAIN)
    for protocol in ("rated", "catalog"):
        result = evaluate(model, TEST, metrics=[reciprocal, "mrr"], protocol=protocol)
        assert result.per_user["reciprocal"] == pytest.approx(result.per_user["mrr"], nan_ok=True)


def test_ties_are_in_random_order_for_an_own_metric():
    def first(relevance):
        return relevance[0]

    flat = type("Flat", (Mine,), {"score": lambda self, users, items: np.zeros(len(items))})()
    flat.fit(TRAIN)
    values = evaluate(flat, TEST, train=TRAIN, metrics=[first, "precision@1"], protocol="rated")
    assert abs(values["first"] - values["precision@1"]) < 0.2
    assert 0 < values["first"] < 1


def test_two_methods_are_a_model_with_or_without_a_name():
    of_dict = compare({"theirs": Mine()}, DATA, repeats=1, metrics="ndcg@10", protocol="catalog")
    of_list = compare([Mine()], DATA, repeats=1, metrics="ndcg@10", protocol="catalog")
    assert of_dict.models[0] == "theirs"
    assert of_list.models[0] == "Mine"
    assert of_dict.mean("theirs", "catalog", "ndcg@10") == of_dict.mean("popularity", "catalog", "ndcg@10")
    mine = Mine()
    mine.fit(TRAIN)
    same = evaluate(Popularity().fit(TRAIN), TEST)
    assert evaluate(mine, TEST, train=TRAIN).values == same.values
    with pytest.raises(ParameterError, match="Mine does not say what it was trained on; give train="):
        evaluate(mine, TEST)
    with pytest.raises(ParameterError, match=r"an object with the method score\(users, items\), or a frame"):
        evaluate(3, TEST)


def test_lists_made_elsewhere_count_as_the_model_that_made_them():
    model = EASE(regularization=10.0).fit(TRAIN)
    lists = model.recommend(n=10)
    wanted = ["ndcg@10", "recall@5", "mrr@10", "novelty@10", "coverage@10"]
    expected = evaluate(model, TEST, metrics=wanted)
    for frame in (lists.to_pandas(), lists.drop_columns(["rank"]), lists.select(["user", "item"])):
        assert evaluate(frame, TEST, train=TRAIN, metrics=wanted).values == pytest.approx(expected.values)
    assert evaluate(lists, TEST, metrics="ndcg@10")["ndcg@10"] == pytest.approx(expected["ndcg@10"])
    with pytest.raises(DataError, match="an item twice in the list"):
        evaluate(lists.take([0, 0]), TEST)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare([Popularity()], splits=[TRAIN]), r"a list of pairs \(train, test\)"),
        (lambda: compare([Popularity()], DATA, splits=[(TRAIN, TEST)]), "give data, or"),
        (lambda: compare([Popularity()], (TRAIN, TEST), split="last"), "given parts are not split again"),
        (lambda: compare([Popularity()], DATA, split=lambda data: data), "must return"),
        (lambda: compare([Popularity()], DATA, split="lost"), "split must be one of .* did you mean 'last'"),
        (lambda: compare([Popularity()], {"a": 1}), "compare needs Interactions, got dict"),
        (
            lambda: evaluate(Popularity().fit(TRAIN), TEST, metrics=[lambda r: "x"]),
            "must return a number for a list, got 'x'",
        ),
        (lambda: compare([3], DATA), r"the methods fit\(train\) and score\(users, items\), got int"),
    ],
)
def test_wrong_words_are_answered(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def test_parts_with_other_ids_are_refused():
    other = Interactions.from_arrays(["a", "b"], ["x", "y"], ratings=[4, 5])
    with pytest.raises(DataError, match="no user of the test rows is among the training rows"):
        compare([Popularity()], (TRAIN, other))
