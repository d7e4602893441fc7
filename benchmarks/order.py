"""The next item of each user: models that know order, beside those that do not. Writes docs/results/order.md.

    TOPNRANK_DATA=folder python benchmarks/order.py FOLDER [--data ml-1m,...] [--protocols last,...] [--methods ...]
        [--processes 16] [--page]

Every (data set, protocol, method) is measured by a process of its own, on one thread, and leaves a file in FOLDER; what is
there is not measured again. --page writes the page from the files.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from common import environment
from order_data import PROTOCOLS, TITLES, Split, protocols_of, splits_of

METRIC, RECENCIES = "ndcg@10", (2.0, 8.0, 32.0)
REPEATS = tuple(round(base * 10.0**power, 9) for power in range(-3, 2) for base in (1.0, 3.0))
"""Weights of repetition that are tried."""
ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    label: str
    model: tnr.Model
    protocols: tuple[str, ...] = ("last", "file", "time")
    again: bool = False
    """Whether the weight of repetition is chosen on held-out last events"""


LINEAR = 1e6
"""A smoothing by which log(1 + C / smoothing) is as good as C."""
MARKOV = {"window": 1, "popularity": 0.0, "head": 1, "head_share": 1.0, "head_decay": 0.5, "distance_power": 1.0}
NEXT = {"smoothing": 1.0, "head_share": 0.8, "head_decay": 0.6, "undirected": "auto", "recent_popularity": "auto"}
ALONE = {"transitions": 0.0, "undirected": 0.0, "recent_popularity": 0.0}
ORDERED, EVERY = ("last", "file", "time", "lrurec", "again"), ("last", "file", "time", "again")
UNARY: dict[str, Any] = {"feedback": "unary", "num_threads": 1}
COUNTS: dict[str, Any] = {"feedback": "weights", "num_threads": 1}
ITSELF = {**MARKOV, "smoothing": 1e30, "repeats": 1.0}
"""Transitions of which nothing but repetition is left."""
METHODS = {
    "popularity": Method("popularity", tnr.Popularity(), EVERY),
    "recent-popularity": Method("recent popularity", tnr.RecentPopularity(), EVERY),
    "item-id-order": Method("control: item ids alone", tnr.ItemIdOrder()),
    "itself": Method("own items again, by how often and how lately", tnr.Transitions(**ITSELF, **COUNTS), ("again",)),
    "ease": Method("EASE", tnr.EASE(feedback="unary")),
    "neighbor-ridge": Method(
        "NeighborRidge with recency", tnr.NeighborRidge(neighbors=100, regularization=80.0, **UNARY), EVERY
    ),
    "markov": Method("MC: the last item alone", tnr.Transitions(**MARKOV, smoothing=LINEAR, **UNARY), ORDERED),
    "rules": Method(
        "SeqRules: 20 rows, 1/d", tnr.Transitions(**{**MARKOV, "window": 20}, smoothing=LINEAR, **UNARY), ORDERED
    ),
    "transitions": Method("Transitions (PCTM)", tnr.Transitions(**UNARY), ORDERED),
    "next": Method("Transitions with parts", tnr.Transitions(**NEXT, **UNARY), ORDERED),
    "next-item-ridge-alone": Method("NextItemRidge, regression alone", tnr.NextItemRidge(**ALONE, **UNARY), ORDERED),
    "next-item-ridge": Method("NextItemRidge", tnr.NextItemRidge(**UNARY), ORDERED),
    "shuffled": Method("NextItemRidge, histories shuffled when asked", tnr.NextItemRidge(**UNARY), ("last",)),
    "transitions-again": Method("Transitions with repeats", tnr.Transitions(**UNARY), ("again",), again=True),
    "transitions-counts": Method(
        "Transitions with repeats, rows count by their events", tnr.Transitions(**COUNTS), ("again",), again=True
    ),
    "next-item-ridge-again": Method("NextItemRidge with repeats", tnr.NextItemRidge(**UNARY), ("again",), again=True),
}
"""What TopNRank gives where rows come after the training rows has no factors in it: it is the model "next"."""


def value(model: tnr.Model, test: tnr.Interactions, protocol: str) -> tnr.Evaluation:
    """NDCG@10 of a fitted model."""
    own = {"protocol": "catalog", "metrics": METRIC, "relevant": None, "num_threads": 1}
    return tnr.evaluate(model, test, exclude_seen=protocol != "again", **own)


def with_settings(method: Method, split: Split, protocol: str) -> tnr.Model:
    """The model with all that is to be chosen chosen on training rows."""
    model, (rest, asked) = method.model, split.inner

    def best(name: str, values: Sequence[float], model: Any) -> tnr.Model:
        tried = {one: value(replace(model, **{name: one}).fit(rest), asked, protocol)[METRIC] for one in values}
        chosen: tnr.Model = replace(model, **{name: max(tried, key=lambda one: tried[one])})
        return chosen

    if isinstance(model, tnr.NeighborRidge):
        return best("recency", RECENCIES, model)
    chosen = model.with_explicit_defaults(split.train)
    return best("repeats", (0.0, *REPEATS), chosen) if method.again else chosen


def seconds(action: Callable[[], Any]) -> tuple[Any, float]:
    """What `action` gives, and its CPU seconds."""
    start = time.process_time()
    given = action()
    return given, time.process_time() - start


def with_past(model: Any, learned: tnr.Interactions, past: tnr.Interactions) -> tnr.Model:
    """A model that learned from some rows, and is asked with other ones as the histories of the same users."""
    links = model.fit(learned).fitted.arrays
    asked = model.fit(past)
    asked.fitted.arrays.update({name: array for name, array in links.items() if not name.startswith("seen_")})
    made: tnr.Model = asked
    return made


def shuffled(data: tnr.Interactions) -> tnr.Interactions:
    """The same rows, every history in random order."""
    times, users, draws = data.timestamps, data.user_index, np.random.default_rng(0).random(len(data))
    assert times is not None
    other = times.copy()
    other[np.lexsort((draws, users))] = times[np.lexsort((times, users))]
    return replace(data, timestamps=other, places=None)


def fitted(key: str, model: tnr.Model, split: Split) -> tnr.Model:
    """The model of a method, fitted to a split."""
    if key == "shuffled":
        return with_past(model, split.train, shuffled(split.train))
    return model.fit(split.train) if split.past is None else with_past(model, split.train, split.past)


def measure(name: str, protocol: str, key: str) -> dict[str, Any]:
    """All numbers of a method on a data set by a protocol."""
    method = METHODS[key]
    data, splits = splits_of(name, protocol)
    few = tnr.synthetic(users=60, items=40, ratings=900, seed=0)
    method.model.fit(few.with_weights(np.ones(len(few), np.float32)))  # compile first
    chosen, choosing = seconds(lambda: with_settings(method, splits[0], protocol))
    changed = {k: v for k, v in chosen.get_params().items() if v != method.model.get_params()[k]}
    if not changed.get("undirected", getattr(chosen, "undirected", 0.0)):
        changed.pop("recency", None) if not isinstance(chosen, tnr.NeighborRidge) else None
    runs = []
    for split in splits:
        model, fitting = seconds(lambda split=split: fitted(key, chosen, split))
        result = value(model, split.test, protocol)
        runs.append({"ndcg": result[METRIC], "users": result.n_users, "fitting": fitting})
    facts = {"facts": str(tnr.order_facts(data)), "rows": repr(data), "environment": environment()}
    return {**facts, "choosing": choosing, "settings": changed, "runs": runs}


def tasks(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    """What is to be measured, the longest first."""
    asked = [
        (name, protocol, key)
        for name in arguments.data.split(",")
        for protocol in protocols_of(name)
        if protocol in arguments.protocols.split(",")
        for key in arguments.methods.split(",")
        if protocol in METHODS[key].protocols
        and not (key == "ease" and name in ("amazon-video-games", "retail-rocket"))
    ]
    heavy = ["next-item-ridge-again", "next-item-ridge", "shuffled", "next-item-ridge-alone", "ease"]
    large = ["ml-1m", "online-retail-ii", "amazon-video-games", "music30"]

    def place(task: tuple[str, str, str]) -> int:
        return sum(known.index(one) if one in known else 9 for known, one in ((large, task[0]), (heavy, task[2])))

    return sorted(asked, key=place)


def run_all(arguments: argparse.Namespace) -> None:
    """Every task that has no file yet in a process of its own."""

    def one(task: tuple[str, str, str]) -> None:
        if file_of(arguments.folder, task).exists():
            return
        command = [sys.executable, __file__, str(arguments.folder), "--one", "/".join(task)]
        done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
        print("/".join(task), "done" if done.returncode == 0 else done.stderr[-2000:], flush=True)

    with ThreadPoolExecutor(arguments.processes) as pool:
        list(pool.map(one, tasks(arguments)))


def file_of(folder: Path, task: Sequence[str]) -> Path:
    """Where the numbers of a task are."""
    return folder / f"{'.'.join(task)}.json"


def main() -> None:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the numbers")
    parser.add_argument("--data", default=",".join(TITLES), help=", ".join(TITLES))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help=", ".join(PROTOCOLS))
    parser.add_argument("--methods", default=",".join(METHODS), help=", ".join(METHODS))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--one", help="DATA/PROTOCOL/METHOD: measure it in this process")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured")
    arguments = parser.parse_args()
    known = {"data": TITLES, "protocols": PROTOCOLS, "methods": METHODS}
    for option, names in known.items():
        if unknown := [one for one in getattr(arguments, option).split(",") if one not in names]:
            parser.error(f"there is no {unknown[0]!r}; give some of {', '.join(names)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        task = arguments.one.split("/")
        file_of(arguments.folder, task).write_text(json.dumps(measure(*task), indent=1) + "\n")
    elif arguments.page:
        from order_page import write

        write(arguments.folder)
    else:
        run_all(arguments)


if __name__ == "__main__":
    main()
