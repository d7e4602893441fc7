"""The data and splits of benchmarks/order.py."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import topnrank as tnr

FILES = {"amazon-video-games": "amazon-video-games-2014-sasrec", "retail-rocket": "retail-rocket-sslrec"}
TITLES = {
    "ml-1m": "MovieLens 1M",
    "amazon-video-games": "Amazon Video Games 2014",
    "movietweetings": "MovieTweetings",
    "foursquare": "Foursquare",
    "music30": "30Music",
    "online-retail-ii": "Online Retail II",
    "retail-rocket": "RetailRocket",
    "ml-100k": "MovieLens 100K",
}
NOTES = {
    "ml-1m": "The order within a moment was that of the page shown to the user; in file order that is an artefact, taken at "
    "random it helps nobody. Published, in file order and by protocols nearly the same: SeqRules .1505, PCTM .1815, SASRec "
    "with softmax .1821 to .1858, HSTU .1880; a plain SASRec of ours with ties at random .1706 (prototype, GPU).",
    "amazon-video-games": "Steps go to larger ids far more often than to smaller ones, so a part of what direction brings "
    "here may be the order in which items were numbered. Positions are not times: recent popularity means nothing, and "
    "there is no global time. LRURec's protocol: users with three items or more, trained on all but their last two items, "
    "the last of the last 50 before it asked for; published there: SASRec .0583, LRURec .0620, PCTM by the formula .0665. A "
    "plain SASRec of ours by our protocol: .0661 (prototype, GPU).",
    "movietweetings": "Films are rated when they are new: for the weeks after the training rows, what is popular of late "
    "is most of what can be known.",
    "foursquare": "Places are visited again and again: what belongs together counts more than what comes next, and own "
    "places, by how often and how lately, more than both.",
    "music30": "Songs of an album follow each other, which ids reflect. Played again is what was played before it, not what "
    "was played most: the weight of repetition that is chosen is near 0.",
    "online-retail-ii": "Invoices of a shop, in minutes: all items of an invoice are of one moment, so that which of them "
    "is the last is drawn.",
    "retail-rocket": "Views, carts and purchases of the buyers of a shop, as one kind of row. Items were numbered as they "
    "came, user by user: ids alone, which say nothing of taste, are ahead of most models, so that nothing can be claimed "
    "about order here.",
    "ml-100k": "As MovieLens 1M. By global time 301 users are asked for, most in the middle of their only visit.",
}
PROTOCOLS = {
    "last": "last item",
    "file": "last item, file order",
    "lrurec": "LRURec's protocol",
    "time": "global time",
    "again": "last event, items again",
}
"""What is asked for, by name, and the titles of the tables."""
TIMELESS = ("amazon-video-games",)
AGAIN = ("music30", "foursquare", "online-retail-ii")
"""Logs in which items come again."""
LENGTH = 50
"""LRURec sees so many rows of a history."""


class Split(NamedTuple):
    """Training and test rows, and by which rows of the training settings are chosen that no model chooses by itself."""

    train: tnr.Interactions
    test: tnr.Interactions
    inner: tuple[tnr.Interactions, tnr.Interactions]
    """(the rest, what is asked for)"""
    past: tnr.Interactions | None = None
    """The users' histories when asked, where these are not the training rows"""


def protocols_of(name: str) -> list[str]:
    """What is measured of a data set."""
    chosen = ["last", *(["file"] if name == "ml-1m" else []), *(["lrurec"] if name in TIMELESS else ["time"])]
    return [*chosen, *(["again"] if name in AGAIN else [])]


def rows(name: str) -> pa.Table:
    """Columns user, item and timestamp of all rows, in the order of the file."""
    folder = os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data")
    when = "position" if name == "amazon-video-games" else "timestamp"
    extra = {"online-retail-ii": ["quantity"], "retail-rocket": ["type"]}.get(name, [])
    table = pq.read_table(Path(folder) / f"{FILES.get(name, name)}.parquet", columns=["user", "item", when, *extra])
    if name == "online-retail-ii":
        table = table.filter(pc.greater(table["quantity"], 0))
    if name == "retail-rocket":
        table = table.filter(pc.not_equal(table["type"], "buy-test"))
    return table.select(["user", "item", when]).rename_columns(["user", "item", "timestamp"])


def whole(name: str, *, keep_order: bool = False) -> tnr.Interactions:
    """All rows, without ratings; of a user and item the latest."""
    return tnr.Interactions.from_frame(rows(name), duplicates="last", keep_order=keep_order)


def splits_of(name: str, protocol: str) -> tuple[tnr.Interactions, list[Split]]:
    """All rows of a data set, and the splits of a protocol."""
    if protocol == "again":
        rest, train, test = last_events(rows(name))
        return train, [Split(train, test, last_events(rest)[1:])]
    data = whole(name, keep_order=protocol == "file")
    if protocol == "time":
        train, test = tnr.split_time(data, test=0.2)
        return data, [Split(train, test, tnr.split_time(train, test=0.2))]
    if protocol == "lrurec":
        past, test = last_items(data, "random", 0, 3)
        train = last_items(past, "random", 0, 2)[0]
        return data, [Split(train, test, last_items(train, "random", 0, 2), latest(past, LENGTH))]
    ties, least = ("file" if protocol == "file" else "random"), (5 if name == "amazon-video-games" else 2)
    seeds = [0, 1, 2] if name.startswith("ml-") and protocol == "last" else [0]
    parts = [last_items(data, ties, seed, least) for seed in seeds]
    return data, [Split(train, test, last_items(train, ties, 0, least)) for train, test in parts]


def last_items(data: tnr.Interactions, ties: str, seed: int, least: int) -> tuple[tnr.Interactions, tnr.Interactions]:
    """(the rest, the last item of each user with at least `least` items)."""
    train, test = tnr.split_last(data, ties=ties, seed=seed)
    many = np.diff(data.indptr) >= least
    short = test.take(~many[test.user_index])
    kept = np.isin(_pairs(data), _pairs(train)) | np.isin(_pairs(data), _pairs(short))
    return replace(data.take(kept), split=train.split, ties=train.ties), test.take(many[test.user_index])


def latest(data: tnr.Interactions, n: int) -> tnr.Interactions:
    """The latest n rows of each user."""
    assert data.timestamps is not None
    order = np.lexsort((data.timestamps, data.user_index))
    age = data.indptr[1:][data.user_index[order]] - 1 - np.arange(len(data))
    return data.take(np.sort(order[age < n]))


def last_events(table: pa.Table) -> tuple[pa.Table, tnr.Interactions, tnr.Interactions]:
    """(the rest, the same as rows, the last event of each user with two or more); rows weigh as many as their events."""
    users, times = table["user"].to_numpy(), table["timestamp"].to_numpy()
    draws = np.random.default_rng(0).random(len(users))
    order = np.lexsort((draws, times, users))
    first, last = (np.append(True, np.diff(users[order]) != 0), np.append(np.diff(users[order]) != 0, True))
    chosen = np.zeros(len(users), np.bool_)
    chosen[order[last & ~first]] = True
    rest, asked = table.filter(pa.array(~chosen)), table.filter(pa.array(chosen))
    train = tnr.Interactions.from_frame(rest, duplicates="count")
    return rest, replace(train, split="last"), tnr.Interactions.from_frame(asked)


def _pairs(data: tnr.Interactions) -> np.ndarray[Any, Any]:
    return data.user_index.astype(np.int64) * data.n_items + data.indices
