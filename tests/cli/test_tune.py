"""`topnrank tune`, and what `topnrank train --params` makes of its result."""

import json
from pathlib import Path

import pytest

import topnrank as tnr
from support.cli_runner import Run
from topnrank.experiments.tuning.tune import tune

pytest.importorskip("optuna")
QUICK = ("--set", "factors=4", "--set", "user_representation=history", "--set", "epochs=2", "--threads", "1")


def test_help_teaches(run: Run) -> None:
    shown = run("tune", "--help")
    assert shown.code == 0
    assert shown.out.count("topnrank tune") >= 3
    assert "--study" in shown.out


def test_tune_then_train_then_evaluate(ratings: Path, tmp_path: Path, run: Run) -> None:
    best, study, model_file = tmp_path / "best.json", tmp_path / "s.db", tmp_path / "m.safetensors"
    options = ("--holdout", "0.4", "--seed", "3", "--trials", "4", "--metric", "map@5", "--patience", "5")
    told = run("tune", ratings, *options, *QUICK, "--study", study, "--save-params", best, "--json").json

    train, _ = tnr.split_per_user(tnr.read(ratings), test=0.4, seed=3)
    fixed = {"factors": 4, "user_representation": "history", "epochs": 2, "num_threads": 1}
    expected = tune(tnr.TopNRank, train, trials=4, metric="map@5", patience=5, seed=3, fixed=fixed)
    assert told["map@5"] == expected.value
    assert told["rows"] == len(train)
    assert [one["settings"] for one in told["records"]] == [one["settings"] for one in expected.trials]
    assert told["trials"]["complete"] + told["trials"]["pruned"] == 4
    assert told["best"] == {name: expected.params[name] for name in expected.trials[0]["settings"]}
    assert str(study) in told["notes"][0]
    assert json.loads(best.read_text())["model"] == "top-n-rank"

    arguments = ("train", ratings, "-o", model_file, "--holdout", "0.4", "--seed", "3", "--params", best)
    assert run(*arguments, "--threads", "1", "--quiet").code == 0
    fitted = tnr.load(model_file).get_params()
    assert fitted | {"num_threads": 1, "seed": 0} == expected.params
    assert run("evaluate", model_file, tmp_path / "m.test.parquet", "--json").json["n_users"] > 0
    assert run(*arguments, "--set", "n=7", "--quiet").code == 0
    assert tnr.load(model_file).get_params()["n"] == 7


def test_held_out_rows_are_never_looked_at(ratings: Path, tmp_path: Path, run: Run) -> None:
    """With all of them turned upside down the search is the same."""
    data = tnr.read(ratings)
    _, test = tnr.split_per_user(data, test=0.4, seed=0)
    hidden = {(row["user"], row["item"]) for row in test.to_arrow().to_pylist()}
    lines = [
        f"{row['user']},{row['item']},{6 - row['rating'] if (row['user'], row['item']) in hidden else row['rating']}\n"
        for row in data.to_arrow().to_pylist()
    ]
    other = tmp_path / "other.csv"
    other.write_text("user,item,rating\n" + "".join(lines))
    command = ("--trials", "2", *QUICK, "--json")
    values = {file: run("tune", file, "--holdout", "0.4", *command).json["ndcg@10"] for file in (ratings, other)}
    assert values[ratings] == values[other]
    assert run("tune", other, *command).json["ndcg@10"] != run("tune", ratings, *command).json["ndcg@10"]


def test_tune_prints_for_people(ratings: Path, tmp_path: Path, run: Run) -> None:
    best = tmp_path / "best.json"
    shown = run("tune", ratings, "--trials", "2", *QUICK, "--save-params", best, "--quiet")
    assert (shown.code, shown.err) == (0, "")
    expected = ("Best on validation data", "learning rate", f"topnrank train DATA -o MODEL --params {best}")
    assert [text for text in expected if text not in shown.out] == []


def test_ease_has_a_space_of_its_own(ratings: Path, run: Run) -> None:
    told = run("tune", ratings, "--model", "ease", "--trials", "3", "--json").json
    assert list(told["best"]) == ["regularization"]
    assert all(10 <= one["settings"]["regularization"] <= 3000 for one in told["records"])


def test_event_weights_are_learned_then_used(tmp_path: Path, run: Run) -> None:
    log, best, model_file = tmp_path / "events.csv", tmp_path / "best.json", tmp_path / "m.safetensors"
    kinds = ("view", "cart", "buy")
    rows = [
        f"u{u},i{i},{kinds[(u * i + k) % 3]}\n" for u in range(15) for i in range(8) for k in range(1 + (u + i) % 2)
    ]
    log.write_text("user,item,type\n" + "".join(dict.fromkeys(rows)))
    command = ("tune", log, "--model", "ease", "--set", "regularization=5", "--learn-weights", "buy", "--trials", "4")
    told = run(*command, "--save-params", best, "--json").json
    expected = tnr.learn_event_weights(tnr.EASE(regularization=5), tnr.read(log), target="buy", trials=4)
    assert told["weights"] == expected.feedback.weights
    assert told["ndcg@10"] == expected.value
    assert [one["weights"] for one in told["records"]] == [one["weights"] for one in expected.trials]
    assert run("train", log, "-o", model_file, "--params", best, "--quiet").code == 0
    assert tnr.load(model_file).get_params()["feedback"] == expected.feedback
    shown = run(*command, "--quiet")
    assert "--model ease --feedback events:buy=1,cart=" in shown.out
    run(*command, "--feedback", "unary").assert_refused("--feedback does not go with --learn-weights")
    run(*command, "--study", tmp_path / "s.db").assert_refused("--study does not go with --learn-weights")
    run(*command[:-3], "sell").assert_refused("target must be one of 'buy', 'cart', 'view', got 'sell'")


def test_a_file_of_another_model_is_refused(ratings: Path, tmp_path: Path, run: Run) -> None:
    best = tmp_path / "best.json"
    best.write_text('{"model": "biased-mf", "parameters": {"factors": 3, "epochs": 1}}')
    command = ("train", ratings, "-o", tmp_path / "m.safetensors", "--params", best, "-q")
    run(*command, "--model", "list-pmf").assert_refused("holds parameters of biased-mf, not of --model list-pmf")
    run(*command, "--paper", "relu").assert_refused("--params and --paper")
    assert run(*command).code == 0
    model = tnr.load(tmp_path / "m.safetensors")
    assert (model.name, model.get_params()["factors"]) == ("biased-mf", 3)
    best.write_text('{"factors": 3, "epoch": 1}')
    run(*command).assert_refused("TopNRank has no parameter 'epoch'")


def test_refusals(ratings: Path, tmp_path: Path, run: Run) -> None:
    run("tune", ratings, "--model", "top-n-rnk").assert_refused("--model", "did you mean 'top-n-rank'")
    run("tune", ratings, "--model", "popularity", "-q").assert_refused("nothing is left to search for popularity")
    run("tune", ratings, "--set", "factor=3", "-q").assert_refused("TopNRank has no parameter 'factor'")
    run("tune", ratings, "--trials", "0", "-q").assert_refused("trials must be an integer of at least 1")
    run("tune", ratings, "--validation", "1").assert_refused("--validation", "must be a fraction between 0 and 1")
    run("tune", ratings, "--save-params", tmp_path / "no" / "b.json").assert_refused("cannot be written")
    run("tune", ratings, "--study", tmp_path / "no" / "s.db", "-q").assert_refused("its folder does not exist")
    run("tune", tmp_path / "nothing.csv").assert_refused("nothing.csv")
