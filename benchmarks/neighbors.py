"""Cost and memory of the neighbor ridge as the catalog grows, on synthetic likes: writes docs/results/neighbors.md.

    python benchmarks/neighbors.py [--items 10000 100000 1000000]

Each size runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

from common import environment
from topnrank.models.linear.neighbors import LikedItems, Ridge, fit_neighbors
from topnrank.rng import stream

LIKES_PER_ITEM, LIKES_PER_USER = 10, 10
RIDGE = Ridge(neighbors=50)
PAGE = Path(__file__).parent.parent / "docs" / "results" / "neighbors.md"


def synthetic_likes(n_items: int, seed: int = 0) -> LikedItems:
    """Ten likes for each item and user on average; popularity falls as 1 / place^0.8, and users keep to a region."""
    draw, n_users = stream(seed, "neighbor benchmark", n_items), n_items * LIKES_PER_ITEM // LIKES_PER_USER
    sizes = 1 + draw.poisson(LIKES_PER_USER - 1, n_users)
    users = np.repeat(np.arange(n_users), sizes)
    popularity = np.cumsum(np.arange(1, n_items + 1) ** -0.8)
    common = np.searchsorted(popularity, draw.random(users.size) * popularity[-1])
    near = (draw.integers(0, n_items, n_users)[users] + draw.integers(0, 200, users.size)) % n_items
    items = np.where(draw.random(users.size) < 0.3, common, near)
    pairs = np.unique(users.astype(np.int64) * n_items + items)
    indptr = np.searchsorted(pairs, np.arange(n_users + 1, dtype=np.int64) * n_items)
    return LikedItems(indptr.astype(np.int64), (pairs % n_items).astype(np.int32), n_items)


def measure(n_items: int) -> list[str]:
    """One row of the table."""
    fit_neighbors(synthetic_likes(1000), RIDGE)  # compiles, or reads the compiled kernels
    liked = synthetic_likes(n_items)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    solved = fit_neighbors(liked, RIDGE)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = solved.neighbors.items.nbytes + solved.neighbors.weights.nbytes
    numbers = (f"{n_items:,}", f"{liked.indptr.size - 1:,}", f"{liked.items.size:,}", f"{cpu:.1f}", f"{wall:.1f}")
    return [*numbers, f"{before / 2**20:.2f}", f"{peak / 2**20:.2f}", f"{kept / 2**30:.3f}"]


def main() -> None:
    """Measures all sizes and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = parser.parse_args().items
    rows = []
    for n_items in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, (n_items,)))
        print("\t".join(rows[-1]), flush=True)
    heads = ["items", "users", "likes", "CPU s", "wall s", "GiB before", "GiB peak", "GiB kept"]
    lines = [
        "# The neighbor ridge as the catalog grows",
        "",
        f"Synthetic likes, about {LIKES_PER_ITEM} for each item and {LIKES_PER_USER} for each user; T = {RIDGE.neighbors} "
        f"neighbors, users with more than {RIDGE.longest} likes capped. Each size in a process of its own; peak memory is "
        "that of the whole process, likes and interpreter included; kept is what the model holds.",
        "",
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "Time is the sum of squared list lengths (co-occurrences) plus items x T^3 (regressions); memory is 8 bytes for "
        "each pair of items that share a user, plus 8 bytes x items x T. There is no items x items matrix.",
        "",
        f"{environment()}.",
        "",
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
