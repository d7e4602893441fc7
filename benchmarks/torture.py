"""A campaign against the library: fuzzed input, damaged and crafted model files, faults at every write, kills, threads.

    make torture                              about ten minutes on two cores
    make torture ARGS="--scale 20 --seed 7"   longer, with other random numbers

Every case has a number and draws from a stream of its own, so that a case that fails can be run again by itself
(`--only damage --first 123 --cases 1`). Results go into a folder (`--folder`), campaign by campaign; one that is finished
is not run again, so that a run that was killed goes on. `--report FILE` writes the page of what was run.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture_cases import CAMPAIGNS

FAILED = "FAILED"
"""The beginning of an outcome that must not be."""


@dataclass(frozen=True)
class Result:
    """What one campaign found."""

    name: str
    cases: int
    seconds: float
    outcomes: dict[str, int]
    failures: list[str]
    """Case and what happened, at most twenty"""


def run_campaign(name: str, seed: int, first: int, cases: int) -> Result:
    """Runs the cases in processes of their own, a batch each: a crash ends a batch, and is counted."""
    began, outcomes, failures = time.monotonic(), Counter[str](), []
    for case, outcome in _outcomes(name, seed, first, first + cases):
        outcomes[outcome.partition(":")[0]] += 1
        if outcome.startswith(FAILED) and len(failures) < 20:
            failures.append(f"case {case}: {outcome}")
    return Result(name, cases, time.monotonic() - began, dict(sorted(outcomes.items())), failures)


def _outcomes(name: str, seed: int, first: int, end: int) -> Iterator[tuple[int, str]]:
    while first < end:
        command = [
            sys.executable,
            str(Path(__file__).with_name("torture_cases.py")),
            name,
            str(seed),
            str(first),
            str(end),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CAMPAIGNS[name].seconds, check=False)
        for line in done.stdout.splitlines():
            case, _, outcome = line.partition(" ")
            yield int(case), outcome
            first = int(case) + 1
        if first < end:  # the process ended in the middle of a case
            said = done.stderr.strip().splitlines()
            yield first, f"{FAILED}: the process ended with {done.returncode} ({said[-1] if said else 'silently'})"
            first += 1


def versions() -> dict[str, str]:
    """What the cases ran with."""
    from importlib.metadata import version

    packages = ("topnrank", "numpy", "numba", "pyarrow", "safetensors", "scipy")
    system = {"python": platform.python_version(), "machine": platform.machine(), "cores": str(os.cpu_count())}
    return {**{name: version(name) for name in packages}, **system}


def page(results: list[Result], seed: int) -> str:
    """The report as Markdown."""
    facts = ", ".join(f"{name} {value}" for name, value in versions().items())
    lines = [
        "# Faults",
        "",
        "What `make torture` found: fuzzed input against a reader of its own, damaged and crafted model files, a fault at "
        "every write, kills, forks and threads. Every outcome but the ones called FAILED is allowed: a right answer, or "
        "one sentence. What is promised, and what is not: [Faults](../how-to/faults.md).",
        "",
        f"Seed {seed}; {facts}.",
        "",
        "| campaign | cases | outcomes | seconds |",
        "|---|---|---|---|",
    ]
    for one in results:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in one.outcomes.items())
        lines.append(f"| {CAMPAIGNS[one.name].title} | {one.cases:,} | {outcomes} | {one.seconds:.0f} |")
    failures = [f"- {one.name}, {failure}" for one in results for failure in one.failures]
    return "\n".join([*lines, "", *(["What failed:", "", *failures] if failures else ["Nothing failed."]), ""])


def _finished(file: Path, run: Callable[[], Result]) -> Result:
    """The result in the file, or that of `run`, which is then written there."""
    if file.exists():
        return Result(**json.loads(file.read_text()))
    result = run()
    part = file.with_suffix(".part")
    part.write_text(json.dumps(vars(result), indent=1))
    part.replace(file)
    return result


def main() -> int:
    """Runs what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of cases")
    parser.add_argument("--only", choices=list(CAMPAIGNS), action="append", help="this campaign; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="number of cases of each campaign")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/report/torture"))
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    results: list[Any] = []
    for name in given.only or CAMPAIGNS:
        cases = given.cases or max(1, round(CAMPAIGNS[name].cases * given.scale))
        file = given.folder / f"{name}-{given.seed}-{given.first}-{cases}.json"
        result = _finished(file, lambda: run_campaign(name, given.seed, given.first, cases))  # noqa: B023 (called at once)
        print(f"{name}: {result.cases} cases, {result.outcomes}, {result.seconds:.0f} s", *result.failures, sep="\n  ")
        results.append(result)
    if given.report is not None:
        given.report.write_text(page(results, given.seed))
    return int(any(one.failures for one in results))


if __name__ == "__main__":
    sys.exit(main())
