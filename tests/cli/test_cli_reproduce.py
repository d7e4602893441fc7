"""`topnrank reproduce`."""

from pathlib import Path

import pytest
from cli_runner import Run

import topnrank as tnr
from topnrank.cli.files import write_table
from topnrank.paper import reproduce

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings of users with twenty each."""
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    write_table(str(path), tnr.synthetic(60, 40, seed=5).to_arrow())
    return path


def test_help_teaches(run: Run) -> None:
    shown = run("reproduce", "--help")
    assert shown.code == 0
    assert shown.out.count("topnrank reproduce") >= 3
    assert "--fair" in shown.out


def test_table2_of_a_file(rated: Path, tmp_path: Path, run: Run) -> None:
    page = tmp_path / "t2.md"
    command = ("reproduce", "table2", "--data", rated, "--repeats", "2", "--folder", tmp_path / "run")
    told = run(*command, "--markdown", page, "--json", "-q").json
    expected = reproduce("table2", tnr.read(rated), repeats=2)
    assert told["rows"].keys() == set(expected.rows)
    for row in expected.rows:
        assert list(told["rows"][row]["values"].values()) == pytest.approx(expected.mean(row), rel=1e-12)
    assert told["users_left_out"] == expected.users_left_out()
    assert "| Top-N-Rank.ReLU |" in page.read_text()
    shown = run(*command, "-q")  # from the folder
    assert shown.code == 0
    assert [text for text in ("non-Top-N.sgm", "effective N", "Users left out") if text not in shown.out] == []


def test_refusals(rated: Path, tmp_path: Path, run: Run) -> None:
    run("reproduce", "table3", "--data", rated).assert_refused("table3", "'table2', 'table4'")
    run("reproduce", "table4", "--data", rated, "--fair", "-q").assert_refused("leave it out for table4")
    run("reproduce", "table2", "--data", rated, "--markdown", tmp_path).assert_refused("is a folder")
    run("reproduce", "table2", "--data", "ml-20n", "-q").assert_refused("did you mean 'ml-20m'")
