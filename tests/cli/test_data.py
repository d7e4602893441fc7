"""`topnrank data`: list, fetch and describe, against a real server on loopback."""

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from support.cli_runner import Run
from support.file_server import FileServer, serving
from support.official_files import official, without_known_checksums
from topnrank.data.datasets.registry import DATASETS


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server with all data sets, no local data, an empty cache."""
    monkeypatch.delenv("TOPNRANK_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path / "cache"))
    without_known_checksums(monkeypatch)
    with serving() as running:
        for one in official().values():
            running.files |= one.files
        monkeypatch.setenv("TOPNRANK_MIRROR", running.address)
        yield running


@pytest.mark.parametrize("command", ["list", "fetch", "describe"])
def test_help_teaches(command: str, run: Run) -> None:
    shown = run("data", command, "-h")
    assert shown.code == 0
    assert shown.out.count(f"topnrank data {command}") >= 3
    assert "--json" in shown.out
    assert f"  {command} " in run("data").out
    assert "TOPNRANK_MIRROR" in run("data", "--help").out
    assert "  data " in run("--help").out


def test_list(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    official()["ml-1m"].write(tmp_path / "mine")
    monkeypatch.setenv("TOPNRANK_DATA", str(tmp_path / "mine"))
    found = run("data", "list", "--json").json["datasets"]
    assert [one["name"] for one in found] == list(DATASETS)
    here = {one["name"]: one["here"] for one in found}
    assert here.pop("ml-1m") == str(tmp_path / "mine" / "ml-1m.zip")
    assert set(here.values()) == {None}
    shown = run("data", "list").out
    assert "20,000,263" in shown
    assert "no redistribution" in shown
    assert shown.count("not on this machine") == len(DATASETS) - 1


def test_fetch(run: Run, tmp_path: Path, mirror: FileServer) -> None:
    first = run("data", "fetch", "ml-100k", "retail-rocket")
    archive = tmp_path / "cache" / "data" / "ml-100k.zip"
    assert (first.code, first.err) == (0, "")
    assert f"ml-100k: {archive} (MD5 " in first.out
    assert "ecommerce-dataset.zip (no checksum is published)" in first.out
    asked = len(mirror.asked)
    again = run("data", "fetch", "ml-100k", "--json").json
    assert again["datasets"] == [{"name": "ml-100k", "path": str(archive), "fetched": False, "md5": None}]
    assert f"was on this machine, {archive}" in run("data", "fetch", "ml-100k").out
    assert run("data", "fetch", "ml-100k", "-q").out == ""
    assert len(mirror.asked) == asked


def test_fetch_that_fails(run: Run, mirror: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    run("data", "fetch", "ml-1m", "ml-1mm").assert_refused("'ml-20m'", "did you mean 'ml-1m'")
    assert mirror.asked == []
    monkeypatch.setitem(DATASETS, "ml-1m", replace(DATASETS["ml-1m"], md5="0" * 32))  # type: ignore[arg-type]
    run("data", "fetch", "ml-1m").assert_refused("ml-1m cannot be fetched", "fetch it again", "TOPNRANK_DATA")
    without_known_checksums(monkeypatch)
    assert run("data", "fetch", "ml-1m", "--json").json["datasets"][0]["fetched"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("TOPNRANK_MIRROR", f"http://127.0.0.1:{taken.getsockname()[1]}")
        run("data", "describe", "ml-20m").assert_refused("cannot be reached", "ml-20m.zip", "by another way", "cache")


def test_describe_a_data_set(run: Run, tmp_path: Path) -> None:
    facts = run("data", "describe", "amazon-video-games", "--json").json
    assert (facts["rows"], facts["users"], facts["items"], facts["min_user_items"]) == (10, 1, 10, 10)
    assert facts["file"] == str(tmp_path / "cache" / "data" / "ratings_Video_Games.csv")
    assert facts["whole_set"]["rows"] == 1_324_753
    assert facts["ratings"] == {"1": 3, "2": 2, "3": 2, "4": 2, "5": 1}
    assert facts["users_by_list_length"] == {"10-19": 1}
    assert facts["popularity"] == {"top 1 % of items": 0.1, "top 10 % of items": 0.1, "gini": pytest.approx(0)}
    everybody = run("data", "describe", "amazon-video-games", "--min-user-items", "0", "--json").json
    assert (everybody["rows"], everybody["users"], everybody["density"]) == (19, 2, 19 / 20)
    assert everybody["items_per_user"]["median"] == 9.5
    events = run("data", "describe", "retail-rocket", "--json").json
    assert events["types"] == {"addtocart": 1, "transaction": 1, "view": 2}
    assert events["timestamps"]["dates"] == "2015-06-02 to 2015-06-02"
    assert events["merged_rows"] == 1


def test_describe_prints_for_people(run: Run, ratings: Path) -> None:
    shown = run("data", "describe", ratings).out
    data = tnr.read(ratings)
    assert f"rows                {len(data)}" in shown
    longest = max(line.count("━") for line in shown.splitlines())
    assert longest == 40
    assert "5-9" in shown
    assert "90-100 %" in shown
    assert "gini" in shown
    few = run("data", "describe", ratings, "--min-user-items", "9", "--json").json
    assert few["users"] == data.filter(min_user_items=9).n_users < data.n_users


def test_bars_on_a_terminal_that_has_no_blocks(run_process: Run, ratings: Path) -> None:
    shown = run_process("data", "describe", ratings, PYTHONIOENCODING="ascii")
    assert shown.code == 0
    assert "-" * 40 in shown.out
    assert "\\u" not in shown.out


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("C.SVG", b"<?xml")])
def test_describe_draws_a_figure(name: str, start: bytes, run: Run, ratings: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    assert f"figure written to {path}" in run("data", "describe", ratings, "--plot", path).out
    drawn = path.read_bytes()
    assert drawn.startswith(start)
    run("data", "describe", ratings, "--plot", path)
    assert name.endswith(".png") or b"dc:date" not in drawn
    assert [found.name for found in tmp_path.iterdir() if found.name != "cache"] == [name]


def test_describe_with_wrong_words(run: Run, ratings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("data", "describe", "ml-2m").assert_refused("no such file either", "'ml-20m'", "did you mean")
    run("data", "describe", "none.csv").assert_refused("none.csv", "no such file")
    run("data", "describe", "ml-1m", "--user", "u").assert_refused("ml-1m", "--user", "./ml-1m")
    run("data", "describe", ratings, "--plot", tmp_path / "a.gif").assert_refused("a.gif", ".png or .svg", "rename")
    run("data", "describe", ratings, "--plot", tmp_path / "no" / "a.png").assert_refused("a.png", "create its folder")
    run("data", "describe", ratings, "--min-user-items", "99").assert_refused("no rows are left", "lower them")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run("data", "describe", ratings, "--plot", tmp_path / "a.png").assert_refused(
        "need Matplotlib", "pip install 'topnrank[report]'"
    )


def test_an_extract_is_called_one(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = {"user": [1, 1], "item": [1, 2], "type": ["view", "buy"], "timestamp": [1433221332, 1433221333]}
    pq.write_table(pa.table(events), tmp_path / "retail-rocket-sslrec.parquet")
    monkeypatch.setenv("TOPNRANK_DATA", str(tmp_path))
    facts = run("data", "describe", "retail-rocket", "--json").json
    assert facts["types"] == {"buy": 1, "view": 1}
    assert ["is an extract of retail-rocket" in note for note in facts["notes"]] == [True]


def test_a_data_set_stands_where_a_file_may_stand(run: Run, tmp_path: Path) -> None:
    told = run("train", "ml-100k", "-o", tmp_path / "m.safetensors", "--model", "item-mean", "--json").json
    assert told["data"]["rows"] == len(tnr.load_dataset("ml-100k", progress=False))
    compared = run("compare", "ml-100k", "--models", "popularity", "--repeats", "1", "--metric", "mrr", "--json").json
    assert compared["data"] == "ml-100k"
