"""Wall-clock time of whole fits on one thread and on many, and whether the bits are the same.

    python benchmarks/threads.py [--threads 16] [--sets ml-1m,ml-100k] [--repeats 2] [--json FILE]

A fit is all that `TopNRank(...).fit(data)` does: layout, the choice of settings, neighbors, training. Fits on one thread
and on many take turns, after one of each that compiles, and the shortest times count. Sets are files of the folder
TOPNRANK_DATA; "synthetic" makes 200,000 ratings and needs none. The bar is six times on 16 cores.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

import topnrank as tnr
from common import environment
from out_of_the_box_methods import load

MODELS: dict[str, dict[str, Any]] = {
    "catalog": {},
    "catalog, settings given": {
        "neighbors": 50,
        "neighbor_penalty": 80.0,
        "epochs": 10,
        "factor_weight": 0.5,
        "popularity": 0.01,
    },
    "rated": {"task": "rated"},
}


def fit(settings: dict[str, Any], data: tnr.Interactions, threads: int) -> tuple[float, dict[str, bytes]]:
    """Seconds of a fit, and the bits of what it learned."""
    model, started = tnr.TopNRank(**settings, num_threads=threads), time.perf_counter()
    model.fit(data)
    seconds = time.perf_counter() - started
    return seconds, {name: np.asarray(array).tobytes() for name, array in model.fitted.arrays.items()}


def measure(name: str, label: str, threads: int, repeats: int) -> dict[str, Any]:
    """Both times, their ratio, and whether the bits agree."""
    data = tnr.synthetic(6000, 4000, 200_000) if name == "synthetic" else load(name)
    data = tnr.split_per_user(data, test=0.2, seed=0)[0]
    times: dict[int, list[float]] = {1: [], threads: []}
    bits: dict[int, dict[str, bytes]] = {}
    for count in times:
        tnr.TopNRank(**MODELS[label], num_threads=count).fit(data.take(np.arange(min(20_000, len(data)))).compact())
    for _ in range(repeats):
        for count, taken in times.items():
            seconds, bits[count] = fit(MODELS[label], data, count)
            taken.append(seconds)
    one, many = min(times[1]), min(times[threads])
    found = {
        "set": name,
        "model": label,
        "one": one,
        "many": many,
        "ratio": one / many,
        "same": bits[1] == bits[threads],
    }
    print(f"{name}, {label}: {one:.2f} s, {many:.2f} s, {one / many:.2f} times, same bits: {found['same']}", flush=True)
    return found


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--sets", default="ml-1m")
    parser.add_argument("--models", default=";".join(MODELS), help="separated by ';': %(default)s")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", help="a file for the numbers")
    arguments = parser.parse_args()
    pairs = [(name, label) for name in arguments.sets.split(",") for label in arguments.models.split(";")]
    rows = [measure(*pair, arguments.threads, arguments.repeats) for pair in pairs]
    print(environment())
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"environment": environment(), "threads": arguments.threads, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
