"""Time and peak memory of `topnrank reproduce table2` at the full size of MovieLens 20M, on synthetic data.

    python benchmarks/full_size.py [--scale 0.01] [--folder FOLDER] [--markdown FILE]

The ratings are made by `topnrank.synthetic` with MovieLens 20M's numbers of users, films (27,278, not all of them rated) and
ratings, in half stars; how long the lists are is the generator's. They are packed as an archive in the official format:
`ml-20m.zip` with `ratings.csv` and `movies.csv`, the other members as headers only. From there on everything is the user's
own command (with `--json` added, to read its result) and `TOPNRANK_DATA` naming the folder of the archive. Each step is a
process of its own; peak memory is the largest resident set that the system counted for it. Kernels are compiled in the
first step, by the same command on a thousandth of the data with an empty cache. What is read back is checked against what
was written: users, items, ratings, the sum of the stars.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import topnrank as tnr
from common import environment
from topnrank.data.datasets.registry import DATASETS
from topnrank.experiments.compare.environment import hardware

OFFICIAL = DATASETS["ml-20m"]
FILMS, LARGEST_ID = 27_278, 131_262
"""Lines of movies.csv, with films that nobody rated, and the largest movieId: ids have gaps."""
HEADS = {
    "README.txt": "Synthetic ratings in the format of MovieLens 20M.\n",
    "tags.csv": "userId,movieId,tag,timestamp\n",
    "links.csv": "movieId,imdbId,tmdbId\n",
    "genome-scores.csv": "movieId,tagId,relevance\n",
    "genome-tags.csv": "tagId,tag\n",
}
ROWS_AT_ONCE = 1 << 20
REPRODUCE = (
    "reproduce",
    "table2",
    "--data",
    "ml-20m",
    "--repeats",
    "1",
    "--folder",
    "cells",
    "--markdown",
    "table2.md",
)
READ = """
import json, numpy as np, topnrank as tnr
data = tnr.load_dataset("ml-20m", fetch=False)
lengths = np.diff(data.indptr)
facts = {"users": data.n_users, "items": data.n_items, "ratings": len(data), "stars": float(data.ratings.sum(dtype=float))}
print(json.dumps(facts | {"median": float(np.median(lengths)), "longest": int(lengths.max())}))
"""
SYNTHETIC = (
    "**Synthetic data: the values say nothing about quality, and published numbers must not be compared with them.**"
)
OTHERS = (
    "Seconds are those of the clock; how much other programs took from them stands in the last column. CPU seconds are "
    "summed over threads and depend less on that. The command's peak is that of all it does, from reading to the tests. "
    "The seconds in the table below are those of the clock too, under the same load."
)
METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")


@dataclass(frozen=True)
class Step:
    """What a process took, and what it printed."""

    seconds: float
    cpu_seconds: float
    peak_gib: float
    others: float | None
    """Cores that other programs kept busy meanwhile, on average; None where the system does not tell"""
    output: str


def make(folder: Path, scale: float) -> dict[str, Any]:
    """Writes the archive into `folder`; users and ratings by `scale`, items by its root, so that lists stay as long."""
    ratings, users, _ = OFFICIAL.counts
    shape = (round(users * scale), round(FILMS * scale**0.5), round(ratings * scale))
    data = tnr.synthetic(*shape, half_stars=True, seed=20)
    assert data.ratings is not None
    ids = np.sort(np.random.default_rng(20).permutation(LARGEST_ID)[: shape[1]] + 1)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / OFFICIAL.archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in HEADS.items():
            packed.writestr(f"ml-20m/{name}", text)
        films = "".join(f'{film},"Film, The {film} (1995)",Comedy|Drama\n' for film in ids)
        packed.writestr("ml-20m/movies.csv", "movieId,title,genres\n" + films)
        with packed.open("ml-20m/ratings.csv", "w", force_zip64=True) as member:
            member.write(b"userId,movieId,rating,timestamp\n")
            for lines in rating_lines(data, ids):
                member.write(lines)
    facts = {"users": int((np.diff(data.indptr) > 0).sum()), "items": len(np.unique(data.indices))}
    return facts | {"ratings": len(data), "stars": float(data.ratings.sum(dtype=float))}


def rating_lines(data: tnr.Interactions, ids: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    """The rows as text, sorted by user and film; stars have one decimal."""
    assert data.ratings is not None
    assert data.timestamps is not None
    stars = pa.array([f"{half / 2:.1f}" for half in range(11)])
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    for start in range(0, len(data), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        columns = {
            "user": data.user_index[rows] + 1,
            "film": ids[data.indices[rows]],
            "stars": stars.take(pa.array((2 * data.ratings[rows]).astype(np.int8))),
            "time": data.timestamps[rows],
        }
        sink = pa.BufferOutputStream()
        csv.write_csv(pa.table(columns), sink, options)
        yield memoryview(sink.getvalue())


def run(command: list[str], folder: Path, **variables: Any) -> Step:
    """Runs a Python command in `folder` and measures it, with the processes that it starts.

    This process stays small on purpose: a child's peak begins with what its parent has when it starts it.
    """
    environ = os.environ | {name: str(value) for name, value in variables.items()}
    busy, started = busy_seconds(), time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds, cpu = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    others = None if busy is None else max((busy_seconds() or busy) - busy - cpu, 0.0) / seconds
    return Step(seconds, cpu, usage.ru_maxrss * unit / 2**30, others, output)


def busy_seconds() -> float | None:
    """Seconds that all cores together have been busy since the system started."""
    counters = Path("/proc/stat")
    if not counters.exists():
        return None
    user, nice, system, _, _, irq, softirq = map(int, counters.read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, scale: float) -> dict[str, Step]:
    """All steps by name, at one size; the cache lies in `folder` too."""
    this, steps = str(Path(__file__).resolve()), {}
    for name, size in (("small", min(scale, 0.001)), ("full", scale)):
        place = {"TOPNRANK_DATA": folder / name, "TOPNRANK_CACHE": folder / "cache"}
        (folder / name).mkdir(parents=True, exist_ok=True)
        make_step = run([this, "--make", str(folder / name), "--scale", str(size)], folder, **place)
        command = ["-m", "topnrank", *REPRODUCE, "--json"]
        if name == "small":
            steps["compiling: the command on a thousandth of the data"] = run(command, folder / name, **place)
            continue
        steps["making the ratings and the archive"] = make_step
        for reading in ("reading the archive for the first time, which unpacks it", "reading it again"):
            steps[reading] = run(["-c", READ], folder, **place)
            check(make_step, steps[reading])
        steps["**the command**"] = run(command, folder / name, **place)
        page = folder / name / "table2.md"
        page.write_text(f"{SYNTHETIC}\n\n{page.read_text()}")
    return steps


def check(made: Step, read: Step) -> None:
    """What was read is what was written."""
    written, found = json.loads(made.output), json.loads(read.output)
    if written != {name: found[name] for name in written}:
        sys.exit(f"the archive holds {written}, but what was read from it is {found}")


def to_markdown(steps: dict[str, Step], folder: Path, scale: float) -> str:
    """The page."""
    *_, read, whole = steps.values()
    title = "# The full size of MovieLens 20M" if scale == 1 else f"# {scale:g} times the size of MovieLens 20M"
    threads = os.environ.get("NUMBA_NUM_THREADS") or os.cpu_count()
    where = f"{environment()}; {hardware().get('memory_gib', 'unknown')} GiB of memory; {threads} threads, "
    where += f"niceness {os.nice(0)}. Date: {datetime.now(UTC).date().isoformat()}."
    text = "\n".join((__doc__ or "").strip().splitlines()[4:]).strip()
    parts = [
        f"{title}, on synthetic data",
        SYNTHETIC,
        sizes(json.loads(read.output), folder / "full" / OFFICIAL.archive),
        "    topnrank " + " ".join(REPRODUCE),
        where,
        step_table(steps),
        OTHERS,
        "## Proof that it ended",
        SYNTHETIC,
        result_table(json.loads(whole.output)),
        "## How this was run",
        text,
    ]
    return "\n\n".join(parts) + "\n"


def sizes(facts: dict[str, Any], archive: Path) -> str:
    """What was read, and from how many bytes."""
    with zipfile.ZipFile(archive) as packed:
        text = packed.getinfo(OFFICIAL.rows.member).file_size
    return (
        f"{facts['users']:,} users, {facts['items']:,} items with ratings, {facts['ratings']:,} ratings; lists: median "
        f"{facts['median']:g}, longest {facts['longest']:,} items. The archive has {archive.stat().st_size / 1e6:,.0f} MB, "
        f"`ratings.csv` in it {text / 1e6:,.0f} MB."
    )


def step_table(steps: dict[str, Step]) -> str:
    """Time and memory of each step."""
    lines = [
        "| step | seconds | CPU seconds | peak memory, GiB | cores busy with other programs |",
        "|---|---|---|---|---|",
    ]
    for name, step in steps.items():
        others = "-" if step.others is None else f"{step.others:.1f}"
        lines.append(f"| {name} | {step.seconds:,.0f} | {step.cpu_seconds:,.0f} | {step.peak_gib:.2f} | {others} |")
    return "\n".join(lines)


def result_table(result: dict[str, Any]) -> str:
    """Seconds and means of each row; the published numbers, which the command prints too, are left out."""
    heads = ["method", "seconds of a fit", "with the choice", *(metric.upper() for metric in METRICS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in result["rows"].items():
        if row["error"]:
            sys.exit(f"{name}: {row['error']}")
        cells = [f"{row['seconds']:.1f}", f"{row['seconds_with_choice']:.1f}"]
        cells += [f"{row['values'][metric]:.4f}" for metric in METRICS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints the page, and writes it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the users and ratings, to try it out")
    parser.add_argument("--folder", type=Path, help="work there and leave everything; by default a temporary folder")
    parser.add_argument("--markdown", type=Path, help="also write the page to this file")
    parser.add_argument("--make", type=Path, help="only write the archive, into this folder")
    arguments = parser.parse_args()
    if arguments.make:
        print(json.dumps(make(arguments.make, arguments.scale)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        if folder.exists() and any(folder.iterdir()):
            sys.exit(
                f"{folder} is not empty: finished cells and compiled kernels would be found there; name a new folder"
            )
        page = to_markdown(measure(folder, arguments.scale), folder, arguments.scale)
    print(page)
    if arguments.markdown:
        arguments.markdown.write_text(page)


if __name__ == "__main__":
    main()
