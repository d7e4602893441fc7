"""`topnrank reproduce`."""

from pathlib import Path

import pytest

import topnrank as tnr
from support.cli_runner import Run
from support.official_files import lines, pack
from topnrank.experiments.paper.published import TABLE2
from topnrank.experiments.paper.reproduce import reproduce
from topnrank.io.tables import write_table


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


def paper_archive(name: str) -> tuple[str, bytes]:
    """File name and content of one of the paper's data sets as its owners publish it: half stars, few users with ten."""
    data = tnr.synthetic(50, 40, ratings=1100, half_stars=name == "ml-20m", min_list=5, seed=6).to_arrow().to_pydict()
    rows = list(zip(data["user"], data["item"], data["rating"], range(10**9, 10**9 + 1100), strict=True))
    if name == "ml-20m":
        header = "userId,movieId,rating,timestamp"
        return "ml-20m.zip", pack({"ml-20m/": "", "ml-20m/ratings.csv": lines(rows, ",", "\r\n", header)})
    return "ratings_Video_Games.csv", lines([(f"A{u}", f"B{i:04d}", r, t) for u, i, r, t in rows], ",").encode()


@pytest.mark.parametrize("name", ["ml-20m", "amazon-video-games"])
def test_the_papers_own_data_from_their_official_files(
    name: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loader, the paper's filter of ten ratings, training, and the published numbers beside ours."""
    archive, content = paper_archive(name)
    (tmp_path / archive).write_bytes(content)
    monkeypatch.setenv("TOPNRANK_DATA", str(tmp_path))
    page = tmp_path / "table.md"
    assert run("reproduce", "table2", "--data", name, "--repeats", "1", "--markdown", page, "-q").code == 0
    text = page.read_text()
    kept = tnr.load_dataset(name, min_user_items=10, progress=False)
    assert kept.n_users < tnr.load_dataset(name, min_user_items=0, progress=False).n_users
    assert f"{kept.n_users} users with 10 ratings or more" in text
    published = TABLE2[name]["Top-N-Rank.ReLU"][0]
    assert f"/ {published:.4f}" in next(line for line in text.splitlines() if line.startswith("| Top-N-Rank.ReLU |"))
