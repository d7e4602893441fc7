"""`topnrank compare`: the numbers of the Python API, tables for people, refusals, files."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topnrank as tnr
from support.cli_runner import Run
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.compare.run import compare
from topnrank.experiments.report.data import to_csv
from topnrank.experiments.report.latex import to_latex
from topnrank.experiments.report.markdown import to_markdown
from topnrank.experiments.statistics import bootstrap_intervals, paired_tests
from topnrank.models.persistence import write_params

TABLES = {"markdown": to_markdown, "csv": to_csv, "latex": to_latex}
FEW = ("--repeats", "2", "--metric", "ndcg@3,mrr", "--relevant", "3.5")
SMALL = ("--set", "biased-mf.factors=4", "--set", "biased-mf.epochs=2")
CONTROLS = ["item-mean", "popularity", "random"]


def api(ratings: Path, **options: Any) -> Comparison:
    model = tnr.BiasedMF(factors=4, epochs=2)
    return compare([model], tnr.read(ratings), repeats=2, metrics=("ndcg@3", "mrr"), relevant=3.5, **options)


def test_json_has_the_numbers_of_the_api(ratings: Path, run: Run) -> None:
    told = run("compare", ratings, "--models", "biased-mf", *SMALL, *FEW, "--protocol", "both", "--json").json
    expected = api(ratings, protocol="both")
    assert told["models"] == list(expected.models) == ["biased-mf", *CONTROLS]
    assert len(told["results"]) == 8
    for result in told["results"]:
        place = result["model"], result["protocol"]
        for metric, values in result["values"].items():
            assert values["mean"] == expected.mean(*place, metric)
            assert values["std"] == expected.std(*place, metric)
            interval = bootstrap_intervals([expected.values(*place, metric)])[0]
            assert tuple(values["interval"]) == pytest.approx(interval, abs=1e-12)  # all columns are drawn at once
        assert result["error"] is None
        assert result["fit_seconds"] >= 0
    tests = paired_tests(expected)
    assert [test["t_holm"] for test in told["tests"]] == [test.t_holm for test in tests]
    assert [test["second"] for test in told["tests"]] == [test.second for test in tests]
    assert told["facts"] == expected.facts
    assert told["settings"]["parameters"]["biased-mf"]["epochs"] == 2
    assert told["notes"] == []


def test_tables_for_people(ratings: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    models = "biased-mf,broken=biased-mf"
    metrics = ("--metrics", "ndcg@1,ndcg@3,ndcg@5,ndcg@10,ndcg@20")
    settings = (*SMALL, "--set", "broken.learning_rate=1e30")
    shown = run("compare", ratings, "--models", models, *settings, *metrics, "--repeats", "2", "--reference", "random")
    assert shown.code == 0
    table = shown.out.partition("95 %: bootstrap")[0]
    assert max(map(len, table.splitlines()[:-2])) <= 100
    expected = compare([tnr.BiasedMF(factors=4, epochs=2)], tnr.read(ratings), repeats=2)
    for metric in ("ndcg@1", "ndcg@20"):
        assert f"{expected.mean('biased-mf', 'rated', metric):.4f}" in table
        assert f"±{expected.std('biased-mf', 'rated', metric):.4f}" in table
    assert "broken failed: BiasedMF: training diverged" in shown.out
    _, _, tests = shown.out.partition("Against random")
    row = re.search(r"biased-mf +([-+]0\.\d{4}) (\**)", tests)
    test = next(test for test in paired_tests(expected, "random") if test.second == "biased-mf")
    assert row is not None
    assert (row[1], row[2]) == (f"{test.difference:+.4f}", test.stars)
    assert "Holm-corrected" in tests
    assert "Protocol rated" in shown.out
    assert "shorter than 20" in shown.out


def test_labels_and_settings(ratings: Path, run: Run) -> None:
    models = "slow=biased-mf, fast = biased-mf,item-mean"
    settings = ("--set", "slow.learning_rate=1e-6", "--set", "fast.factors=3", "--set", "item-mean.damping=1")
    told = run("compare", ratings, "--models", models, *settings, *FEW, "--no-controls", "--json").json
    assert told["models"] == ["slow", "fast", "item-mean"]
    parameters = told["settings"]["parameters"]
    assert (parameters["slow"]["learning_rate"], parameters["fast"]["factors"]) == (1e-6, 3)
    assert parameters["item-mean"] == {"damping": 1}


def test_rows_with_tuned_parameters(ratings: Path, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "best.json"
    write_params(file, tnr.BiasedMF(factors=4, epochs=2))
    expected = run("compare", ratings, "--models", "biased-mf", *SMALL, *FEW, "--json").json["results"]
    found = run("compare", ratings, "--params", file, *FEW, "--json").json["results"]
    assert [row["values"] for row in found] == [row["values"] for row in expected]
    both = (
        "--models",
        "biased-mf",
        "--params",
        f"tuned={file}",
        "--set",
        "biased-mf.epochs=1",
        "--set",
        "tuned.seed=3",
    )
    told = run("compare", ratings, *both, *FEW, "--json").json
    assert told["models"][:2] == ["biased-mf", "tuned"]
    assert told["settings"]["parameters"]["tuned"]["factors"] == 4
    assert told["settings"]["parameters"]["tuned"]["seed"] == 3
    assert told["settings"]["parameters"]["biased-mf"]["factors"] == tnr.BiasedMF().factors
    run("compare", ratings, "--models", "best=bpr", "--params", f"best={file}").assert_refused(
        "is for biased-mf", "bpr"
    )
    run("compare", ratings, "--params", tmp_path / "none.json").assert_refused("none.json", "cannot be read")
    run("compare", ratings).assert_refused("--models", "--params")


def test_folder_jobs_split_and_quiet(ratings: Path, tmp_path: Path, run: Run) -> None:
    command = ("compare", ratings, "--models", "popularity", *FEW, "--test", "0.3", "--seed", "4", "--folder", tmp_path)
    first = run(*command, "--json").json
    assert (first["settings"]["seeds"], first["settings"]["test"]) == ([4, 5], 0.3)
    loaded = Comparison.load(tmp_path)
    assert loaded.mean("popularity", "catalog", "mrr") == first["results"][0]["values"]["mrr"]["mean"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cell-*")}
    quiet = run(*command, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("cell-*")} == before
    other = run(*command, "--relevant", "2")
    other.assert_refused("belongs to another comparison", "relevant was 'rating >= 3.5', now it is 'rating >= 2'")


@pytest.mark.process
def test_jobs_as_a_program(ratings: Path, run: Run, run_process: Run) -> None:
    command = ("compare", ratings, "--models", "biased-mf", *SMALL, *FEW, "--json")
    alone, beside = run(*command).json, run_process(*command, "--jobs", "2").json
    assert [result["values"] for result in beside["results"]] == [result["values"] for result in alone["results"]]
    assert beside["tests"] == alone["tests"]


def test_filters_and_last_items(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.csv"
    rows = [
        f"u{user},i{item},{(user * item) % 5 + 1},{item * (3 + user % 3 * 4) % 11}\n"
        for user in range(9)
        for item in range(8)
    ]
    file.write_text("user,item,rating,timestamp\n" + "".join(rows) + "loner,i1,4,1\n")
    options = ("--split", "last", "--test", "2", "--min-user-items", "3", "--repeats", "1", "--metric", "mrr")
    told = run("compare", file, "--models", "random", *options, "--json").json
    assert told["facts"]["users"] == 9
    assert told["facts"]["test_rows"] == [18]
    assert told["notes"] == ["the filter left out 1 users, 0 items, 1 rows"]
    assert told["results"][0]["values"]["mrr"]["std"] is None
    by_file = run("compare", file, "--models", "random", *options, "--ties", "file", "--json").json
    assert "taken in the order of the file" in by_file["facts"]["order"]


@pytest.mark.parametrize("split", ["last", "time"])
def test_the_whole_catalog_by_time(tmp_path: Path, run: Run, split: str) -> None:
    file = tmp_path / "log.csv"
    rows = [f"u{user},i{(3 * user + 5 * k) % 17},{1000 * k + user}\n" for user in range(20) for k in range(9)]
    file.write_text("user,item,timestamp\n" + "".join(rows))
    names = "ndcg@3,novelty@3,popularity@3"
    command = ("compare", file, "--models", "ease", "--protocol", "catalog", "--split", split, "--repeats", "1")
    told = run(*command, "--metric", names, "--json").json
    parts = {"last": tnr.split_last, "time": tnr.split_time}[split](tnr.read(file))
    expected = tnr.evaluate(tnr.EASE().fit(parts[0]), parts[1], protocol="catalog", metrics=names.split(","))
    assert {name: value["mean"] for name, value in told["results"][0]["values"].items()} == expected.values
    shown = run(*command, "--metric", names, "--quiet")
    assert (shown.code, "novelty@3" in shown.out, "popularity lift" in shown.out) == (0, True, True)


def test_events_are_weighted_for_all_models_alike(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "events.csv"
    kinds = ("view", "buy", "dislike")
    rows = [f"u{user},i{item},{kinds[(user + item) % 3]}\n" for user in range(12) for item in range(9)]
    file.write_text("user,item,type\n" + "".join(rows))
    command = ("compare", file, "--models", "top-n-rank", "--set", "top-n-rank.epochs=2", "--repeats", "1", "--json")
    run(*command).assert_refused("feedback types but no weights", "--feedback events:")
    told = run(*command, "--feedback", "events:buy=1,view=.1,dislike=-1", "--metric", "ndcg@3").json
    assert told["settings"]["relevance"] == "weight > 0"
    assert [result["error"] for result in told["results"]] == [None] * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--models", "top-n-rnk"), ("'top-n-rank'", "'climf'", "did you mean 'top-n-rank'?")),
        (("--models", "a=climff"), ("did you mean 'climf'?",)),
        (("--models", ","), ("--models must name at least one of top-n-rank",)),
        (("--models", "climf,climf"), ("--models names 'climf' twice", "other=climf")),
        (("--models", "climf", "--set", "epochs=5"), ("--set needs NAME.PARAM=VALUE", "climf.seed=1")),
        (("--models", "climf", "--set", "bpr.epochs=5"), ("--set: the row before the dot must be one of 'climf'",)),
        (("--models", "climf", "--set", "climf.epoch=5"), ("CLiMF has no parameter 'epoch'",)),
        (("--models", "climf", "--reference", "bpr"), ("--reference must be one of 'climf', 'item-mean'",)),
        (("--models", "climf", "--protocol", "all"), ("protocol must be one of 'auto', 'rated', 'catalog', 'both'",)),
        (("--models", "climf", "--metric", "ndgc@3"), ("did you mean 'ndcg'?",)),
        (("--models", "climf", "--metric", "coverage@3"), ("one number for all users",)),
        (("--models", "climf", "--repeats", "0"), ("repeats must be an integer of at least 1",)),
        (("--models", "climf", "--jobs", "0"), ("jobs must be an integer of at least 1",)),
        (("--models", "climf", "--split", "lost"), ("did you mean 'last'?",)),
        (("--models", "climf", "--split", "last", "--test", "0.5"), ("integer number of items per user",)),
        (("--models", "climf", "--relevant", "x"), ("--relevant must be a number",)),
        (("--models", "climf", "--csv", "no-such-folder/a.csv"), ("no-such-folder/a.csv: cannot be written",)),
        ((), ("--models",)),
    ],
)
def test_bad_input(options: tuple[str, ...], words: tuple[str, ...], tmp_path: Path, run: Run) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "user,item,rating,timestamp\n"
        + "".join(f"u{u},i{i},{i % 5 + 1},{i * (4 + u % 2) % 9}\n" for u in range(5) for i in range(9))
    )
    run("compare", file, *options).assert_refused(*words)


def test_a_file_that_does_not_exist(tmp_path: Path, run: Run) -> None:
    run("compare", tmp_path / "none.csv", "--models", "random").assert_refused("none.csv", "no such file")


@pytest.mark.parametrize("kind", TABLES)
def test_tables_in_files(kind: str, ratings: Path, tmp_path: Path, run: Run) -> None:
    told = run(
        "compare",
        ratings,
        "--models",
        "random",
        *FEW,
        f"--{kind}",
        tmp_path / "t",
        "--folder",
        tmp_path / "f",
        "--json",
    )
    assert told.json["files"] == {kind: str(tmp_path / "t")}
    comparison = Comparison.load(tmp_path / "f")
    assert (tmp_path / "t").read_text() == TABLES[kind](comparison)


def test_a_report_in_a_file(ratings: Path, tmp_path: Path, run: Run) -> None:
    pytest.importorskip("matplotlib")
    shown = run("compare", ratings, "--models", "random", *FEW, "--report", tmp_path / "page.html")
    assert shown.code == 0
    assert f"report written to {tmp_path / 'page.html'}" in shown.out
    assert "<html" in (tmp_path / "page.html").read_text()


def test_the_json_is_plain(ratings: Path, run: Run) -> None:
    """No NaN: undefined numbers are null."""
    out = run("compare", ratings, "--models", "random", "--repeats", "1", "--metric", "mrr", "--json").out
    assert "NaN" not in out
    assert json.loads(out)["results"][0]["values"]["mrr"]["std"] is None
    assert np.isfinite(json.loads(out)["results"][0]["values"]["mrr"]["mean"])
