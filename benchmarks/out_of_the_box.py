"""The default model beside other methods at their defaults, on many data sets: writes docs/results/out_of_the_box.md.

    TOPNRANK_DATA=folder python benchmarks/out_of_the_box.py [--sets ml-100k,music30] [--jobs 16] [--tuned]

Each (set, protocol, method) is a file of JSON in benchmarks/report/out_of_the_box, and what is there is not measured again,
unless it failed: a run can be stopped, made in parts, and go on elsewhere. `--tuned` also chooses the main settings of EASE
and of the other libraries' methods on validation rows. It needs the packages of the library alone; peers that are missing
are left out.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.event import install_recorder

import topnrank as tnr
from common import environment
from out_of_the_box_methods import (
    FOLDER,
    GRIDS,
    LIBRARIES,
    SOURCES,
    THREADS,
    Unit,
    default_units,
    each_protocol,
    load,
    make,
    of_rated,
    split,
    trials,
    tuned_units,
)
from out_of_the_box_page import METRIC, page
from topnrank._progress import progress_bar
from topnrank.io.atomic import write_text

PAGE = Path(__file__).parent.parent / "docs" / "results" / "out_of_the_box.md"
WARM_UP = 10_000
"""Rows of the fit that compiles, or loads what is compiled."""


def fit(unit: Unit, train: tnr.Interactions) -> tuple[Any, float]:
    """The fitted ranker and its CPU seconds; a fit that compiles, in spite of the warm-up, is done again."""
    make(unit.kind, unit.settings).fit(train.take(np.arange(min(WARM_UP, len(train)))).compact())
    while True:
        with install_recorder("numba:compile") as compiled:
            model, started = make(unit.kind, unit.settings), time.process_time()
            ranker = model.fit(train)
            seconds = time.process_time() - started
        if not compiled.buffer:
            return ranker, seconds


def measure(unit: Unit) -> dict[str, Any]:
    """Fits and evaluates; an error of the library is a result, too."""
    data, (train, held_out) = load(unit.data), split(unit.data, unit.protocol, unit.part)
    record: dict[str, Any] = {"label": unit.label, "environment": environment(), "threads": os.environ[THREADS[0]]}
    record |= {"users": data.n_users, "items": data.n_items, "rows": len(data)}
    try:
        ranker, seconds = fit(unit, train)
        protocol = "rated" if of_rated(unit.protocol) else "catalog"
        found = tnr.evaluate(ranker, held_out, protocol=protocol, metrics=METRIC)
    except tnr.TopNRankError as error:
        return record | {"error": str(error)}
    values = found.per_user[METRIC]
    known = np.diff(train.indptr)[train.users.index(found.user_ids)] > 0
    record |= {"all": found[METRIC], "known": float(np.nanmean(values[known])), "cpu_seconds": seconds}
    record["convention"] = found.convention
    if unit.part == "test":
        record["values"] = [None if np.isnan(value) else round(float(value), 5) for value in values]
        record["strangers"] = np.flatnonzero(~known).tolist()
    return record


def run(unit: Unit) -> str:
    """Measures a unit and keeps the result; returns it in a line."""
    record = measure(unit)
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    write_text(unit.path, json.dumps(record) + "\n")
    return record.get("error") or f"{record['all']:.4f} in {record['cpu_seconds']:.1f} CPU s"


def run_all(units: Sequence[Unit], jobs: int) -> int:
    """Measures the units that have no result, or an error; returns how many could not be measured."""
    todo, failed = {unit.path: unit for unit in units if "error" in (unit.read() or {"error": ""})}, 0
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    with progress_bar("Measuring", len(todo), shown=sys.stderr.isatty()) as bar, pool:
        futures = {pool.submit(run, unit): unit for unit in todo.values()}
        for future in as_completed(futures):
            unit, error = futures[future], future.exception()
            failed += error is not None
            text = repr(error) if error is not None else future.result()
            print(f"{unit.data}, {unit.protocol}, {unit.part}, {unit.label}: {text}", flush=True)
            bar.update(text=unit.data)
    return failed


def measure_all(sets: Sequence[str], jobs: int, *, tuned: bool) -> int:
    """Measures what has no result yet, as far as its library is installed; returns how many units could not be measured."""
    missing = {kind for kind, library in LIBRARIES.items() if importlib.util.find_spec(library) is None}
    for kind in sorted(missing):
        print(f"{kind} is left out: {LIBRARIES[kind]} is not installed; `make bench` installs it", file=sys.stderr)
    pairs = each_protocol(sets)
    units = [unit for pair in pairs for unit in default_units(*pair)]
    units += [unit for pair in pairs for kind in GRIDS for unit in trials(*pair, kind) if tuned]
    failed = run_all([unit for unit in units if unit.kind not in missing], jobs)
    chosen = [unit for pair in pairs for unit in tuned_units(*pair) if tuned and unit.kind not in missing]
    return failed + run_all(chosen, jobs)


def main() -> None:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SOURCES), help="some of: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="processes that measure at a time")
    parser.add_argument("--threads", type=int, default=1, help="threads of each of them")
    parser.add_argument("--tuned", action="store_true", help="also tune the peers")
    parser.add_argument("--again", default="", help="methods to measure again, such as TopNRank,NeighborRidge")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument(
        "--page", type=Path, help="default: the page of the docs with all sets, else one beside the results"
    )
    arguments = parser.parse_args()
    wanted = arguments.sets.split(",")
    sets = [name for name in SOURCES if name in wanted]
    if unknown := [name for name in wanted if name not in SOURCES]:
        parser.error(f"there is no set {unknown[0]!r}; the sets are {', '.join(SOURCES)}")
    if "TOPNRANK_DATA" not in os.environ and not arguments.page_only:
        parser.error("set TOPNRANK_DATA to a folder with the data")
    os.environ |= dict.fromkeys(THREADS, str(arguments.threads))  # for the processes that measure
    for unit in (unit for pair in each_protocol(sets) for unit in default_units(*pair)):
        if unit.kind in arguments.again.split(","):
            unit.path.unlink(missing_ok=True)
    failed = 0 if arguments.page_only else measure_all(sets, arguments.jobs, tuned=arguments.tuned)
    path = arguments.page or (PAGE if len(sets) == len(SOURCES) else FOLDER / "page.md")
    write_text(path, page(sets))
    print(path)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
