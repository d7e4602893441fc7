"""A campaign against the library: fuzzed input, damaged and crafted files, faults and kills at every write, threads, forks.

    make torture                              a few minutes
    make torture ARGS="--full"                all of it: hours on a busy machine, less than one on a quiet one
    make torture ARGS="--seed 7"              other random numbers

Every case has a number and draws from a stream of its own, so that a case that fails can be run again by itself
(`--only damage --first 123 --cases 1`). Outcomes are added to a file for each campaign in `--folder` as they come; a run
that was killed goes on behind the last one. `--report FILE` writes the page of what was run.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from torture_cases import CAMPAIGNS
from torture_writes import build

FAILED = "FAILED"
"""The beginning of an outcome that must not be."""
HANGS = 900
"""Seconds without an outcome after which a case counts as hanging; a busy machine takes its time."""
SHOWN = 20
"""So many failures of a campaign are shown."""


@dataclass(frozen=True)
class Result:
    """What one campaign found."""

    name: str
    cases: int
    outcomes: dict[str, int]
    failures: list[str]
    """Case and what happened"""


class Run:
    """The cases of a campaign from `first` to `end`, -1 for all there are, and the file of their outcomes."""

    def __init__(self, name: str, seed: int, first: int, end: int, folder: Path) -> None:
        self.name, self.seed, self.first, self.end = name, seed, first, end
        self.file = folder / f"{name}-{seed}-{first}-{'all' if end < 0 else end}.txt"

    def outcomes(self) -> list[tuple[int, str]]:
        """Of the cases that were run; the line that a kill cut off is left out."""
        text = self.file.read_text() if self.file.exists() else ""
        lines = [line.partition(" ") for line in text.split("\n")[:-1]]
        return [(int(case), outcome) for case, _, outcome in lines]

    def run(self) -> None:
        """Runs the cases that are missing, in processes of their own: a crash ends one, and is counted."""
        if self.file.exists():
            self.file.write_text("".join(f"{case} {outcome}\n" for case, outcome in self.outcomes()))
        while not self._is_over():
            self._batch()

    def result(self) -> Result:
        """What the cases found that were run so far."""
        found = [one for one in self.outcomes() if one[1] != "end"]
        counts = Counter(outcome.partition(":")[0] for _, outcome in found)
        failures = [f"case {case}: {outcome}" for case, outcome in found if outcome.startswith(FAILED)]
        return Result(self.name, len(found), dict(sorted(counts.items())), failures)

    def _next(self) -> int:
        found = self.outcomes()
        return found[-1][0] + 1 if found else self.first

    def _is_over(self) -> bool:
        found = self.outcomes()
        return bool(found) and (found[-1][1] == "end" if self.end < 0 else found[-1][0] + 1 >= self.end)

    def _batch(self) -> None:
        script, begin = Path(__file__).with_name("torture_cases.py"), self._next()
        command = [sys.executable, str(script), self.name, str(self.seed), str(begin), str(self.end)]
        with tempfile.TemporaryDirectory() as folder, self.file.open("a") as file, tempfile.TemporaryFile() as errors:
            environment = dict(os.environ)
            if CAMPAIGNS[self.name].needs_disk:
                environment["LD_PRELOAD"] = str(build(Path(folder)))
            with subprocess.Popen(command, stdout=file, stderr=errors, env=environment) as process:
                code = self._wait(process)
            if code == 0 and self.end < 0:
                file.write(f"{self._next()} end\n")
            elif code:
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().splitlines()
                why = (
                    "it hangs"
                    if code is None
                    else f"the process ended with {code} ({said[-1] if said else 'silently'})"
                )
                file.write(f"{self._next()} {FAILED}: {why}\n")

    def _wait(self, process: "subprocess.Popen[bytes]") -> int | None:
        """The exit code; None for a process that was killed because nothing came for too long."""
        size, since = -1, time.monotonic()
        while True:
            try:
                return process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                if (now := self.file.stat().st_size) != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > HANGS:
                    process.kill()
                    return None


def versions() -> dict[str, str]:
    """What the cases ran with."""
    from importlib.metadata import version

    packages = ("topnrank", "numpy", "numba", "pyarrow", "safetensors", "scipy", "optuna")
    system = {"Python": platform.python_version(), "system": f"{platform.system()} on {platform.machine()}"}
    return {**{name: version(name) for name in packages}, **system}


def page(results: list[Result], seed: int) -> str:
    """The report as Markdown."""
    facts = ", ".join(f"{name} {value}" for name, value in versions().items())
    lines = [
        "# Faults",
        "",
        'What `make torture ARGS="--full"` found: fuzzed input against readers of Python\'s own, damaged and crafted files, '
        "a fault and a kill at every write of every command, threads and forks. Every outcome but the ones called FAILED is "
        "allowed: a right answer, or one sentence. What is promised, and what is not: [Faults](../how-to/faults.md).",
        "",
        f"Seed {seed}; {facts}.",
        "",
        "| campaign | cases | outcomes |",
        "|---|---|---|",
    ]
    for one in results:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in one.outcomes.items())
        lines.append(f"| {CAMPAIGNS[one.name].title} | {one.cases:,} | {outcomes} |")
    failures = [f"- {one.name}, {failure}" for one in results for failure in one.failures[:SHOWN]]
    lines += ["", *(["What failed:", "", *failures] if failures else ["Nothing failed."]), ""]
    return "\n".join([*lines, *_meanings()])


def _meanings() -> list[str]:
    """What the words of the table mean."""
    from torture_writes import COMMANDS

    return [
        "- Input is *right* where the rows are those that another reader finds (Python's csv and json, Arrow), *read* where "
        "that one refuses the file or two readers may differ, and *refused* in one sentence; undamaged input must be right.",
        "- A damaged file is *refused* or gives the *same answers*; a crafted one, whose checksums are right, is *refused* "
        "or *usable*: no crash, finite scores, and no error but one sentence in any request.",
        f"- The commands are {', '.join(COMMANDS)}. Every call that writes in their folder is counted, whoever makes it "
        "(Python, Arrow, safetensors, SQLite), and each one meets each fault. Then a command ends with *one sentence* and "
        "exit code 1 (2 where it may not write before it begins), or *went on* because it did not need that call; files are "
        "old or new, nothing else stays, and the same command is right afterwards. After a kill it ends with the *same "
        "bits*.",
        "- While requests are answered, the file is replaced by those of other models some hundred times a second, and "
        "children are forked which must answer as well.",
        "",
    ]


def main() -> int:
    """Runs what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="the numbers of docs/results/robustness.md")
    parser.add_argument("--only", choices=list(CAMPAIGNS), action="append", help="this campaign; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="number of cases of each campaign; -1 for all that are listed")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/report/torture"))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--no-run", action="store_true", help="report what was run so far")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for name in given.only or CAMPAIGNS:
        campaign = CAMPAIGNS[name]
        cases = given.cases or (campaign.full if given.full else campaign.short)
        run = Run(name, given.seed, given.first, given.first + cases if cases > 0 else -1, given.folder)
        if not given.no_run:
            run.run()
        result = run.result()
        print(f"{name}: {result.cases} cases, {result.outcomes}", *result.failures[:SHOWN], sep="\n  ", flush=True)
        results.append(result)
    if given.report is not None:
        given.report.write_text(page(results, given.seed))
    return int(any(one.failures for one in results))


if __name__ == "__main__":
    sys.exit(main())
