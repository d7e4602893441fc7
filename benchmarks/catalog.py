"""Ranking the whole catalog: every method tuned with the same effort, then tested.

    TOPNRANK_DATA=folder python benchmarks/catalog.py --data ml-1m --folder results [--methods als,ease] [--trials 8]
    python benchmarks/catalog_page.py --folder results

For each method so many settings are tried on the validation rows (NDCG@10 over all items): a known one and then some drawn
at random from its space. The best is fitted anew on all training rows of each test split and measured. Every trial is a
line of JSON in the folder and every test fit a file: what is there is not computed again, unless its settings are other
ones by now.
Run it on one thread (OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1) where the seconds matter: they are CPU seconds of `fit`.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from catalog_data import DATA, LIKED, Split, Task, load
from catalog_methods import Method, Settings, methods
from topnrank.io.atomic import write_atomically
from topnrank.models.parameters import draw_settings

METRICS = ("ndcg@10", "ndcg@20", "recall@20", "ndcg@100")
COVERAGE = "coverage@10"
GOAL = "ndcg@10"


def run_once(method: Method, settings: Settings, seed: int, parts: Split) -> tuple[tnr.Evaluation, float]:
    """What one fit gives, and its CPU seconds."""
    train, held_out = parts
    model = method.make(dict(settings), seed)
    started = time.process_time()
    ranker = model.fit(train)
    seconds = time.process_time() - started
    relevant = None if held_out.ratings is None else LIKED
    metrics = [*METRICS, COVERAGE]
    result = tnr.evaluate(ranker, held_out, protocol="catalog", metrics=metrics, relevant=relevant, num_threads=1)
    return result, seconds


# -- tuning --------------------------------------------------------------------------------------------------------------


def read_trials(path: Path) -> list[dict[str, Any]]:
    """The finished trials of a method; a line that was cut off when a run was killed is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def tune(task: Task, method: Method, path: Path, trials: int) -> dict[str, Any]:
    """The record of the best of the trials of a method."""
    space, start = method.search
    if not space:
        return {"settings": {}, "value": float("nan")}
    found = read_trials(path)
    records = []
    for trial in range(trials):
        settings = draw_settings(space, 0, trial) if trial else start
        known = [record for record in found if record["settings"] == settings]
        records.append(known[0] if known else run_trial(task, method, path, settings))
    return max(records, key=lambda record: record["value"])


def run_trial(task: Task, method: Method, path: Path, settings: Settings) -> dict[str, Any]:
    """One fit on the validation split, noted in the file; a fit that diverges is worth nothing."""
    record: dict[str, Any] = {"settings": settings, "value": 0.0, "cpu_seconds": 0.0}
    try:
        result, seconds = run_once(method, settings, 0, task.validation)
        record |= {"value": result[GOAL], "cpu_seconds": seconds, "values": result.values}
    except tnr.DivergenceError as error:
        record["error"] = str(error)
    with path.open("a") as log:
        log.write(json.dumps(record) + "\n")
    print(
        f"{task.name} {path.parent.name}: {record['value']:.4f} in {record['cpu_seconds']:.1f} s, {settings}",
        flush=True,
    )
    return record


# -- test ----------------------------------------------------------------------------------------------------------------


def read_test(path: Path) -> dict[str, Any] | None:
    """A finished test fit: facts and, by metric, the values of all users of the data; None if there is none."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        facts: dict[str, Any] = json.loads(str(file["facts"]))
        return facts | {"values": {metric: file[metric] for metric in METRICS}}


def test(task: Task, method: Method, folder: Path, best: dict[str, Any]) -> None:
    """Fits and measures each repeat that is not there yet."""
    for split, seed in task.repeats(random=method.random):
        path = folder / f"{split}-{seed}.npz"
        known = read_test(path)
        if known is not None and known["settings"] == best["settings"]:
            continue
        result, seconds = run_once(method, best["settings"], seed, task.tests[split])
        facts = {"settings": best["settings"], "validation": best["value"], "cpu_seconds": seconds}
        facts |= {"split": split, "seed": seed, "label": method.label, "coverage": result[COVERAGE]}
        save_test(path, task, result, facts)
        print(f"{task.name} {folder.name} split {split} seed {seed}: {result[GOAL]:.4f} in {seconds:.1f} s", flush=True)


def save_test(path: Path, task: Task, result: tnr.Evaluation, facts: dict[str, Any]) -> None:
    """Values of users without one are NaN."""
    places = task.data.users.index(result.user_ids)
    contents: dict[str, Any] = {metric: np.full(task.data.n_users, np.nan) for metric in METRICS}
    for metric, values in contents.items():
        values[places] = result.per_user[metric]
    facts |= {"n_users": result.n_users, "convention": result.convention}

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, facts=np.array(json.dumps(facts)), **contents)

    write_atomically(path, write)


def main() -> None:
    """Tunes and tests the methods asked for on one data set after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA), help="some of: %(default)s")
    parser.add_argument("--methods", default="", help="names, in the order to run; default: all of them")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--folder", type=Path, required=True, help="where trials and test fits are kept")
    arguments = parser.parse_args()
    for name in arguments.data.split(","):
        task = load(name)
        table = methods(task.name, task.kind)
        wanted = [key for key in arguments.methods.split(",") if key] or list(table)
        for key in wanted:
            if key not in table:
                print(f"{name}: no method {key!r}; there are {', '.join(table)}", flush=True)
                continue
            folder = arguments.folder / name / key
            folder.mkdir(parents=True, exist_ok=True)
            best = tune(task, table[key], folder / "trials.jsonl", arguments.trials)
            test(task, table[key], folder, best)


if __name__ == "__main__":
    main()
