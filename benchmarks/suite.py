"""The benchmark suite: everything measured in turn with the peers in one run, as ratios, in about ten minutes on two cores.

    make bench                                                       installs the peers in .venv-bench, runs all of it
    python benchmarks/suite.py --only training,reading --quick       two parts at tiny sizes, to see that they run

Writes bench.md and bench.json to benchmarks/report (--output). TOPNRANK_DATA names a folder with ml-1m.parquet; without it
data of that shape are synthetic and time to a quality level is left out. Synthetic data are kept in a folder of the system's
temporary one from run to run (--data). --full reads all of MovieLens 20M's rows and recommends to all of its users.
"""

# ruff: noqa: E402 (numbers of threads must be set before NumPy is imported)

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LK_NUM_BACKEND_THREADS", "LK_NUM_THREADS"):
    os.environ[_variable] = "1"  # implicit asks for it; who may use more says so

import argparse
import logging
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import suite_evaluating
import suite_quality
import suite_reading
import suite_report
import suite_scaling
import suite_serving
import suite_startup
import suite_training
from suite_data import Bench, LeftOut
from suite_measure import Measure
from suite_peers import Peers
from topnrank.experiments.compare.environment import hardware, versions

Part = Callable[[Bench], Iterator[Measure]]
PARTS: dict[str, Part] = {
    suite_startup.PART: suite_startup.run,
    suite_reading.PART: suite_reading.run,
    suite_training.PART: suite_training.run,
    suite_training.THREADS: suite_training.run_threads,
    suite_scaling.PART: suite_scaling.run,
    suite_quality.PART: suite_quality.run,
    suite_serving.PART: suite_serving.run,
    suite_evaluating.PART: suite_evaluating.run,
}
REPORT = Path(__file__).parent / "report"
QUICK_ROUNDS = 2


def tell(words: str) -> None:
    """What is running now."""
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def run_part(name: str, bench: Bench) -> tuple[list[Measure], dict[str, Any]]:
    """The measures of a part, and its seconds; a part that fails is named in the report, and the others go on."""
    tell(f"part {name}")
    measures: list[Measure] = []
    note: dict[str, Any] = {}
    started = time.perf_counter()
    try:
        for measure in PARTS[name](bench):
            measures.append(measure)
    except LeftOut as reason:
        note["left out"] = str(reason)
    except Exception as error:  # one part's trouble is not the others'
        note["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return measures, {"seconds": time.perf_counter() - started, **note}


def found_versions(peers: Peers) -> dict[str, str]:
    """Of this library, what it stands on, and the peers."""
    found = versions()
    for name, note in peers.notes.items():
        if "version" in note:
            found[note.get("installed", name)] = note["version"]
    for name in ("torch", "threadpoolctl"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def arguments_of(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"parts, with commas between: {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few rounds: to see that it runs")
    parser.add_argument("--full", action="store_true", help="reading and recommending at all of MovieLens 20M's size")
    parser.add_argument("--rounds", type=int, help=f"rounds of turns; 5, or {QUICK_ROUNDS} with --quick")
    parser.add_argument("--output", type=Path, default=REPORT, help="folder of the report")
    parser.add_argument("--data", type=Path, help="folder where synthetic data are kept")
    arguments = parser.parse_args(words)
    arguments.parts = list(PARTS) if arguments.only is None else arguments.only.split(",")
    if unknown := [name for name in arguments.parts if name not in PARTS]:
        parser.error(f"--only: there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {arguments.rounds}")
    return arguments


def main(words: list[str] | None = None) -> int:
    """Runs the parts, writes the report, says where it is; 1 where a part failed."""
    arguments = arguments_of(words)
    warnings.filterwarnings("ignore")  # the peers', mostly about versions to come
    logging.disable(logging.WARNING)
    folder = arguments.data or Path(tempfile.gettempdir()) / f"topnrank-bench-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else 5)
    bench = Bench(folder, Peers.here(), rounds, quick=arguments.quick, full=arguments.full, tell=tell)
    measures: list[Measure] = []
    notes: dict[str, dict[str, Any]] = {}
    for name in arguments.parts:
        found, notes[name] = run_part(name, bench)
        measures += found
        report = suite_report.as_report(measures, environment(bench, notes))
        pages = suite_report.write(report, arguments.output)  # after each part: a run that is stopped keeps what it has
    print(pages[0].read_text(encoding="utf-8"))
    tell(f"wrote {pages[0]} and {pages[1].name}")
    return int(any("error" in note for note in notes.values()))


def environment(bench: Bench, notes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Where and how it was measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "hardware": hardware(),
        "versions": found_versions(bench.peers),
        "peers": bench.peers.notes,
        "settings": {"rounds": bench.rounds, "quick": bench.quick, "full": bench.full},
        "parts": notes,
    }


if __name__ == "__main__":
    sys.exit(main())
