"""Training: CPU time per rating visit against the peers' time per sample or rating, and two threads against one."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import topnrank as tnr
from suite_data import Bench, Named
from suite_measure import Bar, Measure, Passes, Side, Stopwatch, Taken, differenced, in_turn, per, timed

PART, THREADS = "training", "threads"
BARS = {10: Bar(0.35, 0.15), 64: Bar(0.5, 0.25)}
DEFAULT_BAR, SIGMOID_BAR, THREADS_BAR = Bar(0.8, 0.4), Bar(3.0, 2.0), Bar(1.8, 1.95, at_least=True)
PASSES, VISITS = 4, 12_000_000
"""Passes of each fit that measures threads, at the least, and rating visits; the first pass does not count."""
MORE_ROUNDS = 3
"""Times as many rounds for threads where passes are short: on a machine with other guests their ratios scatter."""
COUNTED = (
    "CPU nanoseconds on one thread. Ours: per rating visit, all lists of at least two ratings visited once a pass (user and "
    "item phase together, with the objective and the history that `fit` keeps). BPR: per sample drawn, as many as ratings "
    "in a pass, those included that the peer throws away after it has looked them up. ALS, WARP, MF: per rating and "
    "iteration, positive, or rating. All get the same rows and number of factors"
)
INSIDE = f"{COUNTED}. Passes are timed inside one running fit of each, so that nobody's preparation counts."
MIXED = (
    f"{COUNTED}. Ours and implicit are timed inside one running fit, LightFM by `fit_partial` of one epoch; Cornac and "
    "LensKit by the difference of two fits with one and three passes."
)


class Tick:
    """A callback that says when a pass is over."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick

    def after_round(self, engine: object, round_: object) -> bool:
        """Called by the training loop."""
        self._tick()
        return False


def paper(data: Named, passes: int, **changes: Any) -> tnr.TopNRank:
    """The paper's model with epochs as passes; the rate shrinks with the number of users, whose gradients are summed."""
    rate = 1e-3 * min(1.0, 6000 / data.train.n_users)
    settings = {"epochs": passes, "iterations": None, "tolerance": 0.0, "num_threads": 1, "learning_rate": rate}
    return tnr.TopNRank.paper(**settings | changes)


def running(model: tnr.TopNRank, data: Named) -> Passes:
    """Our fit, pass by pass."""
    return Passes(lambda tick: model.fit(data.train, callbacks=[Tick(tick)]))


def implicit_fit(model: Any, matrix: Any) -> Passes:
    """A fit of implicit, iteration by iteration."""
    return Passes(lambda tick: model.fit(matrix, show_progress=False, callback=lambda *_: tick()))


def run(bench: Bench) -> Iterator[Measure]:
    """All of training on one thread."""
    bpr = bench.peers.use("implicit", "implicit.bpr")
    for data in (bench.whole, bench.large):
        bench.tell(f"training on {data.name}")
        yield from against_bpr(bench, data, bpr, 10)
        yield from against_bpr(bench, data, bpr, 64)
        yield from default_against_bpr(bench, data, bpr)
    bench.tell("training, other peers")
    yield from against_others(bench, bench.whole)


def make_bpr(bpr: Any, factors: int, passes: int) -> Any:
    """implicit's BPR on one thread, its other settings as they come."""
    return bpr.BayesianPersonalizedRanking(factors=factors, iterations=passes, num_threads=1, random_state=0)


def against_bpr(bench: Bench, data: Named, bpr: Any, factors: int) -> Iterator[Measure]:
    """Top-N-Rank.ReLU against implicit's BPR; with 10 factors, on the smaller data, the sigmoid as well."""
    passes = bench.rounds + 1
    sides: dict[str, Side] = {"relu": running(paper(data, passes, factors=factors), data)}
    if bpr is not None:
        sides["bpr"] = implicit_fit(make_bpr(bpr, factors, passes), data.matrix())
    if factors == 10 and data is bench.whole:
        sides["sigmoid"] = running(paper(data, passes, factors=factors, smoothing="sigmoid"), data)
    taken = in_turn(sides, bench.rounds)
    ours = per(taken["relu"], data.visits)
    if "bpr" in taken:
        others = per(taken["bpr"], len(data.train))
        name = f"Top-N-Rank.ReLU, k={factors}"
        facts = pass_facts(data, ours, others)
        yield Measure(
            PART, name, data.name, "ns", ours, "implicit BPR", others, BARS[factors], counted=INSIDE, facts=facts
        )
    if "sigmoid" in taken:
        slow, name = per(taken["sigmoid"], data.visits), "Top-N-Rank.sigmoid, k=10"
        yield Measure(PART, name, data.name, "ns", slow, "ours, ReLU", ours, SIGMOID_BAR, counted=INSIDE)


