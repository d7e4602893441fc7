"""Time to a quality level: CPU seconds of `fit` until NDCG@10 on the test rows of MovieLens 1M is there, both protocols."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from catalog_data import load
from catalog_methods import methods
from catalog_peers import Peer
from suite_data import Bench, LeftOut
from suite_measure import Measure, Stopwatch, in_turn, timed
from suite_training import cornac_rows, lenskit_rows

PART = "quality"
METRIC = "ndcg@10"
ABOVE_MEAN = 0.025
"""The level of protocol rated: so much above ItemMean."""
ALS = {"alpha": 7.0, "regularization": 80.0}
"""Settings of implicit's ALS that were tuned on validation rows of the catalog study."""
ROUNDS = 2
DOUBLING = (1, 2, 4, 8, 15, 32)
"""Passes that are tried; 15 iterations are what the level of the catalog was made with. Peers that are far from the level
after few passes begin later, to save time: with the last number of passes that is known not to be enough."""
COUNTED = (
    "CPU seconds of the whole `fit` on one thread, with the first of 1, 2, 4, 8, 15 or 32 passes whose model is at the "
    "level on the test rows (ALS and LensKit from 8 on, our BiasedMF from 15 on, BPR and Cornac 32 only); fits with fewer "
    "passes are not counted. One split, one seed."
)
Make = Callable[[int], Any]
"""An object with `fit(train)` that returns a ranker, from the number of passes"""
Methods = dict[str, tuple[Make, tuple[int, ...]]]
"""How to make each method, and the passes to try"""
Split = tuple[tnr.Interactions, tnr.Interactions]


@dataclass(frozen=True)
class Climb:
    """How far one method came."""

    passes: int
    value: float
    reached: bool
    seconds: float

    def words(self) -> str:
        """For the report."""
        found = f"{self.value:.4f} after {self.passes} passes"
        return found if self.reached else f"{found} and {self.seconds:.1f} CPU s, level not reached"


def run(bench: Bench) -> Iterator[Measure]:
    """Both protocols, on real data, since synthetic ratings say nothing about quality; a quick run sees that it runs."""
    folder = os.environ.get("TOPNRANK_DATA")
    if not bench.quick and not (folder and (Path(folder) / "ml-1m.parquet").exists()):
        raise LeftOut("set TOPNRANK_DATA to a folder with ml-1m.parquet to measure time to a quality level")
    bench.tell("time to a quality level, rated")
    yield from rated(bench)
    if not bench.quick:
        bench.tell("time to a quality level, catalog")
        yield from catalog(bench)


def rated(bench: Bench) -> Iterator[Measure]:
    """The default model against models of ratings."""
    split = bench.medium.train, bench.medium.test
    level = _value(tnr.ItemMean().fit(split[0]), split[1], "rated") + ABOVE_MEAN
    entered: Methods = {
        "ours": (lambda passes: tnr.TopNRank(task="rated", epochs=passes, num_threads=1), DOUBLING),
        "our BiasedMF": (lambda passes: tnr.BiasedMF(epochs=passes, num_threads=1), DOUBLING[-2:]),
    }
    if bench.peers.use("cornac", "cornac.models") is not None:
        entered["Cornac MF"] = (lambda passes: Peer(CornacMF(passes))), DOUBLING[-1:]
    if bench.peers.use("lenskit", "lenskit.als") is not None:
        entered["LensKit BiasedMF"] = (lambda passes: Peer(LensKitMF(passes))), DOUBLING[-3:]
    name = f"default TopNRank() to NDCG@10 {level:.4f}, rated (ItemMean + {ABOVE_MEAN})"
    yield from raced(bench, (name, bench.medium.name, "rated"), entered, split, level)


def catalog(bench: Bench) -> Iterator[Measure]:
    """The catalog's model against implicit, on the split of the catalog study."""
    task = load("ml-1m")
    split, table = task.tests[0], methods(task.name, task.kind)
    if bench.peers.use("implicit", "implicit.als") is None:
        return
    level = _value(table["als"].make(dict(ALS), 0).fit(split[0]), split[1], "catalog")
    known = table["bpr"].search.start
    entered: Methods = {
        "ours": (lambda passes: table["topnrank"].make({"epochs": passes}, 0), DOUBLING),
        "implicit ALS": (lambda passes: table["als"].make(ALS | {"iterations": passes}, 0), DOUBLING[-3:]),
        "implicit BPR": (lambda passes: table["bpr"].make(known | {"iterations": passes}, 0), DOUBLING[-1:]),
    }
    name = f"TopNRank(task='catalog') to NDCG@10 {level:.4f} (implicit ALS, 15 iterations)"
    yield from raced(bench, (name, "ML-1M, 80 %", "catalog"), entered, split, level)


