"""The campaigns of `torture.py`. A process of this file runs cases of one: `torture_cases.py NAME SEED`.

It prints how many cases the campaign lists, then reads numbers of cases and prints number and outcome of each: one word
for what is allowed ("right", "refused"), "FAILED: ..." for the rest.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import torture_files as files
import torture_input as inputs
import torture_serving as serving
import torture_writes as writes


@dataclass(frozen=True)
class Campaign:
    """A kind of case."""

    title: str
    short: int
    """Cases at scale 1, which take a minute or so"""
    full: int
    """Cases of `--full`; -1 for all there are"""
    run: Callable[[np.random.Generator, Path], str] | None = None
    """Of a case that draws what it does"""
    listed: Callable[[], list[Any]] | None = None
    run_listed: Callable[[Any, Path], str] | None = None
    """Of cases that are known beforehand; a batch takes them in an order that the seed decides"""
    needs_disk: bool = False
    """Whether torture_disk.c must be loaded"""


CAMPAIGNS = {
    "input": Campaign(
        "fuzzed input (CSV, TSV, other separators, `::`, JSON lines, Parquet; gzip, Zstandard)",
        12_000,
        100_000,
        inputs.fuzzed_input,
    ),
    "damage": Campaign("damaged model files", 4000, 10_000, files.damaged_model),
    "crafted": Campaign("crafted model files, with right checksums", 4000, 10_000, files.crafted_model),
    "checkpoints": Campaign("damaged checkpoints, resumed", 500, 1000, files.damaged_checkpoint),
    "crafted-checkpoints": Campaign(
        "crafted checkpoints, with right checksums, resumed", 500, 1000, files.crafted_checkpoint
    ),
    "serving": Campaign(
        f"{serving.REQUESTS:,} requests each from 8 threads, over swaps of the file and forks", 6, 100, serving.served
    ),
    "kills": Campaign(
        "kills before, in and after a write, then the same command again",
        60,
        -1,
        listed=writes.kills,
        run_listed=writes.killed_write,
        needs_disk=True,
    ),
    "writes": Campaign(
        "faults at writes (disk full, quota, I/O error, read-only, no permission), then the same command again",
        100,
        -1,
        listed=writes.faults,
        run_listed=writes.failing_write,
        needs_disk=True,
    ),
}


def run_cases(name: str, seed: int) -> None:
    """Runs the cases whose numbers come on standard input and prints their outcomes one by one."""
    campaign, number = CAMPAIGNS[name], list(CAMPAIGNS).index(name)
    listed = campaign.listed() if campaign.listed is not None else []
    order = np.random.default_rng([seed, number]).permutation(len(listed)) if seed else np.arange(len(listed))
    print("listed", len(listed), flush=True)
    for line in sys.stdin:
        case = int(line)
        with tempfile.TemporaryDirectory(prefix="torture-", dir=writes.memory()) as folder:
            try:
                if campaign.run is not None:
                    outcome = campaign.run(np.random.default_rng([seed, number, case]), Path(folder))
                else:
                    assert campaign.run_listed is not None
                    outcome = campaign.run_listed(listed[order[case % len(listed)]], Path(folder))
            except Exception as error:
                outcome = f"FAILED: {type(error).__name__}: {error}"
        print(case, " ".join(outcome.splitlines())[:400], flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run_cases(sys.argv[1], int(sys.argv[2]))
