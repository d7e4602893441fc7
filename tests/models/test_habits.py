"""What `fit` takes from people and scikit-learn, and what `help()` tells of hyper-parameters."""

import inspect

import pytest

from topnrank import EASE, MODELS, ItemMean, ParameterError, TopNRank, UserFolds, evaluate, split_per_user, synthetic
from topnrank.models.parameter_docs import parameter_docs

DATA = synthetic(40, 30, 500, seed=3).compact()
FRAME = DATA.to_pandas()
SMALL = {"task": "rated", "factors": 4, "epochs": 2}


def test_frames_are_data():
    of_frame, of_data = TopNRank(**SMALL).fit(FRAME), TopNRank(**SMALL).fit(DATA)
    pairs = DATA.users.ids[0], DATA.items.ids
    assert (of_frame.score(*pairs) == of_data.score(*pairs)).all()
    new = FRAME[:5].assign(user=10_000)
    assert of_frame.partial_fit(new, epochs=0).user_map.index([10_000]) >= 0
    assert evaluate(of_data, FRAME)["ndcg@10"] == evaluate(of_data, DATA)["ndcg@10"]
    assert "data" in inspect.signature(TopNRank().fit).parameters


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: EASE().fit(DATA, sample_weight=[1]), "fit takes no sample_weight: .*with_weights"),
        (lambda: TopNRank().fit(DATA, item_features=1), "without features of items or users"),
        (lambda: TopNRank().fit(DATA, [1, 2]), "fit takes no y"),
        (lambda: EASE().fit(DATA).partial_fit(DATA), "EASE cannot take in new rows; fit it again"),
        (lambda: TopNRank(**SMALL).fit(DATA).partial_fit({"user": [1]}), "partial_fit needs Interactions, got dict"),
    ],
)
def test_what_other_libraries_have_is_answered_in_one_sentence(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def test_scikit_learns_pipeline_and_grid_search():
    model_selection = pytest.importorskip("sklearn.model_selection")
    pipeline = pytest.importorskip("sklearn.pipeline")
    search = model_selection.GridSearchCV(EASE(), {"regularization": [1.0, 50.0]}, cv=UserFolds(3)).fit(FRAME)
    assert search.best_params_["regularization"] in (1.0, 50.0)
    train, test = next(iter(UserFolds(3).split(FRAME)))
    alone = EASE(regularization=1.0).fit(FRAME.iloc[train])
    assert search.cv_results_["split0_test_score"][0] == alone.score(FRAME.iloc[test])
    steps = pipeline.Pipeline([("model", TopNRank(**SMALL))]).fit(FRAME)
    assert steps.score(FRAME) == TopNRank(**SMALL).fit(DATA).score(DATA)


def test_folds_are_a_partition_within_users():
    parts = list(UserFolds(4, seed=1).split(FRAME))
    rows = sorted(row for _, test in parts for row in test)
    assert rows == list(range(len(FRAME)))
    for train, test in parts:
        assert set(FRAME.user.iloc[test]) <= set(FRAME.user.iloc[train])
        counts = FRAME.user.iloc[test].value_counts() / FRAME.user.value_counts()
        assert counts.max() <= 0.5
    again = [test.tolist() for _, test in UserFolds(4, seed=1).split(FRAME)]
    assert again == [test.tolist() for _, test in parts]
    assert again != [test.tolist() for _, test in UserFolds(4, seed=2).split(FRAME)]


def test_score_of_rows_is_the_metric():
    train, test = split_per_user(DATA, test=0.3)
    model = ItemMean().fit(train)
    assert model.score(test) == evaluate(model, test, metrics="ndcg@10")["ndcg@10"]
    assert model.score(DATA.users.ids[0], DATA.items.ids[:3]).shape == (3,)


@pytest.mark.parametrize("name", MODELS)
def test_every_hyper_parameter_is_explained(name):
    kind = MODELS[name]
    docs = parameter_docs(kind)
    assert [one.name for one in docs] == list(kind().get_params())
    for one in docs:
        assert one.meaning, one.name
        assert one.worth_trying, one.name
        assert f"\n{one.name} : default {one.default!r}" in kind.__doc__
    assert kind().__doc__ == kind.__doc__
