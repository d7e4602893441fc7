"""The figure the paper left out ("results not shown"): time of Top-N-Rank over list length, ReLU against sigmoid.

    python benchmarks/runtime_figure.py [--repeats 5] [--longest 30000] [--figure runtime.svg] [--markdown runtime.md]

A measurement is one whole visit of one user (scores, ranks, user step, scores and ranks again, item step; 10 factors, one
thread), by two programs that give the same parameters up to rounding, which is checked before anything is timed:

* linear: this library's engine, O(m log m + km) for a list of m items with either step function (the paper has it for ReLU);
* quadratic: the paper's Algorithm 1 over all pairs of a list, compiled by Numba, O(m^2 + km). The paper states O(k m^2),
  which would be slower still: only scalars need to be summed over pairs.

So the figure separates what the paper's one sentence on runtime mixes: the step function, and the algorithm.
"""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import numba
import numpy as np

from common import environment
from topnrank.engines import Problem, State
from topnrank.engines.cpu import CpuEngine
from topnrank.losses.steps import ReLU, Sigmoid
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.scorers import Factors, TrainingLists, UpdateRule

LENGTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
RATINGS, ITEMS, FACTORS = 100_000, 100_000, 10
"""Ratings visited in a measurement of the linear program, items of the catalog, length of the vectors."""

STEPS = {"ReLU": (ReLU(), 0.0), "sigmoid": (Sigmoid(7.0), 7.0)}
"""The step as the engine takes it, and C for the pair loop; 0 stands for ReLU."""
PAIRS = 3_000_000
"""About so many pairs of a list are visited in one measurement of the quadratic program."""
MOST_PAIRS = 10_000
"""Longest list that the quadratic program is asked for."""
N, RATE, DECAY = 20.0, 1e-5, 0.2
"""N of the cut, learning rate, and 2 lambda."""
Times = dict[tuple[str, str], dict[int, float]]
"""(step, program) -> length -> milliseconds per list"""


@numba.njit
def step(x: float, steepness: float) -> tuple[float, float]:
    """h(x) and h'(x): the logistic, or ReLU where the steepness is 0."""
    if steepness == 0.0:
        return max(x, 0.0), 1.0 if x > 0.0 else 0.0
    value = 1.0 / (1.0 + math.exp(-steepness * x))
    return value, steepness * value * (1.0 - value)


@numba.njit
def slopes(scores, gains, steepness):
    """c_i of eq. 9, from smooth ranks over all pairs."""
    c = np.empty(scores.size)
    for i in range(scores.size):
        rank = 0.0
        for j in range(scores.size):
            if j != i:
                rank += step(scores[j] - scores[i], steepness)[0]
        gate, gate_slope = step(N - rank, steepness)
        log = math.log(rank + 2.0)
        c[i] = gains[i] / log * (gate_slope + gate / ((rank + 2.0) * log))
    return c


@numba.njit
def pair_gradients(scores, c, steepness):
    """(2, m) score gradients: the exact one, and the paper's partial one for items."""
    G = np.zeros((2, scores.size))
    for i in range(scores.size):
        for j in range(scores.size):
            if j != i:
                pull = c[i] * step(scores[j] - scores[i], steepness)[1]
                G[0, j] += pull
                G[0, i] -= pull
                G[1, i] -= pull
    return G


@numba.njit
def visit_by_pairs(users, rows, U, V, steepness):
    """One batch as Algorithm 1 has it: each user steps, then each touched item once along the batch's sum."""
    indptr, items, gains = rows
    gradients, visits = np.zeros(V.shape), np.zeros(V.shape[0])
    for user in users:
        listed, weights = items[indptr[user] : indptr[user + 1]], gains[indptr[user] : indptr[user + 1]]
        vectors = V[listed]
        scores = (vectors @ U[user]).astype(np.float64)
        G = pair_gradients(scores, slopes(scores, weights, steepness), steepness)
        pull = np.zeros(U.shape[1])
        for p in range(listed.size):
            pull += G[0, p] * vectors[p]
        U[user] -= (RATE * (pull + DECAY * U[user])).astype(np.float32)
        scores = (vectors @ U[user]).astype(np.float64)
        G = pair_gradients(scores, slopes(scores, weights, steepness), steepness)
        for p in range(listed.size):
            gradients[listed[p]] += G[1, p] * U[user]
            visits[listed[p]] += 1.0
    for item in np.flatnonzero(visits):
        V[item] -= (RATE * (gradients[item] + visits[item] * DECAY * V[item])).astype(np.float32)


