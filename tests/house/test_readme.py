"""The README: its Python block runs, its commands exist, its tables and those of the overview come from the results."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs/results/index.md").read_text()
"""The findings: excerpts of the pages beside it."""


@pytest.fixture
def folder_with_data(tmp_path, monkeypatch):
    """A folder with the file the README speaks of, and the ids in it."""
    rng = np.random.default_rng(0)
    users, items = [42, 43, *range(100, 130)], [1193, 661, *range(1, 31)]
    pairs = [(user, item) for user in users for item in items if rng.random() < 0.6 or item in (1193, 661)]
    lines = [f"{user},{item},{rng.integers(1, 6)}" for user, item in pairs]
    (tmp_path / "ratings.csv").write_text("\n".join(["userId,movieId,rating", *lines]))
    (tmp_path / "movies.csv").write_text("\n".join(["item,title", *[f"{item},Film {item}" for item in items]]))
    (tmp_path / "today.csv").write_text("userId,movieId,rating\n42,2,4\n200,1193,5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_one_page():
    assert len(README.splitlines()) <= 110
    assert max(map(len, README.splitlines())) <= 200


def test_the_python_blocks_run(folder_with_data):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 1
    scope = {}
    for block in blocks:
        exec(block.replace("progress=True", "progress=False"), scope)
    assert (folder_with_data / "movies.safetensors").exists()


def test_the_commands_run(folder_with_data, capsys):
    from topnrank.cli import main

    commands = re.findall(r"^    topnrank (.*?)(?:\s{2,}#.*)?$", README, flags=re.MULTILINE)
    assert len(commands) >= 5
    commands += re.findall(r"`topnrank ([^`]+)`", README)
    for command in commands:
        words = shlex.split(command)
        if words[0] == "serve":  # runs until it is stopped; tests/serve starts it
            words.append("--help")
        assert main(words) == 0, (command, capsys.readouterr().err)


def test_the_models_it_names_exist():
    import topnrank as tnr

    table = README.split("## Which model when")[1].split("\n##")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 7
    names = set(re.findall(r"\b([A-Z]\w+)(?:\.\w+)?\(", "".join(rows)))
    assert names >= {"TopNRank", "EASE", "NeighborRidge", "ListPMF"}
    for name in names:
        assert hasattr(tnr, name), name
    for call in re.findall(r"`((?:TopNRank|EASE|NeighborRidge|ListPMF|CLiMF|ListRank|BPR)[^`]*\))`", "".join(rows)):
        eval(call, {name: getattr(tnr, name) for name in names})


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_table_of_rated_items_agrees_with_the_results():
    """Every row of the overview's quality table stands in docs/results/quality.md with the same numbers."""
    results = (ROOT / "docs/results/quality.md").read_text()
    one, two = results.split("## ml-1m")
    found = re.findall(r"^\| ([^|]+?) \| (\.\d{4}) \| (\.\d{4}) \|$", OVERVIEW, flags=re.MULTILINE)
    assert len(found) >= 11
    for name, small, large in found:
        for text, value in ((one, small), (two, large)):
            row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
            assert row.split("|")[5].strip() == f"0{value}", name


def test_the_table_of_all_models_agrees_with_the_results():
    """Every number of it stands in docs/results/models.md, in the row and data set it claims."""
    one, two = (ROOT / "docs/results/models.md").read_text().split("## ml-1m")
    number = r" \| (\.\d{4})"
    found = re.findall(rf"^\| `(\w+)(.*?){number * 4} \|$", OVERVIEW, flags=re.MULTILINE)
    assert len(found) >= 13
    for name, rest, *values in found:
        metric = re.search(r'metric="(\w+)"', rest)
        row = f"{name}(metric='{metric[1]}') without squared term" if metric else name
        for value, text, users in zip(values, (one, one, two, two), ("factors", "history") * 2, strict=True):
            named = (f"| {row}, {users} |", f"| **{row} (default), {users}** |")
            line = next(line for line in text.splitlines() if line.startswith(named))
            assert line.split("|")[5].strip() == f"0{value}", (row, users)


OUT_OF_THE_BOX = [(part, name) for name in ("ml-1m", "ml-100k") for part in ("fifth", "half")]
OUT_OF_THE_BOX += [("fifth", "movietweetings"), ("fifth", "foursquare")]
"""Columns of the README's table: what is held out, of which set."""


def measured_out_of_the_box(page):
    """NDCG@10 by part held out, set and method, from the summaries of a page of docs/results."""
    text = (ROOT / f"docs/results/{page}.md").read_text()
    found = {}
    for part in ("fifth", "half"):
        section = text.split(f"## A random {part} of each user's rows")[1].split("\n## ")[0]
        lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
        for cells in lines[2:]:
            values = zip(lines[0], cells, strict=True)
            found |= {(part, cells[0], method.lower()): cell for method, cell in values if cell != "-"}
    return found


def test_the_table_of_the_defaults_agrees_with_the_results():
    """Every number of the README's table is that of the study, and the best of each column is bold."""
    rows = re.findall(r"^\| ([\w ]+) \| (\**0\.\d{4}.*) \|$", README, flags=re.MULTILINE)
    assert len(rows) == 6
    measured = measured_out_of_the_box("out_of_the_box-implicit") | measured_out_of_the_box("out_of_the_box")
    columns = list(zip(*(cells.split(" | ") for _, cells in rows), strict=True))
    for (part, name), column in zip(OUT_OF_THE_BOX, columns, strict=True):
        for (method, _), cell in zip(rows, column, strict=True):
            assert cell.strip("*") == measured[part, name, method.lower()], (part, name, method)
        assert max(column, key=lambda cell: cell.strip("*")).startswith("**")


@pytest.mark.parametrize("page", [OVERVIEW], ids=["overview"])
def test_the_table_of_the_catalog_agrees_with_the_results(page):
    """Every number of it is the NDCG@10 of such a method in docs/results/catalog.md, data set by data set."""
    parts = re.split(r"^## ", (ROOT / "docs/results/catalog.md").read_text(), flags=re.MULTILINE)[1:]
    rows = re.findall(r"^\| ([\w ]+) \| (\**0\.\d{4}\**) \| (\S+) \| (\S+) \| (\S+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 7
    for name, *values in rows:
        for part, value in zip(parts, values, strict=True):
            lines = [line for line in part.splitlines() if line.startswith(f"| {name}")]
            assert any(line.split("|")[2].strip().strip("*") == value.strip("*") for line in lines), (name, value)
