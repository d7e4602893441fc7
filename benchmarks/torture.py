"""A campaign against the library: fuzzed input, damaged and crafted files, faults and kills at every write, threads, forks.

    make torture                              a few minutes
    make torture ARGS="--full"                all of it: hours on a busy machine, less than one on a quiet one
    make torture ARGS="--full --jobs 16"      in 16 processes at a time; the cases and their outcomes are the same
    make torture ARGS="--seed 7"              other random numbers

Every case has a number and draws from a stream of its own, so that a case that fails can be run again by itself
(`--only damage --first 123 --cases 1`). Outcomes are added to a file for each campaign in `--folder` as they come; a run
that was killed goes on with the cases that are missing. `--report FILE` writes what was run into a page.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TextIO

from torture_cases import CAMPAIGNS
from torture_writes import build

FAILED = "FAILED"
"""The beginning of an outcome that must not be."""
END = "end"
"""Stands behind the last case of a campaign that lists its cases."""
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
    ran_with: str
    """Versions and machine"""


class Worker:
    """A process that runs cases of a campaign, one after the other, until one of them ends it."""

    def __init__(self, name: str, seed: int, disk: Path | None) -> None:
        script = Path(__file__).with_name("torture_cases.py")
        environment = dict(os.environ) | ({} if disk is None else {"LD_PRELOAD": str(disk)})
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, str(script), name, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            text=True,
            process_group=0,  # Ctrl-C ends the campaign, not a case
        )
        self._hangs = False
        listed = self._answer("listed")
        if listed is None:
            raise RuntimeError(f"{name}: {self.close()}")
        self.listed = int(listed)
        """How many cases the campaign lists; 0 where it makes any number of them"""

    def run(self, case: int) -> str | None:
        """The outcome; None where the process ended, or was killed because nothing came for too long."""
        assert self._process.stdin is not None
        try:
            print(case, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return None
        return self._answer(str(case))

    def close(self) -> str:
        """Ends the process; how it ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        return "it hangs" if self._hangs else f"the process ended with {code} ({said[-1] if said else 'silently'})"

    def _answer(self, to: str) -> str | None:
        assert self._process.stdout is not None
        timer = threading.Timer(HANGS, self._kill)
        timer.start()
        try:
            for line in self._process.stdout:
                asked, _, answer = line.rstrip("\n").partition(" ")
                if asked == to:
                    return answer
            return None
        finally:
            timer.cancel()

    def _kill(self) -> None:
        self._hangs = True
        self._process.kill()


class Run:
    """The cases of a campaign from `first` to `end`, -1 for all that it lists, and the file of their outcomes."""

    def __init__(self, name: str, seed: int, first: int, end: int, folder: Path, disk: Path | None = None) -> None:
        self.name, self.seed, self.first, self.end, self.disk = name, seed, first, end, disk
        self.file = folder / f"{name}-{seed}-{first}-{'all' if end < 0 else end}.txt"
        self._lock, self._ends = threading.Lock(), threading.Event()

    def outcomes(self) -> dict[int, str]:
        """Of the cases that were run; the line that a kill cut off is left out."""
        text = self.file.read_text() if self.file.exists() else ""
        lines = [line.partition(" ") for line in text.split("\n")[:-1]]
        return {int(case): outcome for case, _, outcome in lines}

    def run(self, jobs: int) -> None:
        """Runs the cases that are missing, in so many processes at a time: a crash ends one, and is counted."""
        found = self.outcomes()
        if END in found.values() or (self.end >= 0 and found.keys() >= set(range(self.first, self.end))):
            return
        self.file.write_text("".join(f"{case} {outcome}\n" for case, outcome in found.items()))
        self.file.with_suffix(".with").write_text(versions())
        cases = (case for case in count(self.first) if case not in found)
        with tempfile.TemporaryDirectory() as folder, self.file.open("a") as file, ThreadPoolExecutor(jobs) as pool:
            disk = self.disk or build(Path(folder)) if CAMPAIGNS[self.name].needs_disk else None
            try:
                for done in [pool.submit(self._work, cases, disk, file) for _ in range(jobs)]:
                    done.result()
            except BaseException:
                self._ends.set()
                raise
            if self.end < 0:
                print(len(self.outcomes()), END, file=file)

    def _work(self, cases: Iterator[int], disk: Path | None, file: TextIO) -> None:
        """Takes one case after the other and writes what comes of it."""
        worker = None
        while not self._ends.is_set():
            worker = worker or Worker(self.name, self.seed, disk)
            with self._lock:
                case = next(cases)
            if case >= (worker.listed if self.end < 0 else self.end):
                break
            outcome = worker.run(case)
            if outcome is None:
                outcome, worker = f"{FAILED}: {worker.close()}", None
            with self._lock:
                print(case, outcome, file=file, flush=True)
        if worker is not None:
            worker.close()

    def result(self) -> Result:
        """What the cases found that were run so far."""
        found = {case: outcome for case, outcome in sorted(self.outcomes().items()) if outcome != END}
        counts = Counter(outcome.partition(":")[0] for outcome in found.values())
        failures = [f"case {case}: {outcome}" for case, outcome in found.items() if outcome.startswith(FAILED)]
        ran_with = self.file.with_suffix(".with")
        said = ran_with.read_text() if ran_with.exists() else versions()
        return Result(self.name, len(found), dict(sorted(counts.items())), failures, said)


