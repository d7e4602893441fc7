"""Data sets, splits and methods of the out-of-the-box study, and the units it is measured in."""

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import topnrank as tnr
from catalog_peers import Peer
from topnrank.data.frames import Columns
from topnrank.evaluation.splits import Split
from topnrank.experiments.report.formatting import format_value

FOLDER = Path(__file__).parent / "report" / "out_of_the_box"
FACTORS = (0.2, 1.0, 2.0, 20.0)
"""What ratings are multiplied by."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

# -- data ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """What is used of a file: users and items, and maybe ratings and times in seconds."""

    words: str
    """What a row is"""
    rated: bool = False
    timed: bool = True
    halved: bool = False
    """Whether half of the rows is held out, too"""
    rows: pc.Expression | None = None
    """Which rows are used"""


_STARS = {"rated": True, "halved": True}
_REVIEWS = "Reviews without stars"
SOURCES = {
    "ml-100k": Source("Ratings, 1 to 5", **_STARS),
    "ml-1m": Source("Ratings, 1 to 5", **_STARS),
    "movietweetings": Source("Ratings, 0 to 10", rated=True),
    "amazon-beauty-2014": Source(f"{_REVIEWS}; their order is not used", timed=False),
    "amazon-video-games-2014-sasrec": Source(f"{_REVIEWS}; their order is not used", timed=False),
    "amazon-video-games-2018": Source(f"{_REVIEWS}; times are days"),
    "citeulike-a": Source("Papers in libraries", timed=False),
    "foursquare": Source("Check-ins"),
    "music30": Source("Plays"),
    "online-retail-ii": Source("Lines of invoices, without cancelled ones", rows=pc.field("quantity") > 0),
    "retail-rocket-sslrec": Source(
        "Views, carts and purchases alike, without the file's test purchases, which have no time",
        rows=pc.field("timestamp") > 0,
    ),
}


@lru_cache(maxsize=2)
def load(name: str) -> tnr.Interactions:
    """A set of the folder TOPNRANK_DATA: a row for each user and item, the latest where there are times."""
    source = SOURCES[name]
    columns = Columns("user", "item", "rating" if source.rated else None)
    columns = replace(columns, timestamp="timestamp" if source.timed else None)
    path = Path(os.environ["TOPNRANK_DATA"], f"{name}.parquet")
    table = pq.read_table(path, columns=columns.names(), filters=source.rows)
    return tnr.Interactions.from_table(table, columns, source=name, duplicates="last")


def protocols(name: str) -> list[str]:
    """Of a set: a fifth or half of each user's rows held out, the latest fifth of all, rated items by factor."""
    source = SOURCES[name]
    catalog = ["fifth", *["half"] * source.halved, *["time"] * source.timed]
    return catalog + [f"rated x {factor:g}" for factor in FACTORS if source.rated]


def of_rated(protocol: str) -> bool:
    """Whether a protocol ranks rated items."""
    return protocol.startswith("rated")


@lru_cache(maxsize=2)
def split(name: str, protocol: str, part: str) -> Split:
    """(train, held out); of the part "validation" both come from the training rows, a fifth of which is held out."""
    data = load(name)
    if of_rated(protocol):
        assert data.ratings is not None
        factor = np.float32(protocol.rpartition(" ")[2])
        data = replace(data, ratings=data.ratings * factor).filter(min_user_items=10)
    if protocol == "time":
        parts = tnr.split_time(data, test=0.2)
        return parts if part == "test" else tnr.split_time(parts[0], test=0.2)
    parts = tnr.split_per_user(data, test=0.2 if protocol == "fifth" else 0.5, seed=0)
    return parts if part == "test" else tnr.split_per_user(parts[0], test=0.2, seed=0)


# -- methods -------------------------------------------------------------------------------------------------------------

Settings = dict[str, Any]
LIBRARIES = {"ALS": "implicit", "BPR": "implicit", "WARP": "lightfm"}
"""Modules of methods of other libraries."""
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "EASE": {"regularization": (20, 50, 100, 200, 500, 1000)},
    "ALS": {"factors": (64, 128), "alpha": (1, 7, 40), "regularization": (1, 10, 50, 100)},
    "BPR": {"factors": (64, 128), "learning_rate": (0.01, 0.05), "regularization": (0.003, 0.03)},
    "WARP": {"factors": (64,), "learning_rate": (0.02, 0.05), "item_alpha": (0.0, 1e-5), "epochs": (10, 30)},
}
"""What is tried where peers are tuned."""


def als(settings: Settings, threads: int) -> Peer:
    """Alternating least squares of implicit."""
    from implicit.als import AlternatingLeastSquares

    return Peer(tnr.ImplicitModel(AlternatingLeastSquares(**settings, random_state=0, num_threads=threads)))


