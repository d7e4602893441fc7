"""Ids and their numbers, made inside Spark: distinct ids in ascending order, numbered from 0; none is collected."""

from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from topnrank._typing import Int64Array
from topnrank.data.ids import MAX_IDS
from topnrank.errors import DataError

_PLACE_BITS = 33
"""Of `monotonically_increasing_id`: the place in the partition; the partition's number stands above."""


@dataclass(frozen=True)
class Numbered:
    """Ids with their numbers."""

    frame: DataFrame
    """id, number, and whatever stood beside the ids"""
    count: int
    cached: DataFrame
    """What `frame` is read from: to be unpersisted when it is no longer needed"""


def number_ids(ids: DataFrame, kind: str, *, start: int = 0) -> Numbered:
    """Numbers the column `id`, whose values are distinct, by rank: integers by value, text by code point (UTF-8 bytes).

    The sorted ids are persisted first: only then do their places stay what they were when the partitions were counted.
    """
    arranged = ids.sort("id").withColumn("place", sf.monotonically_increasing_id()).persist()
    partition = sf.shiftright("place", _PLACE_BITS)
    counts = {int(row[0]): int(row[1]) for row in arranged.groupBy(partition).count().collect()}
    total = sum(counts.values())
    if total > MAX_IDS:
        raise DataError(f"at most {MAX_IDS} different {kind}s are possible, got {total}; split the data")
    sizes = np.array([counts.get(part, 0) for part in range(max(counts, default=-1) + 1)], np.int64)
    number = sf.col("place").bitwiseAND(2**_PLACE_BITS - 1) + _looked_up(np.cumsum(sizes) - sizes + start, partition)
    return Numbered(arranged.withColumn("number", number.cast("bigint")).drop("place"), total, arranged)


def _looked_up(table: Int64Array, place: Column) -> Column:
    """table[place], in a query."""
    if not len(table):
        return sf.lit(0)
    values = sf.array(*(sf.lit(int(value)) for value in table))
    return sf.element_at(values, (place + 1).cast("int"))