def raced(bench: Bench, words: tuple[str, str, str], entered: Methods, split: Split, level: float) -> Iterator[Measure]:
    """Finds each method's passes, then times them in turn; those that do not get there are facts beside the row."""
    name, data, protocol = words
    climbs = {method: climb(*how, (split, level, protocol)) for method, how in entered.items()}
    bench.tell(", ".join(f"{method} {one.value:.4f} after {one.passes}" for method, one in climbs.items()))
    if not climbs["ours"].reached:
        raise RuntimeError(f"ours did not reach NDCG@10 {level:.4f}, {protocol}: {climbs['ours'].value:.4f}")
    fits = {
        method: timed(lambda make=entered[method][0], one=one: make(one.passes).fit(split[0]))
        for method, one in climbs.items()
        if one.reached
    }
    taken = in_turn(fits, 1 if bench.quick else ROUNDS, warm_up=0)
    ours = [one.cpu for one in taken.pop("ours")]
    facts = {method: one.words() for method, one in climbs.items()}
    for peer, others in taken.items():
        row = {peer: facts.pop(peer), **({"ours": facts.pop("ours")} if "ours" in facts else {})}
        yield Measure(PART, name, data, "s", ours, peer, [one.cpu for one in others], counted=COUNTED, facts=row)
    if facts:
        yield Measure(PART, name, data, "s", ours, counted=COUNTED, facts=facts)


def climb(make: Make, tried: tuple[int, ...], aim: tuple[Split, float, str]) -> Climb:
    """More and more passes until the level is there."""
    split, level, protocol = aim
    best = Climb(0, 0.0, False, 0.0)
    for passes in tried:
        watch = Stopwatch()
        model = make(passes).fit(split[0])
        seconds = watch.taken().cpu
        value = _value(model, split[1], protocol)
        best = Climb(passes, value, value >= level, seconds)
        if best.reached:
            break
    return best


def _value(model: Any, test: tnr.Interactions, protocol: str) -> float:
    return float(tnr.evaluate(model, test, protocol=protocol, metrics=METRIC, num_threads=1)[METRIC])


# -- models of ratings in other libraries --------------------------------------------------------------------------------


class CornacMF:
    """Cornac's MF, 50 factors, as a competitor; its data set has our numbers as ids."""

    name = "Cornac MF"

    def __init__(self, passes: int) -> None:
        self.passes = passes

    def fit(self, train: tnr.Interactions) -> None:
        """Trains by stochastic gradient descent."""
        from cornac.models import MF

        self._maps = train.users, train.items
        self._model = MF(k=50, max_iter=self.passes, num_threads=1, seed=0, verbose=False).fit(cornac_rows(train))

    def score(self, users: Any, items: Any) -> Any:
        """Products and item biases; a user's bias changes no order."""
        rows, columns = (known.index(ids) for known, ids in zip(self._maps, (users, items), strict=True))
        products = np.einsum("nk,nk->n", self._model.u_factors[rows], self._model.i_factors[columns])
        return products + self._model.i_biases[columns]


class LensKitMF:
    """LensKit's biased matrix factorization by ALS, 50 factors, as a competitor."""

    name = "LensKit BiasedMF"

    def __init__(self, passes: int) -> None:
        self.passes = passes

    def fit(self, train: tnr.Interactions) -> None:
        """Trains by alternating least squares."""
        from lenskit.als import BiasedMFScorer

        self._model = BiasedMFScorer(embedding_size=50, epochs=self.passes)
        self._model.train(lenskit_rows(train))

    def score(self, users: Any, items: Any) -> Any:
        """User by user, as LensKit scores."""
        from lenskit.data import ItemList

        scores, order = np.empty(len(users)), np.argsort(users, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(users[order])) + 1):
            scores[rows] = self._model(int(users[rows[0]]), ItemList(item_ids=items[rows])).scores()
        return np.nan_to_num(scores, nan=float(np.finfo(np.float32).min))