def default_against_bpr(bench: Bench, data: Named, bpr: Any) -> Iterator[Measure]:
    """The library's default model against BPR of as many factors."""
    if bpr is None:
        return
    passes = bench.rounds + 1
    model = tnr.TopNRank(task="rated", epochs=passes, num_threads=1)
    sides = {
        "ours": running(model, data),
        "bpr": implicit_fit(make_bpr(bpr, model.factors, passes), data.matrix()),
    }
    taken = in_turn(sides, bench.rounds)
    ours, others = per(taken["ours"], data.visits), per(taken["bpr"], len(data.train))
    name = f"default TopNRank(), history, k={model.factors}"
    facts = pass_facts(data, ours, others)
    yield Measure(PART, name, data.name, "ns", ours, "implicit BPR", others, DEFAULT_BAR, counted=INSIDE, facts=facts)


def pass_facts(data: Named, ours: list[float], others: list[float]) -> dict[str, float]:
    """CPU seconds of a whole pass."""
    pairs = {"ours": (ours, data.visits), "implicit": (others, len(data.train))}
    return {f"CPU s per pass, {side}": 1e-9 * float(np.median(cost)) * rows for side, (cost, rows) in pairs.items()}


# -- other peers ---------------------------------------------------------------------------------------------------------


def against_others(bench: Bench, data: Named) -> Iterator[Measure]:
    """Top-N-Rank.ReLU with 10 factors against ALS, WARP and what Cornac and LensKit have."""
    sides: dict[str, Side] = {"ours": running(paper(data, bench.rounds + 1), data)}
    sides |= _als(bench, data)
    for peer, make in (("lightfm", _warp), ("cornac", _cornac), ("lenskit", _lenskit)):
        sides |= bench.working(peer, lambda make=make: make(bench, data))
    taken = in_turn(sides, bench.rounds)
    ours = per(taken.pop("ours"), data.visits)
    for peer, seconds in taken.items():
        others = per(seconds, len(data.train))
        yield Measure(PART, "Top-N-Rank.ReLU, k=10", data.name, "ns", ours, peer, others, counted=MIXED)


def _als(bench: Bench, data: Named) -> dict[str, Side]:
    als = bench.peers.use("implicit", "implicit.als")
    if als is None:
        return {}
    options = {"iterations": bench.rounds + 1, "num_threads": 1, "random_state": 0}
    models = {k: als.AlternatingLeastSquares(factors=k, **options) for k in (10, 64)}
    return {f"implicit ALS, k={k}": implicit_fit(model, data.matrix()) for k, model in models.items()}


def _warp(bench: Bench, data: Named) -> dict[str, Side]:
    lightfm = bench.peers.use("lightfm", "lightfm")
    if lightfm is None:
        return {}
    model, matrix = lightfm.LightFM(no_components=10, loss="warp", random_state=0), data.matrix().tocoo()
    return {"LightFM WARP": timed(lambda: model.fit_partial(matrix, epochs=1, num_threads=1))}


def _cornac(bench: Bench, data: Named) -> dict[str, Side]:
    models = bench.peers.use("cornac", "cornac.models")
    if models is None:
        return {}
    rows = cornac_rows(data.train)
    one = {"k": 10, "num_threads": 1, "verbose": False}
    return {
        "Cornac BPR": differenced(lambda passes: models.BPR(max_iter=passes, seed=0, **one).fit(rows), (1, 3)),
        "Cornac MF": differenced(lambda passes: models.MF(max_iter=passes, seed=0, **one).fit(rows), (1, 3)),
    }


