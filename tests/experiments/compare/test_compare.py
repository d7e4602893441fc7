"""compare: the same splits for all, controls, failures, names, facts."""

import json
import math

import numpy as np
import pytest

import topnrank
from support.compared import DATA, same_values, small
from support.rivals import Counted, Fails, ItemMeans
from topnrank import EASE, DataError, Interactions, ItemMean, ParameterError, Popularity, Random, TopNRank, evaluate
from topnrank.errors import TopNRankWarning
from topnrank.experiments.compare.cells import Task
from topnrank.experiments.compare.result import Cell
from topnrank.experiments.compare.rows import Row
from topnrank.experiments.compare.run import compare, time_left
from topnrank.experiments.report.summary import Summary

UNTIMED = Interactions.from_frame(DATA.to_arrow().drop_columns("timestamp"))
CONTROLS = ("item-mean", "popularity", "recent-popularity", "random")


def test_values_are_those_of_evaluate_on_the_seeded_splits():
    metrics = ("ndcg@3", "map", "recall@5")
    made = compare([small(), ItemMean()], DATA, repeats=2, protocol="both", metrics=metrics, seed=7)
    assert made.models == ("biased-mf", *CONTROLS)
    assert (made.protocols, made.metrics, made.repeats) == (("rated", "catalog"), metrics, 2)
    for repeat in range(2):
        train, test = topnrank.split_per_user(DATA, test=0.5, seed=7 + repeat)
        for name, model in {"biased-mf": small(), "item-mean": ItemMean(), "random": Random()}.items():
            model.fit(train)
            for protocol in ("rated", "catalog"):
                expected = evaluate(model, test, protocol=protocol, metrics=metrics)
                for metric in metrics:
                    values = made.values(name, protocol, metric)[repeat]
                    np.testing.assert_array_equal(values, expected.per_user[metric])
                    assert made.repeat_means(name, protocol, metric)[repeat] == expected[metric]
    assert [len(cell.curve) for cell in made.cells.values() if cell.model == "biased-mf"] == [2, 2]


def test_values_stand_at_all_users_of_the_data():
    """Users without test rows, or without a relevant one, are there as NaN, and counted."""
    rows = DATA.to_arrow().to_pydict()
    extra = {"user": [900, 901, 901, 901], "item": rows["item"][:4], "rating": [5.0, 1.0, 1.0, 1.0]}
    data = Interactions.from_frame({name: rows[name] + extra[name] for name in extra}, duplicates="error")
    made = compare([ItemMean()], data, repeats=2, protocol="rated", metrics="ndcg@3")
    assert made.users.tolist() == data.users.ids.tolist()
    values = made.values("item-mean", "rated", "ndcg@3")
    assert values.shape == (2, data.n_users)
    assert np.isnan(values[:, -2:]).all()
    assert made.facts["users_excluded"]["rated"] == np.isnan(values).sum(axis=1).tolist()
    assert made.facts["users_without_test_rows"]["rated"] == [1, 1]
    counted, without = (made.facts[name]["rated"] for name in ("users_counted", "users_without_relevant"))
    assert [c + w + 1 for c, w in zip(counted, without, strict=True)] == [data.n_users] * 2


def test_effective_n_is_the_mean_length_of_the_lists_up_to_the_cut():
    made = compare([ItemMean()], DATA, repeats=2, protocol="both", metrics=("ndcg@10", "auc", "mrr"))
    expected = {"rated": [], "catalog": []}
    for seed in range(2):
        train, test = topnrank.split_per_user(DATA, test=0.5, seed=seed)
        counted = ~np.isnan(made.values("item-mean", "rated", "mrr")[seed])
        expected["rated"].append(np.minimum(np.diff(test.indptr), 10)[counted].mean())
        expected["catalog"].append(np.minimum(train.n_items - np.diff(train.indptr), 10)[counted].mean())
    for protocol, values in expected.items():
        assert made.facts["effective_n"][protocol]["ndcg@10"] == pytest.approx(np.mean(values))
    assert made.facts["effective_n"]["rated"]["ndcg@10"] < 10 < made.facts["effective_n"]["rated"]["mrr"]


