"""What commands do when all is well: files, tables, JSON, and the same numbers as the Python API."""

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from support.cli_runner import QUICK, Run, ratings_text
from topnrank.cli.app import COMMANDS
from topnrank.cli.output import Output


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "data"])
def test_help_teaches(command: str, run: Run) -> None:
    shown = run(command, "--help")
    assert shown.code == 0
    assert shown.out.count(f"topnrank {command}") >= 3  # the usage and at least two examples
    assert "Examples:" in shown.out
    assert "--json" in (run("events", "export", "--help") if command == "events" else shown).out


def test_help_and_version(run: Run) -> None:
    assert run("--version").out == f"topnrank {tnr.__version__}\n"
    for shown in (run(), run("-h")):
        assert shown.code == 0
        assert [command for command in COMMANDS if f"  {command} " not in shown.out] == []


def test_the_list_of_commands_says_what_their_help_says() -> None:
    for name, (module, summary) in COMMANDS.items():
        command = getattr(import_module(f"topnrank.cli.commands.{module}"), name)
        text = command.registered_callback.callback.__doc__ if name in ("data", "events") else command.__doc__
        assert text.partition("\n")[0] == summary


def test_train_and_evaluate_give_the_numbers_of_the_api(ratings: Path, tmp_path: Path, run: Run) -> None:
    model_file, test_file = tmp_path / "m.safetensors", tmp_path / "m.test.parquet"
    trained = run("train", ratings, "-o", model_file, "--holdout", "0.4", "--seed", "3", *QUICK, "--json").json
    metrics = ["ndcg@3", "map@5", "mrr"]
    measured = run(
        "evaluate", model_file, test_file, "--metrics", ",".join(metrics), "--relevant", "3.5", "--json"
    ).json

    train, test = tnr.split_per_user(tnr.read(ratings), test=0.4, seed=3)
    model = tnr.TopNRank(factors=4, epochs=3, seed=3).fit(train)
    expected = tnr.evaluate(model, test, metrics=metrics, relevant=3.5)
    assert measured["values"] == pytest.approx(expected.values, rel=1e-12)
    assert (measured["n_users"], measured["notes"]) == (expected.n_users, [])
    assert trained["last_round"] == model.history_[-1]
    assert trained["data"]["rows"] == len(train)
    assert trained["holdout"] == {"file": str(test_file), "rows": len(test), "fraction": 0.4}
    np.testing.assert_array_equal(tnr.load(model_file).item_factors_, model.item_factors_)


def test_compiling_is_told_while_it_lasts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topnrank.cli.output.SECONDS_BETWEEN_LINES", 0.0)
    successor = numba.njit(lambda n: n + 1)
    with Output().compiling_told():
        successor(1)
        successor(1.0)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("compiling the kernels, once on a machine")
    assert second.startswith("compiling the kernels: 1 so far, ")
    with Output().compiling_told():
        successor(1)  # is compiled
    with Output(quiet=True).compiling_told():
        successor(1j)
    assert capsys.readouterr().err == ""


def test_train_prints_for_people(ratings: Path, tmp_path: Path, run: Run) -> None:
    model_file = tmp_path / "m.safetensors"
    shown = run("train", ratings, "-o", model_file, "--model", "item-mean", "--holdout", "0.5")
    assert shown.code == 0
    assert f"topnrank recommend {model_file}" in shown.out
    assert f"topnrank evaluate {model_file}" in shown.out
    assert run("train", ratings, "-o", model_file, "--model", "item-mean", "--quiet") == type(shown)(0, "", "")


def test_quiet_leaves_the_answer(ratings: Path, model_file: Path, run: Run) -> None:
    assert "ndcg@10" in run("evaluate", model_file, ratings, "--protocol", "rated", "--quiet").out
    assert run("evaluate", model_file, ratings, "--protocol", "rated", "--quiet").err == ""
    assert "rank" in run("recommend", model_file, "--user", "u1", "--quiet").out