def cornac_rows(train: tnr.Interactions) -> Any:
    """The rows as a data set of Cornac."""
    from cornac.data import Dataset

    users, items = ({number: number for number in range(size)} for size in (train.n_users, train.n_items))
    assert train.ratings is not None
    triples = (train.user_index.astype(np.int64), train.indices.astype(np.int64), train.ratings.astype(np.float64))
    return Dataset(train.n_users, train.n_items, users, items, triples)


def _lenskit(bench: Bench, data: Named) -> dict[str, Side]:
    als = bench.peers.use("lenskit", "lenskit.als")
    if als is None:
        return {}
    rows = lenskit_rows(data.train)

    def fit(kind: Any) -> Callable[[int], object]:
        return lambda passes: kind(embedding_size=10, epochs=passes).train(rows)

    kinds = {"LensKit BiasedMF (ALS)": als.BiasedMFScorer, "LensKit ImplicitMF (ALS)": als.ImplicitMFScorer}
    return {name: differenced(fit(kind), (1, 3)) for name, kind in kinds.items()}


def lenskit_rows(train: tnr.Interactions) -> Any:
    """The rows as a data set of LensKit."""
    from lenskit.data import from_interactions_df

    names = {"user": "user_id", "item": "item_id"}
    table = train.to_arrow().select(["user", "item", "rating"])
    return from_interactions_df(table.to_pandas().rename(columns=names))


# -- threads -------------------------------------------------------------------------------------------------------------


def run_threads(bench: Bench) -> Iterator[Measure]:
    """Two threads against one: time of the clock, and the same bits at the end."""
    for data in (bench.whole, bench.large):
        yield two_threads(bench, data, "Top-N-Rank.ReLU, k=10", lambda passes, data=data: paper(data, passes))
    yield two_threads(
        bench, bench.whole, "default TopNRank()", lambda passes: tnr.TopNRank(task="rated", epochs=passes)
    )


def two_threads(bench: Bench, data: Named, name: str, make: Callable[[int], tnr.TopNRank]) -> Measure:
    """One model with one and with two threads."""
    bench.tell(f"{name} on two threads, {data.name}")
    passes = max(PASSES, VISITS // data.visits)
    models = {f"{count}": make(passes).set_params(num_threads=count) for count in (1, 2)}
    rounds = bench.rounds * (MORE_ROUNDS if passes > PASSES else 1)
    taken = in_turn({count: pass_of_a_fit(model, data) for count, model in models.items()}, rounds)
    for block in ("user_factors_", "item_factors_"):
        one, two = (getattr(model, block) for model in models.values())
        if not np.array_equal(one, two):
            raise AssertionError(f"{name}, {data.name}: {block} differ between one thread and two")
    ours, others = (per(taken[count], data.visits, clock="wall") for count in ("2", "1"))
    counted = (
        "Wall nanoseconds per rating visit; the parameters have the same bits in the end. Other programs on the two cores "
        "take from the speed-up; CPU of two threads over CPU of one shows what the threads themselves lose."
    )
    facts = {"CPU of two threads over CPU of one": _cpu_ratio(taken)}
    return Measure(THREADS, name, data.name, "ns", ours, "1 thread", others, THREADS_BAR, True, counted, facts)


def pass_of_a_fit(model: tnr.TopNRank, data: Named) -> Side:
    """A whole fit each turn, of which one pass after the first counts.

    Not `running`: every Python thread that trains gets threads of its own from OpenMP, and those of the side that waits go
    on spinning for a while.
    """

    def run() -> Taken:
        ends: list[Taken] = []
        watch = Stopwatch()
        model.fit(data.train, callbacks=[Tick(lambda: ends.append(watch.taken()))])
        return Taken(*((last - first) / (len(ends) - 1) for first, last in zip(ends[0], ends[-1], strict=True)))

    return run


def _cpu_ratio(taken: dict[str, list[Taken]]) -> float:
    return float(np.median([two.cpu / one.cpu for two, one in zip(taken["2"], taken["1"], strict=True)]))
