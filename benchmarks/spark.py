"""The Spark engine beside the CPU engine and MLlib's ALS, on a real standalone cluster with two workers on this machine.

    python benchmarks/spark.py [--share 1.0] [--rounds 3] [--output docs/results/spark.md]

An iteration is one visit of all users of synthetic ratings of MovieLens 20M's shape with the paper's model at 10 factors; of
ALS it is one of its iterations at the same rank on the same ratings in the same Spark application, by the difference of two
fits. All take turns; medians and ranges are printed, with the bytes that an iteration moves.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

import topnrank as tnr
from common import environment
from support import cluster as standalone
from topnrank.engines import Engine, TrainingTime, make_engine
from topnrank.models.factor.prepare import prepare

USERS, ITEMS, RATINGS = 138_493, 27_278, 20_000_263
FACTORS = 10
ALS_ITERATIONS = (1, 4)
"""Two fits whose difference is three iterations."""
Times = dict[str, list[float]]


@contextmanager
def session() -> Iterator[tuple[SparkSession, Path]]:
    """A session on a cluster of its own, and a folder that all of it sees."""
    with tempfile.TemporaryDirectory() as name, standalone.running(Path(name)) as cluster:
        os.environ.update(cluster.environment)
        spark = SparkSession.builder.master(cluster.master).config("spark.executor.memory", "2g").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark, Path(name)
        finally:
            spark.stop()


def synthetic(share: float) -> tnr.Interactions:
    """Ratings of a share of MovieLens 20M's users; items as they are."""
    return tnr.synthetic(int(USERS * share), ITEMS, ratings=int(RATINGS * share), seed=20)


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """What `work` takes on the clock."""
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def engine_of(name: str, data: tnr.Interactions) -> Engine:
    """An engine with the paper's model on `data`."""
    recipe = tnr.TopNRank.paper(factors=FACTORS).resolve(data)
    prepared = prepare(data, recipe.feedback, recipe.selection)
    problem = recipe.problem(prepared.rows, prepared.frozen)
    return make_engine(name, problem, recipe.start_state(data.n_users, data.n_items, prepared.frozen))


def als_iteration(frame: Any) -> float:
    """Seconds of one iteration of MLlib's ALS."""
    columns = {"userCol": "user", "itemCol": "item", "ratingCol": "rating"}
    few, many = (seconds(ALS(rank=FACTORS, maxIter=n, **columns).fit, frame) for n in ALS_ITERATIONS)
    return (many - few) / (ALS_ITERATIONS[1] - ALS_ITERATIONS[0])


def measure(spark: SparkSession, data: tnr.Interactions, blocks: list[int], rounds: int, als: Any) -> tuple[Times, Any]:
    """Seconds of an iteration over all users, of every engine in turn."""
    users, engines = np.arange(data.n_users), {"CPU engine": engine_of("cpu", data)}
    for count in blocks:
        spark.conf.set("spark.topnrank.blocks", str(count))
        engines[f"Spark engine, {count} blocks"] = engine_of("spark", data)
    times: Times = {name: [] for name in engines}
    if als is not None:
        times["MLlib ALS"] = []
    for round_ in range(rounds + 1):  # the first warms up
        taken = {name: seconds(engine.step, users, TrainingTime(round_, 0.5)) for name, engine in engines.items()}
        if als is not None:
            taken["MLlib ALS"] = als_iteration(als)
        if round_:
            for name, value in taken.items():
                times[name].append(value)
        print(f"round {round_}: " + ", ".join(f"{name} {value:.2f} s" for name, value in taken.items()), flush=True)
    return times, engines[f"Spark engine, {blocks[-1]} blocks"].traffic  # type: ignore[attr-defined]


def table(times: Times) -> list[str]:
    """One row for each engine, with its ratio to the CPU engine in the same round."""
    rows = ["| | seconds of an iteration | range | times the CPU engine |", "|---|---|---|---|"]
    for name, taken in times.items():
        ratio = statistics.median(mine / cpu for mine, cpu in zip(taken, times["CPU engine"], strict=True))
        rows.append(f"| {name} | {statistics.median(taken):.2f} | {min(taken):.2f}-{max(taken):.2f} | {ratio:.2f} |")
    return rows


def verdicts(times: Times) -> list[str]:
    """What of the bars is kept, in the best number of blocks."""
    spark = min(statistics.median(taken) for name, taken in times.items() if name.startswith("Spark"))
    cpu, als = statistics.median(times["CPU engine"]), statistics.median(times["MLlib ALS"])
    words = {True: "kept", False: "missed"}
    return [
        f"- at most 3 times the CPU engine's iteration plus a second ({3 * cpu + 1:.2f} s): {words[spark <= 3 * cpu + 1]}",
        f"- less than an iteration of MLlib's ALS ({als:.2f} s): {words[spark < als]}",
    ]


def run(spark: SparkSession, folder: Path, arguments: argparse.Namespace) -> str:
    """Measures every size; the page."""
    lines = [
        "# The Spark engine",
        "",
        __doc__.split("\n\n")[2].replace("\n", " "),
        "",
        environment() + "; pyspark " + version("pyspark"),
    ]
    for share in sorted({0.05 * arguments.share, 0.25 * arguments.share, arguments.share}):
        data = synthetic(share)
        whole = share == arguments.share
        frame = None
        if whole:
            path = folder / "ratings.parquet"
            pq.write_table(data.to_arrow(), path)
            frame = spark.read.parquet(path.as_uri()).persist()
            frame.count()
        print(f"{len(data):,} ratings", flush=True)
        times, traffic = measure(spark, data, [2, 8] if whole else [2], arguments.rounds, frame)
        lines += [
            "",
            f"## {len(data):,} ratings, {data.n_users:,} users, {data.n_items:,} items",
            "",
            *table(times),
            "",
        ]
        lines.append(
            f"An iteration broadcasts {traffic.down / 1e6:.2f} MB to each executor and gets {traffic.up / 1e6:.2f} MB of "
            "sums back, from all blocks together."
        )
        if whole:
            lines += ["", *verdicts(times)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Starts the cluster, measures, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of MovieLens 20M's users (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=None, help="file of the page; printed without it")
    arguments = parser.parse_args()
    with session() as (spark, folder):
        page = run(spark, folder, arguments)
    if arguments.output is not None:
        arguments.output.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