def test_nothing_is_dropped_silently(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.csv"
    file.write_text(ratings_text() + "u1,i1,3\nloner,i1,4\nloner2,i9,5\nu1,rare,5\n")
    options = ("--duplicates", "last", "--min-item-users", "2", "--task", "rated", *QUICK, "--json")
    notes = " ".join(run("train", file, "-o", tmp_path / "m.safetensors", *options).json["notes"])
    assert "1 duplicate rows were merged by the rule 'last'" in notes
    assert "the filter left out 0 users, 1 items, 1 rows" in notes
    assert "one row only, from whom no order was learned: 2" in notes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--paper", "sigmoid", "--no-truncate"),
            {"smoothing": "sigmoid", "truncate": False, "user_representation": "factors"},
        ),
        (("--paper", "relu", "--set", "learning_rate=0.001"), {"truncate": True, "learning_rate": 0.001}),
        (("--task", "rated"), {"task": "rated"}),
        (("--task", "catalog", "--set", "negatives=3"), {"task": "catalog", "negatives": 3}),
        (("--feedback", "threshold=3"), {"feedback": tnr.Threshold(3.0)}),
        (("--set", 'regularization={"item": 0.5}'), {"regularization": {"item": 0.5}}),
        (("--set", "bias=false", "--set", "steepness=None"), {"bias": False, "steepness": None}),
        (("--set", "epochs=null", "--set", "iterations=2", "--engine", "reference"), {"iterations": 2}),
    ],
)
def test_hyper_parameters(
    options: tuple[str, ...], expected: dict[str, Any], ratings: Path, tmp_path: Path, run: Run
) -> None:
    model_file = tmp_path / "m.safetensors"
    assert run("train", ratings, "-o", model_file, *options, "--set", "factors=2", "-q").code == 0
    parameters = tnr.load(model_file).get_params()
    assert {name: parameters[name] for name in expected} == expected


def test_events(tmp_path: Path, run: Run) -> None:
    file, model_file = tmp_path / "events.csv", tmp_path / "shop.safetensors"
    rows = [f"u{u},i{i},{('view', 'buy', 'cart')[(u + i) % 3]}\n" for u in range(9) for i in range(9) if u != i]
    file.write_text("who,what,action\n" + "".join(rows))
    columns = ("--user", "who", "--item", "what", "--type", "action")
    weights = ("--feedback", "events:buy=1,cart=.5,view=-.1")
    assert run("train", file, "-o", model_file, *columns, *weights, *QUICK, "-q").code == 0
    feedback = tnr.load(model_file).get_params()["feedback"]
    assert feedback == tnr.EventWeights({"buy": 1.0, "cart": 0.5, "view": -0.1})
    assert run("info", file, *columns, "--json").json["types"] == {"buy": 24, "cart": 24, "view": 24}


def test_a_finished_checkpoint_is_not_trained_again(ratings: Path, tmp_path: Path, run: Run) -> None:
    command = ("train", ratings, "-o", tmp_path / "m.safetensors", *QUICK, "--checkpoint", tmp_path / "run", "-q")
    assert run(*command).code == 0
    first = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").unlink()
    assert run(*command).code == 0
    assert (tmp_path / "m.safetensors").read_bytes() == first
    run(*command, "--set", "n=5").assert_refused("another run", "n was 20", "another checkpoint folder")


def test_validation_keeps_the_best_round(ratings: Path, tmp_path: Path, run: Run) -> None:
    command = ("train", ratings, "-o", tmp_path / "m.safetensors", *QUICK)
    facts = run(*command, "--validation", "0.3", "--metric", "map@5", "--patience", "2", "--json").json
    assert 1 <= facts["best_round"] <= facts["rounds"]
    assert list(facts["validation"]) == ["map@5"]


def test_evaluate_tells_of_training_rows(ratings: Path, model_file: Path, tmp_path: Path, run: Run) -> None:
    rows = len(tnr.read(ratings))
    assert (
        f"note: {rows} of {rows} rows were in training"
        in run("evaluate", model_file, ratings, "--protocol", "rated").err
    )
    (tmp_path / "new.csv").write_text("user,item,rating\nu0,i0,5\nu0,i7,4\nu1,i1,5\nnobody,i1,5\nu1,nothing,5\n")
    assert "note: 1 of 5 rows were in training" in run("evaluate", model_file, tmp_path / "new.csv").err


