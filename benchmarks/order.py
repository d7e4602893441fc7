"""The next item of each user: models that know order, beside those that do not. Writes docs/results/order.md.

    TOPNRANK_DATA=folder python benchmarks/order.py [ml-1m ...] [--numbers FILE] [--page-only]

Of each user the last item by time is asked for, among all items but those of the user's training rows (nothing is
sampled). Every row counts, whatever its rating; a user and item with several rows count once, by the latest. Items of one
moment are in random order, on MovieLens 1M drawn anew for each of three splits. "File order": ties in the order of the file,
as published numbers have it. "Global time": the latest fifth of the rows is asked for, of users and items with training
rows. "LRURec's protocol" (Amazon Video Games): the last item of all users with three rows, the last but one taken from
training and known to the models when they are asked; settings by the last items of what is left. "Again": plays, visits and
purchases count each time; the last event of each user is asked for among all items, the seen ones too.

Settings: those that are "auto" are resolved by `fit` on held-out last items of its training rows; recency of NeighborRidge,
lambda of EASE and the weight of repeats are chosen on the last items of the training rows. Where there are several splits,
all is chosen on the training rows of the first, some of which are test rows of the others. The test rows are used once. CPU
seconds are of one thread, on a machine that was busy with other work.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import topnrank as tnr
from common import environment

PAGE = Path(__file__).parent.parent / "docs" / "results" / "order.md"
FILES = {"amazon-video-games": "amazon-video-games-2014-sasrec"}
TITLES = {
    "ml-1m": "MovieLens 1M",
    "amazon-video-games": "Amazon Video Games 2014",
    "foursquare": "Foursquare",
    "music30": "30Music",
}
NOTES = {
    "ml-1m": "The order within a moment was that of the page shown to the user; taken at random it helps nobody.",
    "amazon-video-games": "Steps go to larger ids far more often than to smaller ones, so a part of what direction brings "
    "here may be the order in which items were numbered. Positions are not times: recent popularity means nothing.",
    "foursquare": "Places are visited again and again: what belongs together counts more than what comes next.",
    "music30": "Songs of an album follow each other, which ids reflect. Plays of a song again are not asked for.",
}
METRIC, RECENCIES = "ndcg@10", (1.0, 2.0, 4.0, 8.0, 32.0)
Split = tuple[tnr.Interactions, tnr.Interactions]


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    label: str
    model: tnr.Model


METHODS = {
    "popularity": Method("popularity", tnr.Popularity()),
    "recent-popularity": Method("recent popularity", tnr.RecentPopularity()),
    "item-id-order": Method("control: item ids alone", tnr.ItemIdOrder()),
    "neighbor-ridge": Method("NeighborRidge with recency", tnr.NeighborRidge(neighbors=100, num_threads=1)),
    "transitions": Method("Transitions", tnr.Transitions(num_threads=1)),
    "next-item-ridge-alone": Method("NextItemRidge without counts", tnr.NextItemRidge(transitions=0.0, num_threads=1)),
    "next-item-ridge": Method("NextItemRidge", tnr.NextItemRidge(num_threads=1)),
}


def load(name: str) -> tnr.Interactions:
    """All rows of a data set, without ratings."""
    folder = os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data")
    when = "position" if name == "amazon-video-games" else "timestamp"
    table = pq.read_table(Path(folder) / f"{FILES.get(name, name)}.parquet", columns=["user", "item", when])
    return tnr.Interactions.from_frame(table, user="user", item="item", timestamp=when, duplicates="last")


def last_items(data: tnr.Interactions, seed: int, least: int) -> Split:
    """(the rest, the last item of each user with at least `least` items)."""
    train, test = tnr.split_last(data, seed=seed)
    many = np.diff(data.indptr) >= least
    short = test.take(~many[test.user_index])
    rows = np.isin(_pairs(data), _pairs(train)) | np.isin(_pairs(data), _pairs(short))
    return data.take(rows), test.take(many[test.user_index])


def _pairs(data: tnr.Interactions) -> np.ndarray[Any, Any]:
    return data.user_index.astype(np.int64) * data.n_items + data.indices


def value(model: tnr.Model, test: tnr.Interactions) -> tnr.Evaluation:
    """NDCG@10 of a fitted model."""
    return tnr.evaluate(model, test, protocol="catalog", metrics=METRIC, relevant=None, num_threads=1)


def with_settings(model: tnr.Model, train: tnr.Interactions, least: int) -> tnr.Model:
    """The model with all that is to be chosen chosen on training rows."""
    if isinstance(model, tnr.NeighborRidge):
        rest, asked = last_items(train, 0, least)
        tried = {one: value(replace(model, recency=one).fit(rest), asked)[METRIC] for one in RECENCIES}
        return replace(model, recency=max(tried, key=lambda one: tried[one]))
    return model.with_explicit_defaults(train)


def seconds(action: Any) -> tuple[Any, float]:
    """What `action` gives, and its CPU seconds."""
    start = time.process_time()
    given = action()
    return given, time.process_time() - start


def measure(name: str) -> dict[str, Any]:
    """All numbers of a data set."""
    data = load(name)
    least, seeds = (5, [0]) if name == "amazon-video-games" else (2, [0, 1, 2] if name == "ml-1m" else [0])
    found: dict[str, Any] = {"facts": str(tnr.order_facts(data)), "rows": repr(data), "methods": {}}
    choice: dict[str, tuple[tnr.Model, float]] = {}
    for kind in METHODS:  # compile first
        METHODS[kind].model.fit(tnr.synthetic(users=60, items=40, ratings=900, seed=0))
    for seed in seeds:
        train, test = last_items(data, seed, least)
        for key, method in METHODS.items():
            if seed == seeds[0]:
                choice[key] = seconds(lambda method=method, train=train: with_settings(method.model, train, least))
            chosen, choosing = choice[key]
            fitted, fitting = seconds(lambda chosen=chosen, train=train: chosen.fit(train))
            result = value(fitted, test)
            changed = {k: v for k, v in chosen.get_params().items() if v != method.model.get_params()[k]}
            one = {"ndcg": result[METRIC], "users": result.n_users, "choosing": choosing, "fitting": fitting}
            found["methods"].setdefault(key, []).append({**one, "settings": changed})
            print(name, seed, key, {**one, "settings": changed}, flush=True)
    return found


def page(numbers: dict[str, Any]) -> str:
    """The page of all data sets measured so far."""
    words = "\n".join((__doc__ or "").split("\n\n")[2:])
    lines = ["# The next item", "", *words.splitlines(), "", f"{environment()}.", ""]
    for name, found in numbers.items():
        lines += [f"## {TITLES[name]}", "", f"{found['rows']}. {found['facts']}", ""]
        lines += [NOTES[name], ""]
        lines += ["| method | NDCG@10 | CPU s, settings given | CPU s of choosing | chosen (first split) |"]
        lines += ["|---|---|---|---|---|"]
        for key, runs in found["methods"].items():
            ndcg = np.array([run["ndcg"] for run in runs])
            spread = f" ({ndcg.min():.4f} to {ndcg.max():.4f})" if len(runs) > 1 else ""
            given, choosing = (np.mean([run[part] for run in runs]) for part in ("fitting", "choosing"))
            settings = ", ".join(f"{k} {v}" for k, v in runs[0]["settings"].items()) or "-"
            lines.append(
                f"| {METHODS[key].label} | {ndcg.mean():.4f}{spread} | {given:.1f} | {choosing:.1f} | {settings} |"
            )
        runs = next(iter(found["methods"].values()))
        users, splits = runs[0]["users"], "one split" if len(runs) == 1 else f"{len(runs)} splits"
        lines += [
            "",
            f"{users:,} users, {splits}; the standard error of a value is about {0.27 / np.sqrt(users):.4f}.",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Measures, and writes the page and its numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=list(TITLES), metavar="DATA", help=", ".join(TITLES))
    parser.add_argument(
        "--numbers", type=Path, default=Path("order-numbers.json"), help="what was measured, kept between calls"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from the numbers measured before")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.data if name not in TITLES]:
        parser.error(f"there is no data set {unknown[0]!r}; give some of {', '.join(TITLES)}")
    numbers: dict[str, Any] = json.loads(arguments.numbers.read_text()) if arguments.numbers.exists() else {}
    for name in [] if arguments.page_only else arguments.data:
        numbers[name] = measure(name)
        arguments.numbers.write_text(
            json.dumps({key: numbers[key] for key in TITLES if key in numbers}, indent=1) + "\n"
        )
    PAGE.write_text(page({key: numbers[key] for key in TITLES if key in numbers}), encoding="utf-8")


if __name__ == "__main__":
    main()
