"""The out-of-the-box study: rows merged before splits, settings from validation rows, and what the page says."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topnrank as tnr

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Import = Callable[[str], ModuleType]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Import:
    """Imports a module of the study, whose results and data are in an empty folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    methods = importlib.import_module("out_of_the_box_methods")
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    monkeypatch.setenv("TOPNRANK_DATA", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    methods.load.cache_clear()
    methods.split.cache_clear()
    return importlib.import_module


@pytest.fixture
def events(tmp_path: Path) -> None:
    """A file with every event twice, and with times of which 0 means none."""
    draw = np.random.default_rng(0)
    pairs = np.unique(draw.integers(0, 30, (600, 2)), axis=0)
    users, items = np.concatenate([pairs, pairs, pairs]).T
    times = np.concatenate([np.zeros(len(pairs)), draw.integers(1, 1000, 2 * len(pairs))]).astype(np.int64)
    table = pa.table({"user": users, "item": items, "timestamp": times, "type": ["view"] * len(users)})
    pq.write_table(table, tmp_path / "retail-rocket-sslrec.parquet")


def result(unit: Any, values: list[float], strangers: list[int] | None = None, **more: Any) -> None:
    """Keeps a made-up result."""
    strangers = strangers or []
    known = [value for place, value in enumerate(values) if place not in strangers]
    record = {"label": unit.label, "environment": "An 8086", "threads": "1", "users": 9, "items": 8, "rows": 7}
    record |= {
        "all": float(np.mean(values)),
        "known": float(np.mean(known)),
        "cpu_seconds": 2.0,
        "convention": "As ever.",
    }
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(json.dumps(record | {"values": values, "strangers": strangers} | more))


def row_of(page: str, start: str) -> list[str]:
    """The cells of the first row of a table that begins with `start`."""
    line = next(line for line in page.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("protocol", ["fifth", "time"])
@pytest.mark.parametrize("part", ["test", "validation"])
def test_no_pair_is_on_both_sides_and_rows_without_time_are_left_out(study: Import, protocol: str, part: str) -> None:
    methods = study("out_of_the_box_methods")
    data = methods.load("retail-rocket-sslrec")
    train, held_out = methods.split("retail-rocket-sslrec", protocol, part)
    pairs = [set(zip(rows.user_index.tolist(), rows.indices.tolist(), strict=True)) for rows in (train, held_out)]
    assert not pairs[0] & pairs[1]
    assert data.timestamps.min() > 0
    assert data.types is None
    assert data.merged_rows == len(data)
    if protocol == "time":
        assert train.timestamps.max() < held_out.timestamps.min()
    if part == "validation":
        tested = methods.split("retail-rocket-sslrec", protocol, "test")[1]
        assert len(train) + len(held_out) + len(tested) == len(data)


@pytest.mark.usefixtures("events")
def test_a_unit_is_measured_and_kept(study: Import) -> None:
    methods, run = study("out_of_the_box_methods"), study("out_of_the_box")
    unit = methods.Unit("retail-rocket-sslrec", "time", "test", "Popularity", {})
    line, record = run.run(unit), unit.read()
    train, held_out = methods.split("retail-rocket-sslrec", "time", "test")
    expected = tnr.evaluate(tnr.Popularity().fit(train), held_out, protocol="catalog", metrics="ndcg@10")
    assert record["all"] == expected["ndcg@10"]
    assert line.startswith(f"{expected['ndcg@10']:.4f} in ")
    np.testing.assert_allclose(record["values"], expected.per_user["ndcg@10"], atol=1e-5)


def test_settings_come_from_validation_rows_and_users_with_training_rows(study: Import) -> None:
    methods = study("out_of_the_box_methods")
    tried = methods.trials("music30", "time", "EASE")
    for place, unit in enumerate(tried[:-1]):
        result(unit, [1.0 - place / 10, place / 10], strangers=[0])
    assert not list(methods.tuned_units("music30", "time"))
    result(tried[-1], [0.9, 0.0], strangers=[0])
    (chosen,) = methods.tuned_units("music30", "time")
    assert (chosen.part, chosen.settings) == ("test", tried[-2].settings)


def test_the_page_says_who_leads_by_how_much_and_what_is_missing(study: Import) -> None:
    methods, page = study("out_of_the_box_methods"), study("out_of_the_box_page")
    units = {unit.label: unit for unit in methods.default_units("music30", "time")}
    result(units["TopNRank"], [0.5, 0.3, 0.1], strangers=[2])
    result(units["NeighborRidge"], [0.4, 0.2, 0.0], strangers=[2], cpu_seconds=1.0)
    result(units["Popularity"], [0.4, 0.2, 0.9], strangers=[2])
    result(units["EASE, regularization 50"], [0.3, 0.1, 0.0], strangers=[2])
    failed = units["EASE, regularization 200"]
    failed.path.write_text(json.dumps({"environment": "An 8086", "threads": "1", "error": "too large"}))
    text = page.page(["music30"])
    everybody, known = text.split("## The latest fifth of all rows, all")[1].split(
        "## The latest fifth of all rows, users"
    )
    cells = row_of(everybody, "music30")
    assert cells[:4] == ["music30", "**0.3000**", "0.2000", "0.1333"]
    assert "**0.5000**" in cells
    assert cells[-3::2] == ["0.600", "Popularity"]
    cells = row_of(known, "music30")
    assert cells[-3:-1] == ["1.333", "+0.1000 (+0.1000 to +0.1000)"]
    assert "Interval of the difference above 0: 1, below 0: 0." in known
    assert "EASE, regularization 200 failed: too large" in text
    assert "Not measured: TopNRank (music30, fifth)" in text
