"""Users cut into contiguous ranges with about as many rows each."""

from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._typing import Int64Array
from topnrank.spark.numbering import Numbered

FINEST = 2**17
"""Ranges of users whose rows are counted on the driver: with fewer users than this, each on its own."""


@dataclass(frozen=True)
class Cuts:
    """Users with their blocks."""

    users: DataFrame
    """id, number, block"""
    firsts: Int64Array
    """(n_blocks + 1,) the first user of each block, and in the end the number of users"""


def cut_users(users: Numbered, n_blocks: int) -> Cuts:
    """At most `n_blocks` blocks, each with at least one user; `users` has a column of the rows of each user."""
    n_blocks = min(n_blocks, users.count)
    n_ranges = min(users.count, max(FINEST, n_blocks))
    number = sf.col("number")
    # the range of a user is number * n_ranges // n_users, in whole numbers
    place = ((number * n_ranges - (number * n_ranges) % users.count) / users.count).cast("bigint")
    placed = users.frame.withColumn("range", place)
    counts = np.zeros(n_ranges, np.int64)
    for row in placed.groupBy("range").agg(sf.sum("rows")).collect():
        counts[row[0]] = row[1]
    cuts = even_cuts(counts, n_blocks)
    firsts = -(-cuts * users.count // n_ranges)
    blocks = np.repeat(np.arange(n_blocks), np.diff(cuts))
    return Cuts(_with_block(placed, blocks).select("id", "number", "block"), firsts)


def even_cuts(counts: Int64Array, n_parts: int) -> Int64Array:
    """Where to cut a sequence of `counts` into parts of about equal sums, (n_parts + 1,); no part is empty.

    A part exceeds the mean by at most one count, unless parts must not be empty.
    """
    sums = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    ideal = sums[-1] * np.arange(n_parts + 1) / n_parts
    above = np.searchsorted(sums, ideal)
    below = np.maximum(above - 1, 0)
    cuts = np.where(ideal - sums[below] < sums[above] - ideal, below, above)
    cuts[0], cuts[-1] = 0, len(counts)
    place = np.arange(n_parts + 1)
    cuts = np.maximum.accumulate(cuts - place) + place
    return np.asarray(np.minimum(cuts, len(counts) - n_parts + place))


def _with_block(placed: DataFrame, blocks: Int64Array) -> DataFrame:
    """The block of each user, by the user's range."""
    table = [(place, block) for place, block in enumerate(blocks.tolist())]
    by_range = placed.sparkSession.createDataFrame(table, "range bigint, block int")
    return placed.join(sf.broadcast(by_range), "range")