@pytest.mark.filterwarnings("ignore:compare. item ids tell")
@pytest.mark.parametrize(
    ("split", "test_part", "parts"), [("last", 5, topnrank.split_last), ("time", 0.3, topnrank.split_time)]
)
def test_other_splits(split, test_part, parts):
    rows = DATA.to_arrow().to_pydict()
    timed = Interactions.from_frame(rows | {"timestamp": list(range(len(DATA)))[::-1]})
    made = compare([small()], timed, repeats=2, split=split, test=test_part, metrics=("ndcg@3",), relevant=3.0)
    train, test = parts(timed, test=test_part)
    for repeat in range(2):
        for name, model in {"biased-mf": small(seed=repeat), "random": Random(seed=repeat)}.items():
            expected = evaluate(model.fit(train), test, protocol="rated", metrics=["ndcg@3"], relevant=3.0)
            assert made.repeat_means(name, "rated", "ndcg@3")[repeat] == expected["ndcg@3"]
    assert made.std("random", "rated", "ndcg@3") > 0
    assert made.settings["seeds_vary"].startswith("the models")


def test_the_last_session_the_rule_for_ties_and_the_control_of_ids():
    rows = [(user, (5 * user + item) % 90, 100 * item + 5000 * (item > 5)) for user in range(60) for item in range(9)]
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    data = Interactions.from_arrays(users, items, timestamps=times)
    settings = {"repeats": 1, "metrics": "ndcg@10", "protocol": "catalog"}
    with pytest.warns(topnrank.TopNRankWarning, match="item ids tell something of the order"):
        made = compare([EASE()], data, split="last-session", test=1000, **settings)
    assert made.facts["test_rows"] == [3 * 60]
    assert "item-id-order" in made.models
    assert made.facts["order"].startswith("0% of the rows share their moment")
    tied = Interactions.from_arrays(users, items, timestamps=[0] * len(times))
    assert "item-id-order" not in compare([EASE()], tied, split="last", **settings).models
    with pytest.raises(DataError, match="share their moment"):
        compare([EASE()], tied, split="last", ties="error", **settings)
    kept = Interactions.from_arrays(users, items, timestamps=[0] * len(times), keep_order=True)
    told = compare([EASE()], kept, split="last", ties="file", **settings).facts["order"]
    assert "100% of the rows share their moment" in told
    assert "taken in the order of the file" in told


def test_the_protocol_is_what_the_models_are_trained_for():
    settings = {"repeats": 1, "metrics": "mrr", "controls": False}
    assert compare([small()], DATA, **settings).protocols == ("rated",)
    mixed = compare([small(), TopNRank(factors=2, epochs=1, num_threads=1)], DATA, **settings)
    assert mixed.protocols == ("catalog",)
    assert mixed.settings["parameters"]["top-n-rank"]["task"] == "catalog"
    assert compare([EASE(), small()], DATA, **settings).protocols == ("catalog",)
    rated = compare([TopNRank(factors=2, epochs=1, num_threads=1)], DATA, protocol="rated", **settings)
    assert rated.settings["parameters"]["top-n-rank"]["task"] == "rated"


def test_a_scale_on_which_all_is_liked_makes_no_table():
    tens = DATA.take(DATA.ratings >= 2)
    tens = Interactions.from_arrays(tens.user_index, tens.indices, ratings=2 * tens.ratings)
    settings = {"repeats": 1, "metrics": "mrr", "controls": False}
    assert (
        compare([small()], tens, **settings).settings["relevance"].startswith("rating >= 8, four fifths of the scale")
    )
    with pytest.raises(DataError, match=r"compare: every test row is relevant \(rating >= 4\).* nothing is measured"):
        compare([small()], tens, relevant=4, **settings)
    ones = tens.take((tens.ratings > 4) | (np.arange(len(tens)) % 10 == 0))
    with pytest.warns(TopNRankWarning, match=r"% of the test rows count as relevant \(rating >= 5; .* set relevant to"):
        compare([small()], ones, relevant=5, **settings)


@pytest.mark.parametrize(("split", "test_part"), [("per-user", 0.5), ("last", 3), ("time", 0.3)])
def test_the_catalog_beyond_accuracy_on_every_split(split, test_part):
    metrics = ("novelty@3", "ndcg@3", "popularity@3")
    options = {"split": split, "test": test_part, "metrics": metrics, "relevant": 3.0}
    made = compare([EASE(regularization=20.0)], DATA, repeats=1, protocol="catalog", **options)
    parts = {"per-user": topnrank.split_per_user, "last": topnrank.split_last, "time": topnrank.split_time}[split](
        DATA, test=test_part
    )
    expected = evaluate(
        EASE(regularization=20.0).fit(parts[0]), parts[1], protocol="catalog", metrics=metrics, relevant=3.0
    )
    assert {name: made.mean("ease", "catalog", name) for name in metrics} == expected.values
    summary = Summary.of(made)
    assert summary.headline == "ndcg@3"
    best = {name for row in summary.rows["catalog"] for name, score in row.scores.items() if score.best}
    assert best == {"ndcg@3"}
    alone = compare([Popularity()], DATA, repeats=1, protocol="catalog", metrics="novelty@3")
    assert "does not tell which model is best" in Summary.of(alone).verdict("catalog")


