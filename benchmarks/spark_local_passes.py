"""What several local passes per exchange do to quality: MovieLens 1M on a real standalone cluster with two workers.

    TOPNRANK_DATA=folder python benchmarks/spark_local_passes.py [--output docs/results/spark-local-passes.md]

Half of each user's ratings for training, NDCG@10 of the others by `topnrank.evaluate` (rated protocol, its conventions). 8
blocks of users, batches of a tenth of them. `spark.topnrank.localPasses` = L visits each batch L times until the blocks
exchange items; exchanges cost the network, passes cost arithmetic. L = 1 is the usual algorithm.
"""

import argparse
import os
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

import topnrank as tnr
from common import environment
from spark import session

BLOCKS, BATCHES = 8, 10
MODELS = {
    "TopNRank(factors=10)": tnr.TopNRank(factors=10),
    "BPR(factors=10)": tnr.BPR(factors=10),
}
RUNS = ((1, 2), (2, 2), (4, 2), (1, 4), (2, 4), (1, 8))
"""Local passes, and epochs: the same number of exchanges, or of passes."""


def measured(
    spark: SparkSession, model: tnr.Model, parts: tuple[tnr.Interactions, tnr.Interactions], run: tuple[int, int]
) -> str:
    """A row of the table."""
    passes, epochs = run
    spark.conf.set("spark.topnrank.localPasses", str(passes))
    model = type(model)(**model.get_params() | {"engine": "spark", "epochs": epochs, "batch_size": 1 / BATCHES})
    found = tnr.evaluate(model.fit(parts[0]), parts[1])["ndcg@10"]
    row = f"| {passes} | {epochs * BATCHES} | {passes * epochs} | {found:.4f} |"
    print(row, flush=True)
    return row


def main() -> None:
    """Starts the cluster, measures, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=None, help="file of the page; printed without it")
    arguments = parser.parse_args()
    parts = tnr.split_per_user(tnr.read(Path(os.environ["TOPNRANK_DATA"]) / "ml-1m.parquet"), test=0.5, seed=0)
    intro = __doc__.split("\n\n")[2].replace("\n", " ")
    lines = ["# Local passes", "", intro, "", f"{environment()}; pyspark {version('pyspark')}"]
    with session() as (spark, _):
        spark.conf.set("spark.topnrank.blocks", str(BLOCKS))
        for name, model in MODELS.items():
            lines += ["", f"## {name}", "", "| L | exchanges | passes | NDCG@10 |", "|---|---|---|---|"]
            lines += [measured(spark, model, parts, run) for run in RUNS]
    simple = {
        kind.__name__: tnr.evaluate(kind().fit(parts[0]), parts[1])["ndcg@10"]
        for kind in (tnr.Random, tnr.Popularity, tnr.ItemMean)
    }
    lines += [
        "",
        "Simple baselines: " + ", ".join(f"{name} {value:.4f}" for name, value in simple.items()) + ".",
    ]
    page = "\n".join(lines) + "\n"
    if arguments.output is not None:
        arguments.output.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
