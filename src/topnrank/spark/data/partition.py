"""From rows of a DataFrame to blocks of users: indices for ids, ranges of users, one shuffle."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._typing import Int32Array, Int64Array
from topnrank.data.ids import MAX_IDS
from topnrank.errors import DataError

# -- one shuffle: rows to the blocks they belong to, as NumPy or Arrow pieces, one partition for each block ------------

Pieces = list[tuple[int, bytes]]
"""Blocks, and the pickled rows that a task has for each."""
Arrays = dict[str, np.ndarray[Any, Any]]
Dtypes = Mapping[str, type[np.generic]]
"""Names and types of columns."""

PACKED_ROWS = 2**20
"""Rows that a task collects before it splits them into pieces: a few dozen megabytes."""
BATCH_ROWS = 2**18
"""Rows of a record batch of an Arrow table."""


def partition_rows(rows: DataFrame, n_blocks: int, dtypes: Dtypes) -> RDD[Any]:
    """The columns `dtypes` of `rows`, partitioned by the column `block`.

    Partition b holds one element, a dict of arrays of one length, with the rows of block b in no particular order.
    """
    pieces = _partitioned(rows.select("block", *dtypes), n_blocks, lambda table: _split_arrays(table, dtypes))
    return pieces.mapPartitions(lambda pairs: _joined(pairs, dtypes), preservesPartitioning=True)


def partition_tables(rows: DataFrame, n_blocks: int) -> RDD[Any]:
    """All columns of `rows`, partitioned by the first, `block`: partition b holds one element, a list of Arrow tables."""

    def tables(pairs: Iterable[tuple[int, bytes]]) -> Iterator[list[pa.Table]]:
        yield [pa.ipc.open_stream(data).read_all() for _, data in pairs]

    return _partitioned(rows, n_blocks, _split_tables).mapPartitions(tables, preservesPartitioning=True)


def _partitioned(rows: DataFrame, n_blocks: int, split: Callable[[pa.Table], Pieces]) -> RDD[Any]:
    """Pairs of a block and a piece of it, in the partition of the block."""
    pieces = rows.mapInArrow(lambda batches: _packed(batches, split), "block int, data binary")
    return pieces.rdd.map(lambda row: (row[0], bytes(row[1]))).partitionBy(n_blocks, int)


def _packed(batches: Iterable[pa.RecordBatch], split: Callable[[pa.Table], Pieces]) -> Iterator[pa.RecordBatch]:
    """One row for each block and PACKED_ROWS rows: the block and its piece."""

    def packed(held: list[pa.RecordBatch]) -> pa.RecordBatch:
        blocks, data = zip(*split(pa.Table.from_batches(held)), strict=True)
        return pa.record_batch({"block": pa.array(blocks, pa.int32()), "data": pa.array(data, pa.binary())})

    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= PACKED_ROWS:
            yield packed(held)
            held, rows = [], 0
    if rows:
        yield packed(held)


def _ranges(block: Int32Array) -> tuple[Int64Array, list[tuple[int, int, int]]]:
    """The order that sorts rows by block, and each block with its first row and its end in that order."""
    order = np.argsort(block, kind="stable")
    numbers, starts = np.unique(block[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    return order, list(zip(numbers.tolist(), starts.tolist(), ends, strict=True))


def _split_arrays(table: pa.Table, dtypes: Dtypes) -> Pieces:
    order, ranges = _ranges(table["block"].to_numpy())
    columns = {name: table[name].to_numpy().astype(dtype)[order] for name, dtype in dtypes.items()}
    return [
        (number, pickle.dumps({name: values[first:end] for name, values in columns.items()}, protocol=5))
        for number, first, end in ranges
    ]


def _split_tables(table: pa.Table) -> Pieces:
    order, ranges = _ranges(table.column(0).to_numpy())
    rows = table.remove_column(0).take(pa.array(order))
    return [(number, table_bytes(rows.slice(first, end - first))) for number, first, end in ranges]


def table_bytes(table: pa.Table) -> bytes:
    """An Arrow table as bytes, which `pa.ipc.open_stream` reads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)
    return bytes(sink.getvalue())


def _joined(pairs: Iterable[tuple[int, bytes]], dtypes: Dtypes) -> Iterator[Arrays]:
    """The pieces of one block in one; arrays of length 0 where there are none."""
    pieces = [pickle.loads(data) for _, data in pairs]
    yield {
        name: np.concatenate([np.empty(0, dtype), *(piece[name] for piece in pieces)]) for name, dtype in dtypes.items()
    }