def bpr(settings: Settings, threads: int) -> Peer:
    """BPR of implicit."""
    from implicit.bpr import BayesianPersonalizedRanking

    return Peer(tnr.ImplicitModel(BayesianPersonalizedRanking(**settings, random_state=0, num_threads=threads)))


def warp(settings: Settings, threads: int) -> Peer:
    """WARP of LightFM, in the epochs of this library's adapter: LightFM's own default is one."""
    from lightfm import LightFM

    names = {"factors": "no_components"}
    epochs = {"epochs": settings["epochs"]} if "epochs" in settings else {}
    rest = {names.get(name, name): value for name, value in settings.items() if name not in epochs}
    return Peer(tnr.LightFMModel(LightFM(loss="warp", random_state=0, **rest), num_threads=threads, **epochs))


PEERS: dict[str, Callable[[Settings, int], Peer]] = {"ALS": als, "BPR": bpr, "WARP": warp}


def make(kind: str, settings: Settings) -> Any:
    """A model that is not fitted yet."""
    return PEERS[kind](settings, int(os.environ[THREADS[0]])) if kind in PEERS else getattr(tnr, kind)(**settings)


def methods(name: str, protocol: str) -> list[tuple[str, Settings]]:
    """(kind, settings) of what is measured without tuning, in the order of the tables."""
    if of_rated(protocol):
        return [("TopNRank", {"task": "rated"}), ("BiasedMF", {}), ("ItemMean", {})]
    four: list[Settings] = [{"factors": 64}, {"factors": 128}]
    four += [{"factors": 64, "alpha": 7, "regularization": 50}, {"factors": 128, "alpha": 40, "regularization": 100}]
    found: list[tuple[str, Settings]] = [("TopNRank", {}), *(("NeighborRidge", one) for one in _neighbor_ridges())]
    found += [("EASE", {"regularization": penalty}) for penalty in (50, 200, 1000)]
    found += [*(("ALS", one) for one in four), ("BPR", {}), ("WARP", {}), ("Popularity", {})]
    found += [("RecentPopularity", {})] * SOURCES[name].timed + [("ItemMean", {})] * SOURCES[name].rated
    return [*found, ("Random", {})]


def _neighbor_ridges() -> list[Settings]:
    """The default, fixed numbers, and numbers from the data where the model knows how and that is not the default."""
    auto, fixed = ({"neighbors": value, "regularization": value} for value in ("auto", 100))
    try:
        tnr.NeighborRidge(**auto).check()
    except tnr.ParameterError:
        return [{}, fixed]
    return [{}, fixed] if tnr.NeighborRidge().regularization == "auto" else [{}, fixed, auto]


# -- units ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """What is measured in one go and kept in one file."""

    data: str
    protocol: str
    part: str
    """"test" or "validation" """
    kind: str
    settings: Settings

    @property
    def label(self) -> str:
        """The method in words."""
        kind = f"{LIBRARIES[self.kind]} {self.kind}" if self.kind in LIBRARIES else self.kind
        return f"{kind}, {format_value(self.settings)}" if self.settings else kind

    @property
    def path(self) -> Path:
        """The file."""
        folder = f"{self.protocol} {self.part}".replace(" ", "-")
        return FOLDER / self.data / folder / f"{self.label.replace(', ', '_').replace(' ', '-')}.json"

    def read(self) -> dict[str, Any] | None:
        """The result; None if there is none yet."""
        return json.loads(self.path.read_text()) if self.path.exists() else None


def each_protocol(sets: Sequence[str]) -> list[tuple[str, str]]:
    """(set, protocol) of the sets."""
    return [(name, protocol) for name in sets for protocol in protocols(name)]


def default_units(name: str, protocol: str) -> list[Unit]:
    """All methods without tuning."""
    return [Unit(name, protocol, "test", *method) for method in methods(name, protocol)]


def trials(name: str, protocol: str, kind: str) -> list[Unit]:
    """The grid of a method, on validation rows; none where rated items are ranked."""
    choices = itertools.product(*([] if of_rated(protocol) else GRIDS[kind].values()))
    grid = (dict(zip(GRIDS[kind], one, strict=True)) for one in choices if one)
    return [Unit(name, protocol, "validation", kind, settings) for settings in grid]


def tuned_units(name: str, protocol: str) -> Iterator[Unit]:
    """For each grid that was searched whole the setting with the best mean over users with training rows."""
    for kind in GRIDS:
        tried = [(unit, unit.read()) for unit in trials(name, protocol, kind)]
        found = [(record.get("known", 0.0), unit) for unit, record in tried if record is not None]
        if found and len(found) == len(tried):
            yield replace(max(found, key=lambda pair: pair[0])[1], part="test")
