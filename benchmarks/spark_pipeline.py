"""From Parquet files to saved lists on a real standalone cluster with two workers on this machine, MLlib's ALS beside it.

    python benchmarks/spark_pipeline.py [--share 1.0] [--output docs/results/spark-pipeline.md]

Synthetic ratings of MovieLens 20M's shape, half of each user's for training. Ours: the default TopNRank with 10 factors, 3
passes in batches of a third of the users; every step is a Spark job and no row comes to the driver. ALS: rank 10, its
default of 10 iterations, in the same application. Lists hold 20 items for every user and are written as Parquet. One run of
each; kernels that a machine has not compiled yet are compiled in the first step.
"""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

import topnrank as tnr
from common import environment
from spark import FACTORS, seconds, session, synthetic
from topnrank.spark import TopNRank

LISTS = 20
Step = tuple[str, float]


def files(folder: Path, share: float) -> tuple[str, str, int]:
    """Training and test rows as Parquet files, and how many rows there are."""
    data = synthetic(share)
    parts = tnr.split_per_user(data, test=0.5, seed=0)
    for name, part in zip(("train", "test"), parts, strict=True):
        pq.write_table(part.to_arrow(), folder / f"{name}.parquet", row_group_size=1_000_000)
    return (folder / "train.parquet").as_uri(), (folder / "test.parquet").as_uri(), len(data)


def ours(spark: SparkSession, train: str, test: str, folder: Path) -> list[Step]:
    """Every step of ours, with its seconds."""
    kept: dict[str, Any] = {}

    def fit() -> None:
        model = TopNRank(task="rated", factors=FACTORS, epochs=3, batch_size=1 / 3)
        kept["model"] = model.fit(spark.read.parquet(train))

    def evaluate() -> None:
        kept["found"] = kept["model"].evaluate(spark.read.parquet(test), metrics=["ndcg@10"])

    lists = folder.joinpath("lists").as_uri()
    steps = {
        "read, number ids, train": fit,
        "evaluate (rated items, NDCG@10)": evaluate,
        f"{LISTS} items for every user": lambda: kept["model"].recommend(n=LISTS).write.parquet(lists),
        "save the model": lambda: kept["model"].write().save(folder.joinpath("model").as_uri()),
    }
    return [told("topnrank", name, seconds(step)) for name, step in steps.items()]


def theirs(spark: SparkSession, train: str, folder: Path) -> list[Step]:
    """The steps that ALS has."""
    kept: dict[str, Any] = {}

    def fit() -> None:
        model = ALS(rank=FACTORS, userCol="user", itemCol="item", ratingCol="rating")
        kept["model"] = model.fit(spark.read.parquet(train))

    lists = folder.joinpath("als-lists").as_uri()
    steps = {
        "read, train": fit,
        f"{LISTS} items for every user": lambda: kept["model"].recommendForAllUsers(LISTS).write.parquet(lists),
    }
    return [told("ALS", name, seconds(step)) for name, step in steps.items()]


def told(who: str, step: str, taken: float) -> Step:
    """Prints a step as it ends."""
    print(f"{who}: {step}: {taken:.1f} s", flush=True)
    return step, taken


def table(steps: list[Step]) -> list[str]:
    """One row for each step, and their sum."""
    rows = [f"| {name} | {taken:.1f} |" for name, taken in [*steps, ("together", sum(taken for _, taken in steps))]]
    return ["| | seconds |", "|---|---|", *rows]


def main() -> None:
    """Starts the cluster, measures, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of MovieLens 20M's users (default: all)")
    parser.add_argument("--output", type=Path, default=None, help="file of the page; printed without it")
    arguments = parser.parse_args()
    with session() as (spark, folder):
        train, test, n_rows = files(folder, arguments.share)
        mine, als = ours(spark, train, test, folder), theirs(spark, train, folder)
    intro = __doc__.split("\n\n")[2].replace("\n", " ")
    where = f"{environment()}; pyspark {version('pyspark')}; {n_rows:,} ratings"
    lines = ["# Spark from files to lists", "", intro, "", where, "", "## topnrank", "", *table(mine), ""]
    page = "\n".join([*lines, "## MLlib ALS", "", *table(als)]) + "\n"
    if arguments.output is not None:
        arguments.output.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