def test_controls_are_always_rows_unless_refused():
    for models in ([small()], [Popularity(), small()], {"mine": Random(seed=3)}):
        made = compare(models, DATA, repeats=1, metrics="mrr")
        kinds = list(made.settings["kinds"].values())
        assert [kinds.count(name) for name in CONTROLS] == [1, 1, 1, 1]
    assert compare([small()], DATA, repeats=1, metrics="mrr", controls=False).models == ("biased-mf",)
    untimed = compare([small()], UNTIMED, repeats=1, metrics="mrr").models
    assert untimed == ("biased-mf", "item-mean", "popularity", "random")
    taken = compare({"random": small()}, DATA, repeats=1, metrics="mrr")
    assert taken.models == ("random", "item-mean", "popularity", "recent-popularity", "random (control)")


def test_rows_of_one_model_are_told_apart_by_what_differs():
    models = [small(), small(learning_rate=0.5), small(learning_rate=0.5, seed=1)]
    made = compare(models, DATA, repeats=1, metrics="mrr", controls=False)
    assert made.models == (
        "biased-mf (learning_rate=0.01, seed=0)",
        "biased-mf (learning_rate=0.5, seed=0)",
        "biased-mf (learning_rate=0.5, seed=1)",
    )
    with pytest.raises(ParameterError, match="'biased-mf' is given twice with the same parameters"):
        compare([small(), small()], DATA)


def test_the_models_given_stay_as_they_were():
    model = small()
    compare([model], DATA, repeats=1, metrics="mrr")
    assert model._fitted is None


def test_each_repeat_fits_a_fresh_competitor():
    class Once(ItemMeans):
        def fit(self, train):
            assert not hasattr(self, "means_")
            super().fit(train)

    given = Once()
    assert compare([given], DATA, repeats=3, metrics="mrr").error("means by hand") is None
    assert not hasattr(given, "means_")


def test_a_second_run_has_the_same_bits():
    first = compare([TopNRank(task="rated", factors=4, epochs=2)], DATA, repeats=2, protocol="both")
    same_values(
        first, compare([TopNRank(task="rated", factors=4, epochs=2, num_threads=1)], DATA, repeats=2, protocol="both")
    )
    assert json.loads(json.dumps(first.settings)) == first.settings
    assert json.loads(json.dumps(first.facts)) == first.facts
    assert {"topnrank", "python", "numpy", "numba"} <= set(first.settings["versions"])
    assert first.settings["hardware"]["cores"] >= 1
    assert first.settings["parameters"]["top-n-rank"]["factors"] == 4


def test_a_model_that_fails_does_not_end_the_comparison():
    models = {"diverges": small(learning_rate=1e30), "fails": Fails(), "no memory": Fails(MemoryError), "fine": small()}
    made = compare(models, DATA, repeats=2, metrics=("mrr",))
    assert made.error("diverges").startswith("BiasedMF: training diverged")
    assert made.error("fails") == "ValueError: a bolt is loose"
    assert "not enough memory" in made.error("no memory")
    assert made.error("fine") is None
    assert math.isnan(made.mean("fails", "rated", "mrr"))
    assert np.isnan(made.values("fails", "rated", "mrr")).all()
    assert math.isnan(made.fit_seconds("fails"))
    assert made.mean("fine", "rated", "mrr") > made.mean("random", "rated", "mrr")


def test_a_failure_in_one_repeat_is_told(tmp_path):
    class FailsOnce(Counted):
        def fit(self, train):
            super().fit(train)
            if train.fingerprint() == topnrank.split_per_user(DATA, test=0.5, seed=1)[0].fingerprint():
                raise RuntimeError("unlucky")

    made = compare([FailsOnce(tmp_path / "log")], DATA, repeats=3, protocol="rated", metrics="mrr")
    assert made.error("counted") == "in 1 of 3 repeats: RuntimeError: unlucky"
    assert np.isnan(made.repeat_means("counted", "rated", "mrr")).tolist() == [False, True, False]
    assert not math.isnan(made.mean("counted", "rated", "mrr"))