def test_the_scale_is_seen_and_numbers_that_say_nothing_are_not_shown(ratings: Path, tmp_path: Path, run: Run) -> None:
    tens, model = tmp_path / "tens.csv", tmp_path / "tens.safetensors"
    rows = tnr.read(ratings).to_arrow().to_pylist()
    lines = [f"{row['user']},{row['item']},{2 * row['rating']}" for row in rows]
    tens.write_text("\n".join(["user,item,rating", *lines, ""]))
    run("train", tens, "-o", model, "--holdout", "0.5", "--task", "rated", *QUICK)
    test = str(tmp_path / "tens.test.parquet")
    assert "relevant: rating >= 8, four fifths of the scale" in run("evaluate", model, test).out
    run("evaluate", model, test, "--relevant", "1").assert_refused(
        "every test row is relevant", "set --relevant higher"
    )
    all_liked = run("compare", tens, "--models", "biased-mf", "--relevant", "1", "--repeats", "1")
    all_liked.assert_refused("compare: every test row is relevant (rating >= 1)", "nothing is measured")
    told = run("train", tens, "-o", model, "--holdout", "0.5", "--relevant", "6", "--json")
    assert "liked are those with rating >= 6" in " ".join(told.json["notes"])
    assert "relevant: rating >= 6;" in run("evaluate", model, test).out
    ease = run("train", tens, "-o", model, "--holdout", "0.5", "--model", "ease", "--relevant", "6")
    assert (ease.code, tnr.load(model).feedback) == (0, tnr.Threshold(6))
    both = run("train", tens, "-o", model, "--model", "ease", "--relevant", "6", "--feedback", "unary")
    both.assert_refused("--relevant and --feedback both say what is liked")


def test_recommending_with_a_model_of_rated_items_is_noted(ratings: Path, tmp_path: Path, run: Run) -> None:
    run("train", ratings, "-o", tmp_path / "m.safetensors", "--task", "rated", *QUICK)
    shown = run("recommend", tmp_path / "m.safetensors", "--user", "u1")
    assert shown.err.count("note: this model learned to rank the items that a user has rated") == 1
    assert "--task catalog" in shown.err


def test_evaluate_writes_values_of_users(ratings: Path, model_file: Path, tmp_path: Path, run: Run) -> None:
    shown = run(
        "evaluate",
        model_file,
        ratings,
        "--protocol",
        "rated",
        "--per-user",
        tmp_path / "users.csv",
        "--metrics",
        "ndcg@5",
    )
    assert "Protocol rated" in shown.out
    assert "ndcg@5" in shown.out
    with (tmp_path / "users.csv").open(newline="") as file:
        values = {row["user"]: float(row["ndcg@5"] or "nan") for row in csv.DictReader(file)}
    expected = tnr.evaluate(tnr.load(model_file), tnr.read(ratings), protocol="rated", metrics="ndcg@5")
    assert values == pytest.approx(dict(zip(expected.user_ids, expected.per_user["ndcg@5"], strict=True)), nan_ok=True)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("titled", [False, True])
def test_recommendations_for_all(ending: str, titled: bool, model_file: Path, tmp_path: Path, run: Run) -> None:
    titles = tmp_path / "titles.csv"
    titles.write_text('item,title\ni1,"One, with a comma"\ni2,Two\n')
    path = tmp_path / f"top{ending}"
    options = ("--titles", titles) if titled else ()
    told = run("recommend", model_file, "--all", "-n", "2", "-o", path, *options, "--json").json
    rows = _read_rows(path)
    expected = tnr.load(model_file).recommend(n=2).to_pylist()
    assert told["rows"] == len(rows) == len(expected)
    assert [(row["user"], row["item"]) for row in rows] == [(row["user"], row["item"]) for row in expected]
    known = {"i1": "One, with a comma", "i2": "Two"}
    assert all(row["title"] == known.get(row["item"], "") for row in rows) if titled else "title" not in rows[0]
    assert {found.name for found in tmp_path.iterdir()} == {"titles.csv", path.name}


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    text = path.read_text()
    return (
        list(csv.DictReader(text.splitlines())) if path.suffix == ".csv" else list(map(json.loads, text.splitlines()))
    )


def test_recommendations_for_some(model_file: Path, tmp_path: Path, run: Run) -> None:
    model = tnr.load(model_file)
    (tmp_path / "users.txt").write_text("u3\n\n  u1\n")
    rows = run("recommend", model_file, "--users-file", tmp_path / "users.txt", "-n", "1", "--json").json
    assert rows["recommendations"] == model.recommend(["u3", "u1"], n=1).to_pylist()
    kept = run(
        "recommend", model_file, "--user", "u2", "--keep-seen", "--allow", "i1,i2", "--allow", "i3", "--json"
    ).json
    expected = model.recommend(["u2"], exclude_seen=False, items=["i1", "i2", "i3"]).to_pylist()
    assert kept["recommendations"] == expected
    new = run("recommend", model_file, "--history", "i1=5,i4=1", "--exclude", "i5", "-n", "3", "--json").json
    assert new["recommendations"] == model.recommend(history={"i1": 5, "i4": 1}, exclude=["i5"], n=3).to_pylist()
    shown = run("recommend", model_file, "--user", "u1", "--user", "u2")
    assert [title for title in ("user u1", "user u2", "rank", "score") if title not in shown.out] == []


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_unknown_users(ending: str, tmp_path: Path, run: Run) -> None:
    model_file, path = tmp_path / "m.safetensors", tmp_path / f"top.{ending}"
    (tmp_path / "a.csv").write_text(ratings_text().replace("u", "").replace("ser", "user"))  # integer ids
    assert run("train", tmp_path / "a.csv", "-o", model_file, "--model", "item-mean", "-q").code == 0
    for unknown_users in (["77"], ["77", "nobody"]):
        users = [argument for name in ("1", *unknown_users) for argument in ("--user", name)]
        popular = run("recommend", model_file, *users, "--unknown", "popular", "-n", "1", "-o", path, "--json").json
        assert popular["rows"] == 1 + len(unknown_users)
        assert "77" in popular["notes"][0]
        skipped = run("recommend", model_file, *users, "--unknown", "skip", "-n", "1", "-o", path, "--json").json
        assert [str(row["user"]) for row in _read_rows(path)] == ["1"]
        assert "are left out: 77" in skipped["notes"][0]


