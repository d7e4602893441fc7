"""The wishes of `topnrank recommend`, and `topnrank explain`: the same as the Python API gives."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from support.cli_runner import Run


@pytest.fixture
def model(model_file: Path) -> tnr.Model:
    return tnr.load(model_file)


def answers(run: Run, *arguments: object) -> list[dict[str, Any]]:
    """The rows that `topnrank recommend` prints."""
    rows: list[dict[str, Any]] = run("recommend", *arguments, "--json").json["recommendations"]
    return rows


def test_items_of_files(model_file: Path, model: tnr.Model, tmp_path: Path, run: Run) -> None:
    (tmp_path / "items.txt").write_text("i1\n\n i2 \n")
    (tmp_path / "items.tsv").write_text("title\titem\nOne\ti1\nTwo\ti2\n")
    for file in ("items.txt", "items.tsv"):
        both = ("--user", "u1", "--keep-seen", "--allow-file", tmp_path / file, "--allow", "i4")
        expected = model.recommend("u1", exclude_seen=False, items=["i1", "i2", "i4"]).to_pylist()
        assert answers(run, model_file, *both) == expected
    pq.write_table(pa.table({"item": ["i1", "i2", "i3"], "user": ["u1", "u1", "u2"]}), tmp_path / "seen.parquet")
    users = ("--user", "u1", "--user", "u2", "--user", "u3", "--keep-seen")
    expected = model.recommend(["u1", "u2", "u3"], exclude_seen=False, exclude={"u1": ["i1", "i2"], "u2": ["i3"]})
    assert answers(run, model_file, *users, "--exclude-file", tmp_path / "seen.parquet") == expected.to_pylist()
    refused = run("recommend", model_file, *users, "--exclude-file", tmp_path / "seen.parquet", "--exclude", "i5")
    refused.assert_refused("seen.parquet", "by user", "--exclude")


def test_scores_and_groups(model_file: Path, model: tnr.Model, tmp_path: Path, run: Run) -> None:
    (tmp_path / "groups.csv").write_text("group,item\n" + "".join(f"{'ab'[k % 2]},i{k}\n" for k in range(8)) + ",i8\n")
    groups = {f"i{k}": "ab"[k % 2] for k in range(8)}
    wish = ("--user", "u1", "--keep-seen", "--groups", tmp_path / "groups.csv", "--max-per-group", "1")
    expected = model.recommend("u1", exclude_seen=False, groups=groups, max_per_group=1).to_pylist()
    assert len(expected) == 4  # one of each group, and two items that have none
    assert answers(run, model_file, *wish) == expected
    bar = expected[1]["score"]
    assert answers(run, model_file, *wish, "--min-score", bar) == expected[:2]
    nothing = run("recommend", model_file, *wish, "--min-score", "1e9")
    assert (nothing.code, "nothing to recommend" in nothing.err) == (0, True)
    path = tmp_path / "all.csv"
    told = run("recommend", model_file, "--all", "-o", path, *wish[2:], "--json").json
    assert told["rows"] == model.recommend(exclude_seen=False, groups=groups, max_per_group=1).num_rows


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_histories_of_a_file(ending: str, model_file: Path, model: tnr.Model, tmp_path: Path, run: Run) -> None:
    file, path = tmp_path / "new.csv", tmp_path / f"lists.{ending}"
    file.write_text("user,item,rating\nbob,i1,5\nann,i2,1\nann,i3,4\nann,zz,4\n")
    run("recommend", model_file, "--histories", file).assert_refused("user 'ann'", "'zz'", "--unknown-items skip")
    skip = ("--histories", file, "--unknown-items", "skip", "-n", "2")
    histories = {"ann": {"i2": 1, "i3": 4}, "bob": {"i1": 5}}
    expected = model.recommend(histories=histories, n=2).to_pylist()
    shown = run("recommend", model_file, *skip, "--json").json
    assert shown["recommendations"] == expected
    assert "1 of 4 rows of the histories" in shown["notes"][0]
    assert "zz" in shown["notes"][0]
    assert run("recommend", model_file, *skip, "-o", path, "--json").json["rows"] == 4
    assert [row["item"] for row in tnr_rows(path)] == [row["item"] for row in expected]
    assert [text for text in ("user ann", "user bob") if text not in run("recommend", model_file, *skip).out] == []


def tnr_rows(path: Path) -> list[dict[str, Any]]:
    from pyarrow import csv

    rows: list[dict[str, Any]] = (pq.read_table if path.suffix == ".parquet" else csv.read_csv)(path).to_pylist()
    return rows


def test_explain_gives_the_parts_of_the_api(model_file: Path, model: tnr.Model, tmp_path: Path, run: Run) -> None:
    (tmp_path / "titles.csv").write_text("item,title\ni1,One\ni3,Three\n")
    told = run(
        "explain", model_file, "--user", "u1", "--item", "i2", "--titles", tmp_path / "titles.csv", "--json"
    ).json
    expected = model.explain("u1", "i2").select(["part", "what", "because"]).to_pylist()
    assert [{name: row[name] for name in ("part", "what", "because")} for row in told["parts"]] == expected
    assert told["score"] == pytest.approx(model.score("u1", "i2")[0], abs=1e-5)
    assert {row["title"] for row in told["parts"]} == {"One", "Three", ""}
    new = run("explain", model_file, "--history", "i1=5,i4=1", "--item", "i2", "--json").json
    expected = model.explain(history={"i1": 5, "i4": 1}, item="i2").select(["part", "what", "because"]).to_pylist()
    assert new["parts"] == expected
    assert new["user"] is None


def test_explain_prints_for_people(model_file: Path, model: tnr.Model, run: Run) -> None:
    shown = run("explain", model_file, "--user", "u1", "--item", "i2", "-n", "3").out
    parts = model.explain("u1", "i2")["part"].to_pylist()
    count, score = len(parts), f"score {sum(parts):.4f}"
    words = ("item i2 for user u1", score, "because", f"{count - 3} others")
    assert [text for text in words if text not in shown] == []
    assert "others" not in run("explain", model_file, "--user", "u1", "--item", "i2", "-n", "30").out


EXPLAIN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nobody": (("--item", "i1"), ("exactly one of", "--user", "--history")),
    "both": (("--item", "i1", "--user", "u1", "--history", "i2"), ("exactly one of",)),
    "no item": (("--user", "u1"), ("--item",)),
    "unknown item": (("--user", "u1", "--item", "zz"), ("does not know item", "'zz'")),
    "unknown user": (("--user", "ann", "--item", "i1"), ("does not know user", "'ann'")),
    "no rows": (("--user", "u1", "--item", "i1", "-n", "0"), ("-n", "at least 1", "got 0")),
}


@pytest.mark.parametrize("name", EXPLAIN)
def test_options_of_explain(name: str, model_file: Path, run: Run) -> None:
    options, fragments = EXPLAIN[name]
    run("explain", model_file, *options).assert_refused(*fragments)


def test_a_model_that_cannot_explain_says_which_can(ratings: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "m.safetensors"
    tnr.ItemMean().fit(tnr.read(ratings)).save(path)
    run("explain", path, "--user", "u1", "--item", "i1").assert_refused(
        "ItemMean", "user_representation=history", "TopNRank"
    )
