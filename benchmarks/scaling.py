"""Time per rating of training, over list lengths from 10 to 100,000, for ReLU, sigmoid and Laplace.

    python benchmarks/scaling.py [--repeats 9] [--json FILE]

A measurement is one whole visit of the CPU engine (scores, sort, ranks, user step, scores and ranks again, item step; 10
factors, one thread) to the same number of ratings, cut into lists of one length over a catalog of 100,000 items. The cost
claimed is O(m log m + km) per list of m items for every step function. So time per rating divided by ln m should not grow:
the last line is the longest list's value over the shortest's; at most 2 is the bar. All lengths and steps are interleaved
in each repeat, and medians are taken. The pair loop of the NumPy reference (objective only) stands beside them at the
lengths it can bear.
"""

import argparse
import json
import math
import statistics
import time

import numpy as np

from common import environment
from topnrank.engines import Problem, State
from topnrank.engines.cpu import CpuEngine
from topnrank.losses.steps import Laplace, ReLU, Sigmoid
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.scorers import Factors, TrainingLists, UpdateRule

LENGTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
STEPS = {"relu": ReLU(), "sigmoid": Sigmoid(7.0), "laplace": Laplace(3.0)}
RATINGS, ITEMS, FACTORS = 400_000, 100_000, 10


def make_rows(length: int) -> TrainingLists:
    """Lists of one length of random items with weights +1 and -1."""
    rng = np.random.default_rng(length)
    lists = RATINGS // length
    items = np.concatenate([np.sort(rng.permutation(ITEMS)[:length]) for _ in range(lists)]).astype(np.int32)
    gains = np.where(rng.random(items.size) < 0.6, 1.0, -1.0).astype(np.float32)
    return TrainingLists(np.arange(lists + 1, dtype=np.int64) * length, items, gains, np.empty(0, np.float32))


def make_engine(length: int, step: object) -> CpuEngine:
    """The engine of the paper's model on lists of one length."""
    rows = make_rows(length)
    scorer = Factors(FACTORS, init=0.3)
    parameters = scorer.initialize(rows.indptr.size - 1, ITEMS, 0)
    rules = {block: UpdateRule(False, 1e-5, 0.2) for block in parameters}
    problem = Problem(scorer, WeightedDCG(step, n=20, truncate=True), rows, rules)
    return CpuEngine(problem, State.start(parameters, 0.0), num_threads=1)


def measure(repeats: int) -> dict[str, dict[int, float]]:
    """Median nanoseconds per rating: step -> length -> time."""
    engines = {(name, m): make_engine(m, step) for m in LENGTHS for name, step in STEPS.items()}
    times: dict[tuple[str, int], list[float]] = {key: [] for key in engines}
    for repeat in range(-1, repeats):  # the first round compiles and warms up
        for key, engine in engines.items():
            users = np.arange(engine.problem.rows.indptr.size - 1)
            start = time.perf_counter()
            engine.step(users)
            if repeat >= 0:
                times[key].append(1e9 * (time.perf_counter() - start) / engine.problem.rows.items.size)
    return {name: {m: statistics.median(times[name, m]) for m in LENGTHS} for name in STEPS}


def pair_loop(length: int) -> float:
    """Nanoseconds per rating of the quadratic reference objective."""
    rng = np.random.default_rng(length)
    lists = max(1, 20_000 // length)
    objective = WeightedDCG(ReLU(), n=20)
    start = time.perf_counter()
    for _ in range(lists):
        objective.evaluate(rng.normal(size=length), np.ones(length))
    return 1e9 * (time.perf_counter() - start) / (lists * length)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", help="also write the numbers to this file")
    arguments = parser.parse_args()
    medians = measure(arguments.repeats)
    pairs = {m: pair_loop(m) for m in LENGTHS if m <= 3_000}
    print(environment())
    print("ns per rating (median), one thread; in brackets divided by ln m\n")
    print("| list length | " + " | ".join(STEPS) + " | pair loop (NumPy reference) |")
    print("|---" * (len(STEPS) + 2) + "|")
    for m in LENGTHS:
        cells = [f"{medians[name][m]:.0f} ({medians[name][m] / math.log(m):.1f})" for name in STEPS]
        print(f"| {m:,} | " + " | ".join(cells) + (f" | {pairs[m]:,.0f} |" if m in pairs else " | - |"))
    first, last = LENGTHS[0], LENGTHS[-1]
    ratios = {n: (medians[n][last] / math.log(last)) / (medians[n][first] / math.log(first)) for n in STEPS}
    print("| longest / shortest, per ln m | " + " | ".join(f"**{r:.2f}**" for r in ratios.values()) + " | - |")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"environment": environment(), "ns_per_rating": medians, "ratios": ratios}, file, indent=2)


if __name__ == "__main__":
    main()
