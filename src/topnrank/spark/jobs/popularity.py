"""The popularity of items, counted in the blocks of users."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark import RDD

from topnrank._typing import Float64Array
from topnrank.models.recent_popularity import ItemPopularity, TimedPairs, choose_half_life, popularity_of, recent_counts
from topnrank.rng import mix
from topnrank.spark.data.interactions import SparkInteractions, UserBlock

MOST_ROWS = 5_000_000
"""The half-life is chosen on the driver, by the rows of all users, or where there are more by those of a random share of
the users with about so many."""


def item_popularity_of_blocks(data: SparkInteractions) -> ItemPopularity:
    """`recent_popularity.item_popularity` of rows in the cluster."""
    n_items = data.n_items
    if "timestamps" not in data.blocks.map(lambda block: sorted(block.data)).first():
        return popularity_of(_sum(data.blocks, n_items, lambda block: _plain_counts(block, n_items)), math.inf)
    return popularity_of_pairs(data, data.blocks, lambda block: _pairs(block, n_items))


def popularity_of_pairs(
    data: SparkInteractions, blocks: "RDD[Any]", pairs: Callable[[Any], TimedPairs]
) -> ItemPopularity:
    """That of the `pairs` of some blocks, whose users are numbered among all."""
    n_items, share = data.n_items, min(1.0, MOST_ROWS / data.n_rows)
    parts: list[TimedPairs] = blocks.map(lambda block: _drawn(pairs(block), share)).collect()
    half_life = choose_half_life(TimedPairs(*map(np.concatenate, zip(*parts, strict=True))), n_items)
    latest = max(blocks.map(lambda block: int(pairs(block).times.max(initial=_EARLIEST))).collect())
    counts = _sum(blocks, n_items, lambda block: recent_counts(pairs(block), n_items, half_life, latest))
    return popularity_of(counts, half_life)


_EARLIEST = np.iinfo(np.int64).min


def _sum(blocks: "RDD[Any]", n_items: int, counts: Any) -> Float64Array:
    """The counts of all blocks, added in their order; one block here at a time."""
    total = np.zeros(n_items)
    for part in blocks.map(counts).toLocalIterator(prefetchPartitions=True):
        total += part
    return total


def _plain_counts(block: UserBlock, n_items: int) -> Float64Array:
    rows = block.interactions(n_items)
    return np.bincount(rows.indices[rows.pair_starts], minlength=n_items).astype(np.float64)


def _pairs(block: UserBlock, n_items: int) -> TimedPairs:
    pairs = TimedPairs.of(block.interactions(n_items), "popularity")
    return pairs._replace(users=pairs.users + block.first)


def _drawn(pairs: TimedPairs, share: float) -> TimedPairs:
    """The pairs of a share of the users, who are drawn by their numbers: the same ones for any number of blocks."""
    return pairs if share == 1.0 else pairs.where(mix(pairs.users.astype(np.uint64)) < np.uint64(share * 2.0**64))