def test_info_of_a_model(model_file: Path, run: Run) -> None:
    facts = run("info", model_file, "--json").json
    model = tnr.load(model_file)
    assert (facts["model"], facts["users"], facts["items"]) == ("top-n-rank", 24, 10)
    assert facts["parameters"]["factors"] == 4
    assert facts["last_round"] == model.fitted.info.history[-1]
    assert facts["versions"]["topnrank"] == tnr.__version__
    assert "top-n-rank" in run("info", model_file).out


def test_info_of_data(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.dat"
    file.write_text("1::10::5::978300760\n1::11::3::978300761\n2::10::5::978387160\n")
    facts = run("info", file, "--json").json
    assert (facts["rows"], facts["users"], facts["items"], facts["density"]) == (3, 2, 2, 0.75)
    assert facts["rows_per_user"] == {"min": 1, "median": 1.5, "max": 2}
    assert facts["ratings"] == {"3": 1, "5": 2}
    assert facts["timestamps"] == {"first": 978300760, "last": 978387160, "dates": "2000-12-31 to 2001-01-01"}
    tabs = tmp_path / "b.txt"
    tabs.write_text("who\twhat\nann\tx\n")
    assert run("info", tabs, "--separator", "\\t", "--user", "who", "--item", "what", "--json").json["rows"] == 1


def test_models(run: Run) -> None:
    assert run("models", "--json").json["models"] == {name: kind.summary for name, kind in tnr.MODELS.items()}
    assert run("models", "biased-mf", "--json").json["parameters"] == tnr.BiasedMF().get_params()
    assert [name for name in tnr.MODELS if name not in run("models").out] == []


def test_ids_are_never_markup(tmp_path: Path, run: Run) -> None:
    model_file = tmp_path / "m.safetensors"
    (tmp_path / "a.csv").write_text("user,item,rating\n[red]x,:smile:,5\n[red]x,[/b],2\ny,:smile:,3\ny,[/b],4\n")
    assert run("train", tmp_path / "a.csv", "-o", model_file, "--model", "item-mean", "-q").code == 0
    shown = run("recommend", model_file, "--user", "[red]x", "--keep-seen").out
    assert [text for text in ("user [red]x", ":smile:", "[/b]") if text not in shown] == []


def test_demo(tmp_path: Path, run: Run) -> None:
    facts = run("demo", "--output", tmp_path, "--json").json
    assert [result["model"] for result in facts["results"]] == [
        "Top-N-Rank (default)",
        "NeighborRidge",
        "EASE",
        "Popularity",
        "Random",
    ]
    values = [result["values"]["ndcg@10"] for result in facts["results"]]
    assert values[0] > values[3] > values[4]  # learning beats popularity, and popularity beats chance
    titles = tnr.demo_titles()
    assert all(row["title"] == titles[row["item"]] for one in facts["recommendations"] for row in one["items"])
    assert all(len(one["items"]) == 10 and len(one["liked"]) == 3 for one in facts["recommendations"])
    best = tnr.load(tmp_path / "demo.safetensors").recommend([facts["recommendations"][0]["user"]], n=1)
    assert best["item"][0].as_py() == facts["recommendations"][0]["items"][0]["item"]


def test_demo_for_people(tmp_path: Path, run: Run) -> None:
    shown = run("demo", "--output", tmp_path)
    assert shown.code == 0
    expected = ("NeighborRidge", "ndcg@20", "seconds", "Protocol catalog", "liked:", "What to type next")
    assert [text for text in expected if text not in shown.out] == []
