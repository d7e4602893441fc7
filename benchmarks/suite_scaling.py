"""Scaling: cost per rating over the length of the lists, the number of ratings and the number of factors."""

from collections.abc import Iterator, Mapping

import numpy as np

import topnrank as tnr
from suite_data import Bench, Named
from suite_measure import Bar, Measure, in_turn, per
from suite_training import paper, running

PART = "scaling"
LENGTHS, ITEMS, RATINGS = (10, 100, 1_000, 10_000), 20_000, 1_000_000
USERS = (2_000, 8_000, 32_000)
FACTORS = (10, 32, 64, 128)
BAR = Bar(1.6, 1.3)
SHORT, LONG = 100, 10_000
COUNTED = "Top-N-Rank.ReLU, CPU nanoseconds per rating visit on one thread, timed inside running fits that take turns."


def run(bench: Bench) -> Iterator[Measure]:
    """The three of them."""
    ratings = RATINGS // (50 if bench.quick else 1)
    bench.tell("cost over the length of the lists")
    lists = {length: uniform_lists(length, max(ratings, 2 * length)) for length in LENGTHS}
    words = f"uniform, {ratings:,} ratings of {ITEMS:,} items"
    yield from compared(bench, lists, SHORT, "lists of {:,}", words)
    bench.tell("cost over the number of ratings")
    users = [count // (50 if bench.quick else 1) for count in USERS]
    sets = {72 * count: Named("", *[tnr.synthetic(count, 5_000, 72 * count, seed=0)] * 2) for count in users}
    yield from compared(bench, sets, min(sets), "{:,} ratings", "synthetic, 72 ratings a user")
    bench.tell("cost over the number of factors")
    yield from over_factors(bench, bench.whole)


def uniform_lists(length: int, ratings: int) -> Named:
    """Lists of one length, of items drawn uniformly; three of five are likes."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(length)
    lists = ratings // length
    items = np.concatenate([rng.choice(ITEMS, length, replace=False, shuffle=False) for _ in range(lists)])
    stars = np.where(rng.random(items.size) < 0.6, 5.0, 2.0)
    rows = csr_matrix((stars, items, np.arange(lists + 1) * length), shape=(lists, ITEMS))
    data = tnr.Interactions.from_scipy(rows)
    return Named("", data, data)


def compared(bench: Bench, sets: Mapping[int, Named], base: int, words: str, data: str) -> Iterator[Measure]:
    """The cost of each set against the base, in the same rounds."""
    passes = bench.rounds + 1
    taken = in_turn({f"{key}": running(paper(one, passes), one) for key, one in sets.items()}, bench.rounds)
    costs = {key: per(taken[f"{key}"], one.visits) for key, one in sets.items()}
    for key, cost in costs.items():
        bar = BAR if (base, key) == (SHORT, LONG) else None
        if key != base:
            name, peer = f"ReLU, k=10, {words.format(key)}", words.format(base)
            yield Measure(PART, name, data, "ns", cost, peer, costs[base], bar, counted=COUNTED)


def over_factors(bench: Bench, data: Named) -> Iterator[Measure]:
    """The cost of more factors."""
    models = {k: paper(data, bench.rounds + 1, factors=k) for k in FACTORS}
    taken = in_turn({f"{k}": running(model, data) for k, model in models.items()}, bench.rounds)
    base = per(taken[f"{FACTORS[0]}"], data.visits)
    for k in FACTORS[1:]:
        cost, peer = per(taken[f"{k}"], data.visits), f"k={FACTORS[0]}"
        yield Measure(PART, f"ReLU, k={k}", data.name, "ns", cost, peer, base, counted=COUNTED)
