"""Random search over a model's declared search space, on validation data only.

    TOPNRANK_DATA=folder python benchmarks/search.py ml-100k list-pmf --users factors --trials 0:20 --log trials.jsonl

Users with at least 10 ratings; half of each user's ratings are training data (split 0); a quarter of that half is held out
and ranked, NDCG@10 with rating >= 4 as relevant. The other half, the test data, is never looked at. The number of epochs
is found by early stopping. Trial t of a search draws the same settings for every data set, so that searches on several
data sets can be put together. One line of JSON per trial goes to the log: settings, best round, value, seconds.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import topnrank as tnr
from topnrank.models.parameters import draw_settings


def run_trial(
    kind: type[tnr.Model], settings: dict[str, Any], parts: tuple[tnr.Interactions, tnr.Interactions]
) -> dict[str, Any]:
    """Fits once; the value is that of the best round."""
    part, held_out = parts
    started = time.perf_counter()
    try:
        model = kind(**settings).fit(part, validation=held_out, patience=12)
    except tnr.DivergenceError:
        return {"value": 0.0, "round": 0, "seconds": time.perf_counter() - started}
    value = model.fitted.info.validation["ndcg@10"]
    return {"value": value, "round": model.best_round_, "seconds": time.perf_counter() - started}


def main() -> None:
    """Runs the trials of one model on one data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("model")
    parser.add_argument("--users", default="history")
    parser.add_argument("--trials", default="0:20", help="FIRST:END, or a list of numbers such as 3,17")
    parser.add_argument("--set", action="append", default=[], help="NAME=JSON, kept the same in all trials")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    folder = os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data")
    data = tnr.read(Path(folder) / f"{arguments.data}.parquet").filter(min_user_items=10)
    train, _ = tnr.split_per_user(data, test=0.5, seed=0)
    parts = tnr.split_per_user(train, test=0.25, seed=0)
    kind = tnr.MODELS[arguments.model]
    fixed = {name: json.loads(value) for name, _, value in (one.partition("=") for one in arguments.set)}
    fixed |= {"user_representation": arguments.users, "epochs": arguments.epochs}
    if ":" in arguments.trials:
        trials = list(range(*map(int, arguments.trials.split(":"))))
    else:
        trials = [int(number) for number in arguments.trials.split(",")]
    for trial in trials:
        drawn = draw_settings(kind.search_space(), 0, trial)
        settings = drawn | fixed
        record = {"data": arguments.data, "model": arguments.model, "trial": trial, "settings": settings}
        record |= run_trial(kind, settings, parts)
        with arguments.log.open("a") as log:
            log.write(json.dumps(record, default=repr) + "\n")
        print(f"{arguments.model} {arguments.users} {trial}: {record['value']:.4f} at {record['round']}", flush=True)


if __name__ == "__main__":
    main()
