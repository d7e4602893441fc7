"""The next item of each user: models that know order, beside those that do not. Writes docs/results/order.md.

    TOPNRANK_DATA=folder python benchmarks/order.py [ml-1m ...] [--numbers FILE] [--page-only]

Of each user the last item by time is asked for, among all items but those of the user's training rows (nothing is
sampled). Every row counts, whatever its rating; a user and item with several rows count once, by the latest. Items of one
moment are in random order, on MovieLens 1M drawn anew for each of three splits. "File order": ties in the order of the file,
as published numbers have it. "Global time": the latest fifth of the rows is asked for, of users with training rows.

Settings: those that are "auto" are resolved by `fit` on held-out last items of its training rows; recency of NeighborRidge
is chosen on the last items of the training rows. Where there are several splits,
all is chosen on the training rows of the first, some of which are test rows of the others. The test rows are used once. CPU
seconds are of one thread, on a machine that was busy with other work.

Of MovieLens 1M, Amazon Video Games, Foursquare and 30Music most rows are of an earlier version, without parts beside the
directed one, and before rows of one moment counted alike in scores; of this version are "TopNRank, what comes next" and,
of MovieLens 1M (solved in double precision) and Foursquare, NextItemRidge.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
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
    "movietweetings": "MovieTweetings",
    "ml-100k": "MovieLens 100K",
    "online-retail-ii": "Online Retail II",
    "amazon-video-games-2018": "Amazon Video Games 2018",
}
NOTES = {
    "ml-1m": "The order within a moment was that of the page shown to the user; taken at random it helps nobody.",
    "amazon-video-games": "Steps go to larger ids far more often than to smaller ones, so a part of what direction brings "
    "here may be the order in which items were numbered. Positions are not times: recent popularity means nothing.",
    "foursquare": "Places are visited again and again: what belongs together counts more than what comes next.",
    "music30": "Songs of an album follow each other, which ids reflect. Plays of a song again are not asked for.",
    "movietweetings": "Films are rated when they are new: for the weeks after the training rows, what is popular of late "
    "is far ahead of every model of users' tastes.",
    "ml-100k": "As MovieLens 1M. By global time 301 users are asked for, most in the middle of their only visit.",
    "online-retail-ii": "What an invoice holds has one moment, so that the order is that of invoices.",
    "amazon-video-games-2018": "Times are days; ties are in random order.",
}
PROTOCOLS = {"last": "last item", "time": "global time", "file": "last item, file order"}
METRIC, RECENCIES = "ndcg@10", (2.0, 8.0, 32.0)
Split = tuple[tnr.Interactions, tnr.Interactions]


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    label: str
    model: tnr.Model


LINEAR = 1e6
"""A smoothing by which log(1 + C / smoothing) is as good as C."""
MARKOV = {"window": 1, "popularity": 0.0, "head": 1, "head_share": 1.0, "head_decay": 0.5, "distance_power": 1.0}
NEXT = {"smoothing": 1.0, "head_share": 0.8, "head_decay": 0.6, "undirected": "auto", "recent_popularity": "auto"}
EVERY: dict[str, Any] = {"feedback": "unary", "num_threads": 1}
METHODS = {
    "popularity": Method("popularity", tnr.Popularity()),
    "recent-popularity": Method("recent popularity", tnr.RecentPopularity()),
    "item-id-order": Method("control: item ids alone", tnr.ItemIdOrder()),
    "ease": Method("EASE", tnr.EASE(feedback="unary")),
    "neighbor-ridge": Method(
        "NeighborRidge with recency", tnr.NeighborRidge(neighbors=100, regularization=80.0, **EVERY)
    ),
    "markov": Method("MC: the last item alone", tnr.Transitions(**MARKOV, smoothing=LINEAR, **EVERY)),
    "rules": Method("SeqRules: 20 rows, 1/d", tnr.Transitions(**{**MARKOV, "window": 20}, smoothing=LINEAR, **EVERY)),
    "transitions": Method("Transitions", tnr.Transitions(**EVERY)),
    "next": Method("TopNRank, what comes next", tnr.Transitions(**NEXT, **EVERY)),
    "next-item-ridge-alone": Method(
        "NextItemRidge, regression alone",
        tnr.NextItemRidge(transitions=0.0, undirected=0.0, recent_popularity=0.0, **EVERY),
    ),
    "next-item-ridge": Method("NextItemRidge", tnr.NextItemRidge(**EVERY)),
    "shuffled": Method("NextItemRidge, histories shuffled when asked", tnr.NextItemRidge(**EVERY)),
}
"""What TopNRank gives where rows come after the training rows has no factors in it: it is the model "next"."""


def load(name: str, *, by_file: bool = False) -> tnr.Interactions:
    """All rows of a data set, without ratings; `by_file`: rows of one moment in the order of the file."""
    folder = os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data")
    when = "position" if name == "amazon-video-games" else "timestamp"
    columns = ["user", "item", when, *(["quantity"] if name == "online-retail-ii" else [])]
    table = pq.read_table(Path(folder) / f"{FILES.get(name, name)}.parquet", columns=columns)
    if name == "online-retail-ii":
        table = table.filter(table["quantity"].to_numpy() > 0)
    if by_file:
        order = np.lexsort((np.arange(table.num_rows), table[when].to_numpy()))
        places = np.empty(table.num_rows, np.int64)
        places[order] = np.arange(table.num_rows)
        table = table.set_column(table.column_names.index(when), when, [places])
    return tnr.Interactions.from_frame(
        table.select(["user", "item", when]), user="user", item="item", timestamp=when, duplicates="last"
    )


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


def shuffled_when_asked(model: Any, train: tnr.Interactions) -> tnr.Model:
    """A model that learned from `train`, and is asked with every history in random order."""
    times, users, draws = train.timestamps, train.user_index, np.random.default_rng(0).random(len(train))
    assert times is not None
    other = times.copy()
    other[np.lexsort((draws, users))] = times[np.lexsort((times, users))]
    past = model.fit(replace(train, timestamps=other)).fitted.arrays["seen_past"]
    fitted: tnr.Model = model.fit(train)
    fitted.fitted.arrays["seen_past"] = past
    return fitted


def splits_of(name: str, protocol: str) -> tuple[tnr.Interactions, int, list[Split]]:
    """All rows, the least items of a user who is asked for, and train and test rows of each split."""
    data = load(name, by_file=protocol == "file")
    if protocol == "time":
        return data, 2, [tnr.split_time(data, test=0.2)]
    least = 5 if name == "amazon-video-games" else 2
    seeds = [0, 1, 2] if name == "ml-1m" and protocol == "last" else [0]
    return data, least, [last_items(data, seed, least) for seed in seeds]


def measure(name: str, protocol: str, methods: Sequence[str]) -> dict[str, Any]:
    """All numbers of a data set by a protocol."""
    data, least, splits = splits_of(name, protocol)
    found: dict[str, Any] = {"facts": str(tnr.order_facts(data)), "rows": repr(data), "methods": {}}
    choice: dict[str, tuple[tnr.Model, float]] = {}
    for key in methods:  # compile first
        METHODS[key].model.fit(tnr.synthetic(users=60, items=40, ratings=900, seed=0))
    for number, (train, test) in enumerate(splits):
        for key in methods:
            method = METHODS[key]
            if number == 0:
                choice[key] = seconds(lambda method=method, train=train: with_settings(method.model, train, least))
            chosen, choosing = choice[key]
            fit = shuffled_when_asked if key == "shuffled" else type(chosen).fit
            fitted, fitting = seconds(lambda fit=fit, chosen=chosen, train=train: fit(chosen, train))
            result = value(fitted, test)
            changed = {k: v for k, v in chosen.get_params().items() if v != method.model.get_params()[k]}
            one = {"ndcg": result[METRIC], "users": result.n_users, "choosing": choosing, "fitting": fitting}
            found["methods"].setdefault(key, []).append({**one, "settings": changed})
            print(name, protocol, number, key, {**one, "settings": changed}, flush=True)
    return found


def page(numbers: dict[str, Any]) -> str:
    """The page of all that was measured so far, by "data set/protocol"."""
    words = "\n".join((__doc__ or "").split("\n\n")[2:])
    lines = ["# The next item", "", *words.splitlines(), "", f"{environment()}.", ""]
    for name, title in TITLES.items():
        measured = {
            protocol: numbers[f"{name}/{protocol}"] for protocol in PROTOCOLS if f"{name}/{protocol}" in numbers
        }
        if not measured:
            continue
        first = next(iter(measured.values()))
        lines += [f"## {title}", "", f"{first['rows']}. {first['facts']}", "", NOTES[name], ""]
        for protocol, found in measured.items():
            lines += [*table(PROTOCOLS[protocol], found["methods"]), ""]
    return "\n".join(lines)


def table(title: str, methods: dict[str, Any]) -> list[str]:
    """One table."""
    lines = [f"| {title} | NDCG@10 | CPU s, settings given | CPU s of choosing | chosen (first split) |"]
    lines += ["|---|---|---|---|---|"]
    for key in [key for key in METHODS if key in methods]:
        runs = methods[key]
        ndcg = np.array([run["ndcg"] for run in runs])
        spread = f" ({ndcg.min():.4f} to {ndcg.max():.4f})" if len(runs) > 1 else ""
        given, choosing = (np.mean([run[part] for run in runs]) for part in ("fitting", "choosing"))
        settings = ", ".join(f"{k} {v}" for k, v in runs[0]["settings"].items()) or "-"
        lines.append(
            f"| {METHODS[key].label} | {ndcg.mean():.4f}{spread} | {given:.1f} | {choosing:.1f} | {settings} |"
        )
    users = runs[0]["users"]
    return [*lines, "", f"{users:,} users; the standard error of a value is about {0.27 / np.sqrt(users):.4f}."]


def main() -> None:
    """Measures, and writes the page and its numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=list(TITLES), metavar="DATA", help=", ".join(TITLES))
    parser.add_argument("--protocol", choices=list(PROTOCOLS), default="last")
    parser.add_argument("--methods", default=",".join(METHODS), help=", ".join(METHODS))
    parser.add_argument(
        "--numbers", type=Path, default=Path("order-numbers.json"), help="what was measured, kept between calls"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from the numbers measured before")
    arguments = parser.parse_args()
    numbers: dict[str, Any] = json.loads(arguments.numbers.read_text()) if arguments.numbers.exists() else {}
    methods = arguments.methods.split(",")
    if unknown := [one for one in arguments.data if one not in TITLES] + [one for one in methods if one not in METHODS]:
        parser.error(f"there is no {unknown[0]!r}; give some of {', '.join((*TITLES, *METHODS))}")
    for name in [] if arguments.page_only else arguments.data:
        found = measure(name, arguments.protocol, methods)
        known = numbers.setdefault(f"{name}/{arguments.protocol}", found)
        numbers[f"{name}/{arguments.protocol}"] = {**found, "methods": known["methods"] | found["methods"]}
        arguments.numbers.write_text(json.dumps(numbers, indent=1) + "\n")
    PAGE.write_text(page(numbers), encoding="utf-8")


if __name__ == "__main__":
    main()