def versions() -> str:
    """What the cases run with."""
    import topnrank

    packages = {name: version(name) for name in ("numpy", "numba", "pyarrow", "safetensors", "scipy", "optuna")}
    facts = {"topnrank": topnrank.__version__, **packages, "Python": platform.python_version()}
    return (
        ", ".join(f"{name} {value}" for name, value in facts.items())
        + f"; {platform.system()} on {platform.machine()}, {os.cpu_count()} CPUs"
    )


BEGIN, AFTER = "<!-- campaign:begin -->", "<!-- campaign:end -->"


def write_report(file: Path, results: list[Result], seed: int) -> None:
    """Writes the report, in a file that has a place for it there and nowhere else."""
    old = file.read_text() if file.exists() else f"{BEGIN}\n{AFTER}\n"
    before, _, rest = old.partition(BEGIN)
    file.write_text(f"{before}{BEGIN}\n\n{report(results, seed)}\n{AFTER}{rest.partition(AFTER)[2]}")


def report(results: list[Result], seed: int) -> str:
    """The report as Markdown."""
    ran_with = Counter(one.ran_with for one in results).most_common()
    titles = {said: ", ".join(one.name for one in results if one.ran_with == said) for said, _ in ran_with}
    facts = [f"{said} ({names})" for said, names in titles.items()] if len(titles) > 1 else list(titles)
    lines = [
        'What `make torture ARGS="--full"` found: fuzzed input against readers of Python\'s own, damaged and crafted files, '
        "a fault and a kill at every write of every command, threads and forks. Every outcome but the ones called FAILED is "
        "allowed: a right answer, or one sentence. What is promised, and what is not: [Faults](../how-to/faults.md).",
        "",
        f"Seed {seed}; {'; '.join(facts)}.",
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
        "bits*, and events that a server had acknowledged are there.",
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
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--disk", type=Path, help="torture_disk.c as a library, where it cannot be compiled")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/report/torture"))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--no-run", action="store_true", help="report what was run so far")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for name in given.only or CAMPAIGNS:
        campaign = CAMPAIGNS[name]
        cases = given.cases or (campaign.full if given.full else campaign.short)
        run = Run(name, given.seed, given.first, given.first + cases if cases > 0 else -1, given.folder, given.disk)
        if not given.no_run:
            run.run(given.jobs)
        result = run.result()
        print(f"{name}: {result.cases} cases, {result.outcomes}", *result.failures[:SHOWN], sep="\n  ", flush=True)
        results.append(result)
    if given.report is not None:
        write_report(given.report, results, given.seed)
    return int(any(one.failures for one in results))


if __name__ == "__main__":
    sys.exit(main())