def test_all_may_fail():
    made = compare([Fails()], DATA, repeats=1, controls=False)
    assert made.error("fails") == "ValueError: a bolt is loose"
    assert made.facts["users"] == 50


def test_ctrl_c_passes_through():
    with pytest.raises(KeyboardInterrupt):
        compare([Fails(KeyboardInterrupt)], DATA)


def test_data_without_ratings_fail_only_where_they_must():
    """ItemMean needs ratings or weights; its row says so."""
    views = Interactions.from_arrays(DATA.users.ids[DATA.user_index], DATA.items.ids[DATA.indices])
    made = compare([Popularity()], views, repeats=1, protocol="catalog", metrics="recall@5")
    assert "needs ratings or weights" in made.error("item-mean")
    assert made.mean("popularity", "catalog", "recall@5") > 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: compare([small()], {"user": [1]}), ParameterError, "needs Interactions, got dict"),
        (lambda: compare(small(), DATA), ParameterError, "list of models or a dict"),
        (lambda: compare([TopNRank], DATA), ParameterError, r"give TopNRank\(\)"),
        (lambda: compare(["climf"], DATA), ParameterError, "names: top-n-rank, climf"),
        (lambda: compare([3], DATA), ParameterError, "methods fit.* got int"),
        (lambda: compare([], DATA, controls=False), ParameterError, "at least one model"),
        (lambda: compare([small()], DATA, repeats=0), ParameterError, "repeats must be an integer of at least 1"),
        (lambda: compare([small()], DATA, jobs=1.5), ParameterError, "jobs must be an integer"),
        (lambda: compare([small()], DATA, seed=-1), ParameterError, "seed must be an integer of at least 0"),
        (lambda: compare([small()], DATA, protocol="all"), ParameterError, "'rated', 'catalog', 'both'"),
        (lambda: compare([small()], DATA, split="lst"), ParameterError, "did you mean 'last'"),
        (lambda: compare([small()], DATA, test=2.0), ParameterError, "test must be a fraction"),
        (lambda: compare([small()], DATA, tests=0.5), ParameterError, "did you mean 'test'"),
        (lambda: compare([small()], DATA, metrics="coverage@5"), ParameterError, "coverage@5 is one number"),
        (lambda: compare([small()], DATA, metrics="ndgc"), ParameterError, "did you mean 'ndcg'"),
        (lambda: compare([small()], DATA, relevant="x"), ParameterError, "relevant must be 'auto', a rating or None"),
        (lambda: compare([small()], DATA, relevant=99.0), DataError, "no test row is relevant"),
        (lambda: compare([small()], UNTIMED, split="time"), DataError, "needs timestamps"),
        (
            lambda: compare([small()], Interactions.from_arrays([1, 1, 2], [1, 2, 1], types=["a", "b", "a"])),
            DataError,
            "EventWeights",
        ),
    ],
)
def test_bad_input_is_refused_at_once(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_compare_is_a_public_name():
    made = topnrank.compare([ItemMeans()], DATA, repeats=1, metrics="mrr")
    assert isinstance(made, topnrank.Comparison)


def test_the_time_left_goes_by_model():
    tasks = [Task(Row(name, small(), {}), repeat, "") for repeat in range(3) for name in ("quick", "slow")]
    quick, slow = Cell("quick", 0, 0.5, 0.5, {}, [], None), Cell("slow", 0, 90.0, 10.0, {}, [], None)
    assert time_left(tasks[1:], [quick], jobs=2) == "more than 0:00:02 left"  # 5 cells of 1 s
    assert time_left(tasks[2:], [quick, slow], jobs=2) == "about 0:01:41 left"  # 2 of 1 s and 2 of 100 s
    assert time_left([], [quick, slow], jobs=2) == "about 0:00:00 left"


def test_progress_is_silent_unless_asked_for(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    compare([ItemMean()], DATA, repeats=1, metrics="mrr")
    assert capsys.readouterr() == ("", "")
    compare([ItemMean()], DATA, repeats=1, metrics="mrr", progress=True)
    shown = capsys.readouterr()
    assert (shown.out, "4/4" in shown.err, "about 0:00:00 left" in shown.err) == ("", True, True)
    assert "random, repeat 1" in shown.err