# -- ranges of users with about as many rows each -----------------------------------------------------------------------

MAX_RANGES = 2**17
"""Ranges of users whose rows are counted on the driver: with fewer users than this, each is one."""


@dataclass(frozen=True)
class UserRanges:
    """Users and the blocks they belong to."""

    users: DataFrame
    """id, number, block"""
    firsts: Int64Array
    """(n_blocks + 1,) the first user of each block, and at the end the number of users"""


def partition_users(users: "Numbered", n_blocks: int) -> UserRanges:
    """At most `n_blocks` blocks, each with at least one user; `users` has a column of the rows of each user."""
    n_blocks = min(n_blocks, users.count)
    n_ranges = min(users.count, max(MAX_RANGES, n_blocks))
    number = sf.col("number")
    # the range of a user is number * n_ranges // n_users, in integer arithmetic
    range_ = ((number * n_ranges - (number * n_ranges) % users.count) / users.count).cast("bigint")
    placed = users.frame.withColumn("range", range_)
    counts = np.zeros(n_ranges, np.int64)
    for row in placed.groupBy("range").agg(sf.sum("rows")).collect():
        counts[row[0]] = row[1]
    boundaries = even_boundaries(counts, n_blocks)
    firsts = -(-boundaries * users.count // n_ranges)
    blocks = np.repeat(np.arange(n_blocks), np.diff(boundaries)).tolist()
    by_range = placed.sparkSession.createDataFrame(list(enumerate(blocks)), "range bigint, block int")
    return UserRanges(placed.join(sf.broadcast(by_range), "range").select("id", "number", "block"), firsts)


def even_boundaries(counts: Int64Array, n_parts: int) -> Int64Array:
    """(n_parts + 1,) where parts of a sequence of `counts` with about equal sums begin; no part is empty.

    A part exceeds the mean by at most one count, unless parts must not be empty.
    """
    sums = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    ideal = sums[-1] * np.arange(n_parts + 1) / n_parts
    above = np.searchsorted(sums, ideal)
    below = np.maximum(above - 1, 0)
    boundaries = np.where(ideal - sums[below] < sums[above] - ideal, below, above)
    boundaries[0], boundaries[-1] = 0, len(counts)
    part = np.arange(n_parts + 1)
    boundaries = np.maximum.accumulate(boundaries - part) + part
    return np.asarray(np.minimum(boundaries, len(counts) - n_parts + part))


# -- indices of ids, made inside Spark: distinct ids in ascending order, numbered from 0; none is collected -------------

_ROW_BITS = 33
"""Low bits of `monotonically_increasing_id`: the row in the partition; the partition is in the high ones."""


@dataclass(frozen=True)
class Numbered:
    """Ids with their indices."""

    frame: DataFrame
    """id, number (its index), and the other columns of the ids"""
    count: int
    cached: DataFrame
    """The persisted frame behind `frame`: to be unpersisted when it is no longer needed"""


def number_ids(ids: DataFrame, kind: str, *, start: int = 0) -> Numbered:
    """Numbers the column `id`, whose values are distinct, by rank: integers by value, text by code point (UTF-8 bytes).

    The sorted ids are persisted first: only then do they stay in the partitions in which they were counted.
    """
    ordered = ids.sort("id").withColumn("row", sf.monotonically_increasing_id()).persist()
    partition = sf.shiftright("row", _ROW_BITS)
    counts = {int(row[0]): int(row[1]) for row in ordered.groupBy(partition).count().collect()}
    total = sum(counts.values())
    if total > MAX_IDS:
        raise DataError(f"at most {MAX_IDS} different {kind}s are possible, got {total}; split the data")
    sizes = np.array([counts.get(part, 0) for part in range(max(counts, default=-1) + 1)], np.int64)
    firsts = [sf.lit(int(first)) for first in np.cumsum(sizes) - sizes + start]
    first = sf.element_at(sf.array(*firsts), (partition + 1).cast("int")) if firsts else sf.lit(0)
    number = (sf.col("row").bitwiseAND(2**_ROW_BITS - 1) + first).cast("bigint")
    return Numbered(ordered.withColumn("number", number).drop("row"), total, ordered)
