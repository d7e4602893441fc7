"""Recommending: the 20 best items for many users and for one, against implicit with the same factors."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np

import topnrank as tnr
from suite_data import Bench, Named
from suite_measure import Bar, Measure, in_turn, per, timed
from suite_training import paper
from topnrank.models.serving.filters import RecommendOptions

PART = "recommending"
N, FACTORS = 20, 64
BAR, ONE_USER = Bar(0.8, 0.5), Bar(1.0)
USERS, ONE_BY_ONE = 5_000, 200
"""Users of the large data in a run that is not full, and calls for one user in a round."""
COUNTED = (
    f"The {N} best of all items without the training items, {FACTORS} factors, the same factors and number of threads on "
    "both sides. Ours: `model.recommend`, an Arrow table of original ids; implicit: `recommend` with all users in one call, "
    "numbers of items. The lists were compared and are the same."
)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """What runs inside, ours or NumPy's, uses `count` threads."""
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(count, "blas"):
            yield
    finally:
        numba.set_num_threads(before)


def twins(bench: Bench, data: Named, threads: int) -> tuple[tnr.TopNRank, Any] | None:
    """A model of ours and one of implicit with the same factors; None without implicit."""
    als = bench.peers.use("implicit", "implicit.als")
    if als is None:
        return None
    if data.name not in bench.kept:
        bench.kept[data.name] = paper(data, 1, factors=FACTORS).fit(data.train)
    ours: tnr.TopNRank = bench.kept[data.name].set_params(num_threads=threads)
    other = als.AlternatingLeastSquares(factors=FACTORS, num_threads=threads)
    other.user_factors, other.item_factors = ours.user_factors_.copy(), ours.item_factors_.copy()
    return ours, other


def options_for(threads: int) -> dict[str, Any]:
    """The number of threads, where `recommend` takes one; else the model's own holds."""
    return {"num_threads": threads} if "num_threads" in RecommendOptions.__annotations__ else {}


def said(threads: int) -> str:
    """In words."""
    return "1 thread" if threads == 1 else f"{threads} threads"


def run(bench: Bench) -> Iterator[Measure]:
    """Many users on one and two threads, one user after loading."""
    for data, users in ((bench.medium, None), (bench.large, None if bench.full else USERS)):
        for threads in (1, 2):
            bench.tell(f"recommending, {data.name}, {said(threads)}")
            yield from many_users(bench, data, users, threads)
    bench.tell("recommending to one user")
    yield from one_user(bench, bench.medium)


def many_users(bench: Bench, data: Named, users: int | None, threads: int) -> Iterator[Measure]:
    """All users, or the first ones, in one call."""
    both = twins(bench, data, threads)
    if both is None:
        return
    (ours, other), found = both, {}
    numbers, ids = np.arange(data.train.n_users)[:users], data.train.users.ids
    asked = None if numbers.size == len(ids) else ids[numbers]
    rows, more = data.matrix()[: numbers.size], options_for(threads)

    def our_turn() -> None:
        with on_threads(threads):
            found["ours"] = ours.recommend(asked, n=N, **more)

    def their_turn() -> None:
        with on_threads(1):  # implicit has threads of its own and wants BLAS to have one
            found["theirs"] = other.recommend(numbers, rows, N=N, filter_already_liked_items=True)[0]

    taken = in_turn({"ours": timed(our_turn), "theirs": timed(their_turn)}, bench.rounds)
    compare_lists(data.train.items.index(found["ours"]["item"].to_numpy()), found["theirs"])
    some = "all" if asked is None else f"{numbers.size:,}"
    for clock in ("wall", "cpu"):
        values = [per(taken[side], numbers.size, clock=clock, scale=1e6) for side in ("ours", "theirs")]
        name = f"top-{N} for {some} users, {said(threads)}, {clock} per user"
        yield Measure(PART, name, data.name, "us", values[0], "implicit", values[1], BAR, counted=COUNTED)


def compare_lists(ours: Any, theirs: Any) -> None:
    """Refuses lists that are not the same but for a few near ties, whose order rounding decides."""
    if ours.size != theirs.size:
        raise AssertionError(f"our lists hold {ours.size} items, implicit's {theirs.size}")
    shared = [np.intersect1d(one, two).size for one, two in zip(ours.reshape(theirs.shape), theirs, strict=True)]
    if np.sum(shared) < 0.999 * theirs.size:
        raise AssertionError(f"only {np.sum(shared)} of {theirs.size} items recommended are implicit's")


def one_user(bench: Bench, data: Named) -> Iterator[Measure]:
    """One user a call, after the model was loaded from its file."""
    both = twins(bench, data, 1)
    if both is None:
        return
    ours, other = both
    chosen = np.random.default_rng(0).choice(data.train.n_users, ONE_BY_ONE)
    ids, rows = data.train.users.ids[chosen].tolist(), [data.matrix()[user] for user in chosen]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        ours.save(path)
        model = tnr.load(path)
        sides = {
            "ours": timed(lambda: [model.recommend([user], n=N) for user in ids]),
            "theirs": timed(
                lambda: [other.recommend(user, own, N=N) for user, own in zip(chosen.tolist(), rows, strict=True)]
            ),
        }
        with on_threads(1):
            taken = in_turn(sides, bench.rounds)
    values = [per(taken[side], ONE_BY_ONE, clock="wall", scale=1e3) for side in ("ours", "theirs")]
    counted = f"One user a call, mean of {ONE_BY_ONE} calls in a round, model loaded from its file, one thread."
    name = f"top-{N} for one user, wall"
    yield Measure(PART, name, data.name, "ms", values[0], bar=ONE_USER, counted=counted)
    yield Measure(PART, name, data.name, "ms", values[0], "implicit", values[1], counted=counted)
