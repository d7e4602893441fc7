"""CPU seconds of training for the catalog on MovieLens 1M, TopNRank and implicit's ALS in turn: writes
docs/results/catalog_time.md.

TOPNRANK_DATA=folder OMP_NUM_THREADS=1 python benchmarks/catalog_time.py
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from catalog_data import load
from catalog_methods import methods
from common import environment

REPEATS = 3
PAGE = Path(__file__).parent.parent / "docs" / "results" / "catalog_time.md"
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "implicit ALS": ("als", {"alpha": 7.0, "regularization": 80.0}),
    "TopNRank, defaults": ("topnrank", {}),
    "TopNRank, 12 epochs": ("topnrank", {"learning_rate": 0.12, "epochs": 12}),
    "TopNRank without neighbors, 12 epochs": (
        "topnrank-no-neighbors",
        {"learning_rate": 0.12, "epochs": 12},
    ),
}


def main() -> None:
    """Fits all in turn, so that a busy machine slows them alike."""
    task = load("ml-1m")
    train, test = task.tests[0]
    table = methods(task.name, task.kind)
    seconds: dict[str, list[float]] = {name: [] for name in RUNS}
    quality: dict[str, float] = {}
    for repeat in range(REPEATS + 1):  # the first compiles
        for name, (method, settings) in RUNS.items():
            model, start = table[method].make(settings, 0), time.process_time()
            fitted = model.fit(train)
            if repeat:
                seconds[name].append(time.process_time() - start)
            quality[name] = tnr.evaluate(fitted, test, protocol="catalog", metrics="ndcg@10")["ndcg@10"]
    base = float(np.median(seconds["implicit ALS"]))
    lines = [
        "# Training time for the catalog, beside ALS",
        "",
        "MovieLens 1M, split 0 of the [catalog study](catalog.md), 64 factors, one thread; the methods were fitted in "
        "turn in one process, after one round that compiles. Quality is on the test rows; settings are "
        "defaults and known ones.",
        "",
        "| method | NDCG@10, split 0 | CPU s (median of 3) | against ALS |",
        "|---|---|---|---|",
    ]
    for name, values in seconds.items():
        median = float(np.median(values))
        lines.append(f"| {name} | {quality[name]:.4f} | {median:.1f} | {median / base:.1f} |")
    text = "\n".join([*lines, "", f"{environment()}.", ""])
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
