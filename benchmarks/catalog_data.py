"""The data sets of the catalog study: which rows are learned from, which are held out, and in what words to say it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import topnrank as tnr
from topnrank.rng import stream

DATA = ("ml-1m", "ml-100k", "amazon-video-games", "retail-rocket")
LIKED = 4.0
"""The lowest rating of a like."""
SPLITS = 3
"""Splits of rated data; seeds where there is one split."""
_FILES = {"amazon-video-games": "amazon-video-games-2014-sasrec", "retail-rocket": "retail-rocket-sslrec"}
Split = tuple[tnr.Interactions, tnr.Interactions]
"""(train, held out)"""
_Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Task:
    """A data set with its held-out rows."""

    name: str
    kind: str
    """"ratings", "unary" or "events" """
    data: tnr.Interactions
    validation: Split
    """For choosing settings; no test row is in either part"""
    tests: tuple[Split, ...]
    words: str
    """The protocol"""

    def repeats(self, *, random: bool) -> list[tuple[int, int]]:
        """(split, seed) of each test fit; where there is one split, models that draw random numbers get several seeds."""
        if len(self.tests) > 1:
            return [(split, split) for split in range(len(self.tests))]
        return [(0, seed) for seed in range(SPLITS if random else 1)]


def load(name: str) -> Task:
    """The task of one data set, from the folder that TOPNRANK_DATA names."""
    folder = os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data")
    path = Path(folder) / f"{_FILES.get(name, name)}.parquet"
    if name == "amazon-video-games":
        return _last_items(name, tnr.read(path, user="user", item="item", timestamp="position"))
    if name == "retail-rocket":
        return _purchases(name, tnr.read(path))
    return _rated(name, tnr.read(path))


# -- ratings: a random share of each user's likes and dislikes -----------------------------------------------------------


def _rated(name: str, data: tnr.Interactions) -> Task:
    tests = tuple(_hold_out(data, 0.2, seed) for seed in range(SPLITS))
    words = (
        "Relevant: rating of at least 4. Of each user's likes 20 % are held out at random, and of the dislikes 20 %, "
        "each to the nearest whole number (splits 0, 1, 2); candidates are all items but the user's training rows, likes "
        "and dislikes. Settings were chosen on a further 10 % of each user's training likes and dislikes of split 0, "
        "then fixed; test fits use all training rows of their split. Users without a held-out like are left out."
    )
    return Task(name, "ratings", data, _hold_out(tests[0][0], 0.1, 0), tests, words)


def _hold_out(data: tnr.Interactions, share: float, seed: int) -> Split:
    """Takes the share, to the nearest whole number, from the likes and from the dislikes of each user."""
    assert data.ratings is not None
    group = 2 * data.user_index.astype(np.int64) + (data.ratings >= LIKED)
    counts = np.bincount(group, minlength=2 * data.n_users)
    order = np.lexsort((stream(seed, "catalog study").random(len(data)), group))
    place = np.arange(len(data)) - (np.cumsum(counts) - counts)[group[order]]
    chosen = np.zeros(len(data), dtype=np.bool_)
    chosen[order] = place < np.round(share * counts)[group[order]]
    return data.take(~chosen), data.take(chosen)


def _pairs(data: tnr.Interactions) -> NDArray[np.int64]:
    """One number for each (user, item) pair."""
    return data.user_index.astype(np.int64) * data.n_items + data.indices


# -- unary: the last item ------------------------------------------------------------------------------------------------


def _last_items(name: str, data: tnr.Interactions) -> Task:
    """No pair occurs twice in the file (`read` would refuse it), so a row is an item."""
    many = np.diff(data.indptr)[data.user_index] >= 5
    last, last_but_one = (many & (_from_end(data) == place) for place in (0, 1))
    validation = data.take(~(last | last_but_one)), data.take(last_but_one)
    words = (
        f"Every row is relevant. Of each user with at least 5 rows ({int(last.sum()):,} users) the last item by time is "
        "held out; the others' rows stay in training. Candidates are all items but the user's training items. Settings "
        "were chosen on the last item but one, with the last held out as well. One split by nature: models that draw "
        "random numbers were trained with seeds 0, 1, 2 and their values averaged for each user."
    )
    return Task(name, "unary", data, validation, ((data.take(~last), data.take(last)),), words)


def _from_end(data: tnr.Interactions) -> NDArray[np.int64]:
    """(n_rows,) how many rows of the user are later; rows of the same moment, such as a basket, in random order."""
    assert data.timestamps is not None
    order = np.lexsort((stream(0, "rows of one moment").random(len(data)), data.timestamps, data.user_index))
    place = np.empty(len(data), dtype=np.int64)
    place[order] = data.indptr[1:][data.user_index[order]] - 1 - np.arange(len(data))
    return place


# -- events: a purchase --------------------------------------------------------------------------------------------------


def _purchases(name: str, data: tnr.Interactions) -> Task:
    """The file marks the held-out purchases, "buy-test", and has no other event of such a pair."""
    assert data.types is not None
    is_test = data.types == data.type_names.index("buy-test")
    train, test = data.take(~is_test), data.take(is_test)
    seen = int(np.isin(_pairs(test), _pairs(train)).sum())
    held_out = _last_purchase(train)
    rows = np.isin(_pairs(train), _pairs(train.take(held_out)))
    words = (
        f"Relevant: the one purchase of each of {test.n_users:,} buyers that the file holds out. It has no other event of "
        f"these pairs: {seen} of the {len(test):,} held-out purchases were viewed or put in a cart in training. So "
        "candidates are all items that the user has no training event with, of whatever type; items already viewed could "
        "only be wrong. Settings were chosen on the last purchase in training of each user with another one "
        f"({int(held_out.sum()):,} users: whoever is tested has a purchase in training, too), with all events of that user "
        "and item held out as in the test. One split by nature: models that draw random numbers were trained with seeds 0, "
        "1, 2 and their values averaged for each user."
    )
    return Task(name, "events", data, (train.take(~rows), train.take(held_out)), ((train, test),), words)


def _last_purchase(train: tnr.Interactions) -> _Mask:
    """Marks the row of each user's latest purchase, unless it is the only one."""
    assert train.types is not None
    bought = np.flatnonzero(train.types == train.type_names.index("buy"))
    part = train.take(bought)
    chosen = np.zeros(len(train), dtype=np.bool_)
    chosen[bought[(_from_end(part) == 0) & (np.diff(part.indptr)[part.user_index] >= 2)]] = True
    return chosen
