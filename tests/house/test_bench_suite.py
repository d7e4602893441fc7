"""The benchmark suite without its clocks: turns, ratios, verdicts, missing peers, and what the report says of them."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a module of the suite by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def measures(suite: Any) -> list[Any]:
    measure = suite("suite_measure")
    good, better, bad = measure.Bar(0.35, 0.15), measure.Bar(1.8, 1.95, at_least=True), measure.Bar(3.0)
    return [
        measure.Measure("training", "ReLU | k=10", "ML-1M", "ns", (50, 20, 60), "implicit BPR", (100, 200, 200), good),
        measure.Measure("training", "no bar", "ML-1M", "ns", (10.0, 20.0), "LightFM WARP", (20.0, 10.0)),
        measure.Measure("threads", "speed", "ML-1M", "ns", (50, 50), "1 thread", (100, 100), better, True),
        measure.Measure("reading", "alone", "CSV", "MB", (5.0,), bar=bad, counted="Peak of a process."),
    ]


@pytest.fixture
def report(suite: Any, measures: list[Any]) -> dict[str, Any]:
    peers = {
        "implicit": {"installed": "implicit", "version": "0.7.3"},
        "lightfm": {
            "installed": "lightfm-next",
            "version": "1.0",
            "instead of": {"lightfm": "KeyError: no such setup"},
        },
        "lenskit": {"missing": "lenskit: ERROR: No matching distribution found for lenskit"},
    }
    environment = {
        "date": "2030-01-01",
        "hardware": {"processor": "An 8086", "cores": 2, "system": "DOS"},
        "versions": {"topnrank": "1", "implicit": "0.7.3"},
        "peers": peers,
        "settings": {"rounds": 3, "quick": False, "full": False},
        "parts": {
            "training": {"seconds": 61.0},
            "threads": {"seconds": 30.0, "error": "AssertionError: item_factors_ differ"},
            "reading": {"seconds": 29.0},
            "quality": {"seconds": 0.0, "left out": "no data here"},
        },
    }
    found: dict[str, Any] = suite("suite_report").as_report(measures, environment)
    return found


@pytest.mark.parametrize(
    ("value", "goal", "at_least", "words"),
    [
        (0.35, None, False, "meets the bar"),
        (0.36, None, False, "misses the bar"),
        (0.15, 0.15, False, "meets the goal"),
        (0.2, 0.15, False, "meets the bar"),
        (0.34, 0.9, True, "misses the bar"),
        (0.35, 0.9, True, "meets the bar"),
        (0.9, 0.9, True, "meets the goal"),
    ],
)
def test_verdict(suite: Any, value: float, goal: float | None, at_least: bool, words: str) -> None:
    assert suite("suite_measure").Bar(0.35, goal, at_least).verdict(value) == words


def test_a_ratio_is_the_median_of_the_rounds_ratios(measures: list[Any]) -> None:
    told = measures[0].to_dict()
    assert told["ratio"]["median"] == pytest.approx(0.3)  # of 0.5, 0.1, 0.3; the ratio of the medians would be 0.25
    assert (told["ratio"]["low"], told["ratio"]["high"]) == pytest.approx((0.2, 0.4))
    assert (told["ours"]["median"], told["others"]["median"]) == (50, 200)
    assert told["verdict"] == "meets the bar"


def test_faster_turns_the_ratio_round_and_a_lone_value_is_held_itself(measures: list[Any]) -> None:
    assert measures[2].to_dict()["ratio"]["median"] == 2.0
    assert measures[2].to_dict()["verdict"] == "meets the goal"
    alone = measures[3].to_dict()
    assert alone["ratio"] is None
    assert alone["verdict"] == "misses the bar"
    assert measures[1].to_dict()["verdict"] is None


def test_json_and_markdown_agree(suite: Any, report: dict[str, Any], tmp_path: Path) -> None:
    page, numbers = suite("suite_report").write(report, tmp_path / "new")
    text, told = page.read_text(), json.loads(numbers.read_text())
    assert told["measures"] == json.loads(json.dumps(report["measures"]))
    for one in told["measures"]:
        name = one["name"].replace("|", "\\|")
        rows = [line for line in text.splitlines() if line.startswith((f"| {name} |", f"| {one['part']}: {name} |"))]
        assert len(rows) == (1 if one["bar"] is None else 2), name
        for row in rows:
            assert row.endswith(f"| {one['verdict'] or '-'} |")
            assert f"{one['ours']['median']:g} {one['unit']} (" in row
            if one["ratio"] is not None:
                assert f"**{one['ratio']['median']:.2f}**" in row
                assert f"{one['peer']}: " in row
    assert "| at most 0.35 | 0.15 |" in text
    assert "| at least 1.8 | 1.95 |" in text
    assert "| at most 3 MB | - |" in text
    assert "meets the goal: 1; meets the bar: 1; misses the bar: 1." in text
    assert "2.0 minutes; 3 rounds" in text


def test_missing_peers_and_failed_parts_are_named(suite: Any, report: dict[str, Any]) -> None:
    text = suite("suite_report").to_markdown(report)
    assert "**lenskit** is missing: lenskit: ERROR: No matching distribution found for lenskit" in text
    assert "**lightfm** did not install (KeyError: no such setup); measured is lightfm-next" in text
    assert "## Threads (30 s)\n\n**This part ended early: AssertionError: item_factors_ differ**" in text
    assert "## Quality (0 s)\n\nLeft out: no data here." in text
    whole = {**report, "peers": {"implicit": report["peers"]["implicit"]}}
    assert "All peers are installed." in suite("suite_report").to_markdown(whole)


def test_pips_words_about_a_peer_reach_the_notes(suite: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install, peers = suite("suite_install"), suite("suite_peers")
    said = (
        "Collecting x\n  TypeError: no setup\n  [end]\nerror: subprocess-exited-with-error\n\nnote: not pip's fault\n"
    )
    assert install.validation_error(said) == "TypeError: no setup"
    assert install.validation_error("Looking\nERROR: No matching distribution\n") == "ERROR: No matching distribution"
    assert install.validation_error("Killed\n") == "Killed"
    known = {"nowhere": ("no-such-package-at-all",), "never": ("not-tried-either",), "numpy": ("numpy",)}
    monkeypatch.setattr(peers, "PEERS", known)
    (tmp_path / install.NOTES).write_text(json.dumps({"nowhere": {"missing": "TypeError: no setup"}}))
    found = peers.Peers.here(tmp_path)
    assert found.notes["nowhere"] == {"missing": "TypeError: no setup"}
    assert "make bench" in found.notes["never"]["missing"]
    assert found.has("numpy")
    assert found.use("nowhere", "json") is None


def test_a_peer_that_cannot_be_imported_is_lost(suite: Any) -> None:
    peers = suite("suite_peers").Peers({"broken": {"installed": "broken"}, "json": {"installed": "json"}})
    assert peers.use("json", "json") is json
    assert peers.use("broken", "no_such_module_at_all") is None
    assert "ModuleNotFoundError" in peers.notes["broken"]["missing"]
    assert not peers.has("broken")


def test_sides_take_turns_and_the_first_round_does_not_count(suite: Any) -> None:
    measure, turns = suite("suite_measure"), []
    numbers = iter(range(100))

    def side(name: str) -> Callable[[], Any]:
        return lambda: turns.append(name) or measure.Taken(next(numbers), 0.0)

    taken = measure.in_turn({"ours": side("ours"), "theirs": side("theirs")}, 2)
    assert turns == ["ours", "theirs"] * 3
    assert [one.cpu for one in taken["ours"]] == [2, 4]
    assert measure.per(taken["theirs"], 2, scale=10.0) == [15.0, 25.0]


def test_passes_pause_a_fit_between_its_passes(suite: Any) -> None:
    measure, done = suite("suite_measure"), []

    def fit(tick: Callable[[], None]) -> None:
        for number in range(3):
            done.append(number)
            tick()
        done.append("saved")

    passes = measure.Passes(fit)
    assert not done
    for number in range(3):
        taken = passes()
        assert done == list(range(number + 1))
        assert taken.cpu >= 0.0
    passes.finish()
    assert done[-1] == "saved"
    with pytest.raises(RuntimeError, match="before its last round"):
        passes()


def test_a_fit_that_fails_fails_where_its_pass_was_asked_for(suite: Any) -> None:
    def fit(tick: Callable[[], None]) -> None:
        tick()
        raise ValueError("diverged")

    passes = suite("suite_measure").Passes(fit)
    passes()
    with pytest.raises(ValueError, match="diverged"):
        passes()


def test_a_difference_of_two_fits_leaves_out_the_preparation(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, fits = suite("suite_measure"), []

    def timed(work: Callable[[], object]) -> Callable[[], Any]:
        def run() -> Any:
            work()
            return measure.Taken(100.0 + 7.0 * fits[-1], 50.0 + 3.0 * fits[-1])

        return run

    monkeypatch.setattr(measure, "timed", timed)
    assert measure.differenced(fits.append, (1, 3))() == measure.Taken(7.0, 3.0)
    assert fits == [1, 3]


@pytest.mark.process
def test_an_unknown_part_is_refused() -> None:
    command = [sys.executable, str(BENCHMARKS / "suite.py"), "--only", "training,nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no part 'nonsense'; the parts are startup, reading, training" in done.stderr