def make_rows(length: int) -> TrainingLists:
    """Lists of one length of random items with weights +1 and -1."""
    rng = np.random.default_rng(length)
    lists = max(1, RATINGS // length)
    drawn = [np.sort(rng.choice(ITEMS, length, replace=False, shuffle=False)) for _ in range(lists)]
    items = np.concatenate(drawn).astype(np.int32)
    gains = np.where(rng.random(items.size) < 0.6, 1.0, -1.0).astype(np.float32)
    return TrainingLists(np.arange(lists + 1, dtype=np.int64) * length, items, gains, np.empty(0, np.float32))


def make_engine(rows: TrainingLists, function: object) -> CpuEngine:
    """The engine of the paper's model on some lists."""
    scorer = Factors(FACTORS, init=0.3)
    parameters = scorer.initialize(rows.indptr.size - 1, ITEMS, 0)
    rules = {block: UpdateRule(False, 0.0 if block == "item_bias" else RATE, DECAY) for block in parameters}
    problem = Problem(scorer, WeightedDCG(function, n=int(N), truncate=True), rows, rules)
    return CpuEngine(problem, State.start(parameters, 0.0), num_threads=1)


def by_pairs(engine: CpuEngine, users: np.ndarray, steepness: float) -> None:
    """The quadratic visit of some users, on the engine's own data."""
    rows, blocks = engine.problem.rows, engine.state.parameters
    parts = (rows.indptr, rows.items, rows.gains)
    visit_by_pairs(users, parts, blocks["user_factors"], blocks["item_factors"], steepness)


def check_agreement(length: int) -> None:
    """Both programs do the same, or nothing is worth timing."""
    rows = make_rows(length)
    for name, (function, steepness) in STEPS.items():
        linear, quadratic = make_engine(rows, function), make_engine(rows, function)
        start = linear.state.parameters["item_factors"].copy()
        users = np.arange(20)
        linear.step(users)
        by_pairs(quadratic, users, steepness)
        for block in ("user_factors", "item_factors"):
            moved = linear.state.parameters[block], quadratic.state.parameters[block]
            np.testing.assert_allclose(*moved, rtol=2e-5, atol=1e-6, err_msg=f"{name}, {block}")
        assert np.abs(linear.state.parameters["item_factors"] - start).max() > 1e-5, "the visit moved nothing"


def measure(lengths: list[int], repeats: int) -> Times:
    """Median milliseconds per list; programs and steps take turns, so that a busy moment hits all of them."""
    times: Times = {(name, program): {} for name in STEPS for program in ("linear", "quadratic")}
    for length in lengths:
        rows = make_rows(length)
        engines = {name: make_engine(rows, function) for name, (function, _) in STEPS.items()}
        all_users = np.arange(rows.indptr.size - 1)
        few = all_users[: max(1, PAIRS // length**2)]
        found: dict[tuple[str, str], list[float]] = {key: [] for key in times}
        for repeat in range(-1, repeats):  # the first round compiles and warms up
            for name, engine in engines.items():
                started = time.perf_counter()
                engine.step(all_users)
                middle = time.perf_counter()
                if length <= MOST_PAIRS:
                    by_pairs(engine, few, STEPS[name][1])
                ended = time.perf_counter()
                if repeat >= 0:
                    found[name, "linear"].append(1e3 * (middle - started) / all_users.size)
                    found[name, "quadratic"].append(1e3 * (ended - middle) / few.size)
        for key, values in found.items():
            if key[1] == "linear" or length <= MOST_PAIRS:
                times[key][length] = statistics.median(values)
        _tell(times, length)
    return times


def _tell(times: Times, length: int) -> None:
    told = ", ".join(f"{' '.join(key)} {values[length]:.4g} ms" for key, values in times.items() if length in values)
    print(f"{length:,} items: {told}", file=sys.stderr, flush=True)


def to_markdown(times: Times, repeats: int, figure: Path | None) -> str:
    """The numbers as a page, with the figure beside it where there is one."""
    keys = list(times)
    heads = "| list length | " + " | ".join(f"{name}, {program}" for name, program in keys) + " | sgm / ReLU, linear |"
    lines = [heads, "|---" * (len(keys) + 2) + "|"]
    for length in times[keys[0]]:
        cells = [f"{times[key][length]:.4g}" if length in times[key] else "-" for key in keys]
        ratio = times["sigmoid", "linear"][length] / times["ReLU", "linear"][length]
        lines.append(f"| {length:,} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    text = "\n".join((__doc__ or "").strip().splitlines()[4:]).strip()
    title = "# Time of a visit over list length\n\nMilliseconds for one list, median of "
    image = f"![Time of a visit over list length]({figure.name})\n\n" if figure else ""
    return f"{title}{repeats}. {environment()}\n\n{image}" + "\n".join(lines) + f"\n\n{text}\n"


def draw(times: Times, path: Path) -> None:
    """The figure: both axes by logarithm, so that a power is a slope."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colors, styles = {"ReLU": "#0072b2", "sigmoid": "#d55e00"}, {"linear": "-", "quadratic": "--"}
    figure, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    for (name, program), values in times.items():
        style = {"color": colors[name], "linestyle": styles[program], "marker": "o", "markersize": 3}
        axes.loglog(list(values), list(values.values()), label=f"{name}, {program}", **style)
    axes.set(
        xlabel="items in the list", ylabel="milliseconds for one visit", title="Top-N-Rank: time of one user's visit"
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Checks, measures, prints, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--longest", type=int, default=30_000, help="longest list")
    parser.add_argument("--figure", type=Path, help="where to draw (.svg, .png or .pdf); needs Matplotlib")
    parser.add_argument("--markdown", type=Path, help="also write the page to this file")
    arguments = parser.parse_args()
    check_agreement(300)
    lengths = [length for length in LENGTHS if length <= arguments.longest]
    times = measure(lengths, arguments.repeats)
    page = to_markdown(times, arguments.repeats, arguments.figure)
    print(page)
    if arguments.markdown:
        arguments.markdown.write_text(page)
    if arguments.figure:
        draw(times, arguments.figure)


if __name__ == "__main__":
    main()
