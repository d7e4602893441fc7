"""From rows of a DataFrame to blocks of users: numbers for ids, ranges of users, one shuffle."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from topnrank._typing import Int32Array, Int64Array
from topnrank.data.ids import MAX_IDS
from topnrank.errors import DataError

# ----------------------------------------------------------------------------------------------------
# Rows dealt to the blocks they belong to: one shuffle of NumPy pieces, one partition for each block.


Pieces = list[tuple[int, bytes]]
"""Numbers of blocks, and what a task has for each."""
Arrays = dict[str, np.ndarray[Any, Any]]
Dtypes = Mapping[str, type[np.generic]]
"""Columns of numbers and what they become."""

PACKED_ROWS = 2**20
"""Rows that a task holds before it cuts them into pieces: a few dozen megabytes."""
BATCH_ROWS = 2**18
"""Rows of an Arrow table that travel together."""


def deal(rows: DataFrame, n_blocks: int, dtypes: Dtypes) -> RDD[Any]:
    """The columns `dtypes` of `rows`, dealt by the column `block`: element b of the result has those of block b.

    Partition b holds one element, a dict of arrays of one length, in no particular order.
    """
    dealt = _balanced(rows.select("block", *dtypes), n_blocks, lambda table: _cut_arrays(table, dtypes))
    return dealt.mapPartitions(lambda pairs: _joined(pairs, dtypes), preservesPartitioning=True)


def deal_tables(rows: DataFrame, n_blocks: int) -> RDD[Any]:
    """All columns of `rows`, dealt by the column `block`, the first: element b of the result is a list of Arrow tables."""
    dealt = _balanced(rows, n_blocks, _cut_tables)
    return dealt.mapPartitions(_tables, preservesPartitioning=True)


def _balanced(rows: DataFrame, n_blocks: int, cut: Callable[[pa.Table], Pieces]) -> RDD[Any]:
    """Pairs of a block and a piece of it, in the partition of the block."""
    pieces = rows.mapInArrow(lambda batches: _packed(batches, cut), "block int, data binary")
    return pieces.rdd.map(lambda row: (row[0], bytes(row[1]))).partitionBy(n_blocks, int)


def _packed(batches: Iterable[pa.RecordBatch], cut: Callable[[pa.Table], Pieces]) -> Iterator[pa.RecordBatch]:
    """One row for each block among some rows: its number and its piece."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= PACKED_ROWS:
            yield _as_batch(cut(pa.Table.from_batches(held)))
            held, rows = [], 0
    if rows:
        yield _as_batch(cut(pa.Table.from_batches(held)))


def _as_batch(pieces: Pieces) -> pa.RecordBatch:
    numbers, data = zip(*pieces, strict=True)
    return pa.record_batch({"block": pa.array(numbers, pa.int32()), "data": pa.array(data, pa.binary())})


def _ranges(block: Int32Array) -> tuple[Int64Array, list[tuple[int, int, int]]]:
    """The order that sorts rows by block, and each block with its first row and its end in that order."""
    order = np.argsort(block, kind="stable")
    numbers, starts = np.unique(block[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    return order, list(zip(numbers.tolist(), starts.tolist(), ends, strict=True))


def _cut_arrays(table: pa.Table, dtypes: Dtypes) -> Pieces:
    order, ranges = _ranges(table["block"].to_numpy())
    columns = {name: table[name].to_numpy().astype(dtype)[order] for name, dtype in dtypes.items()}
    return [
        (number, pickle.dumps({name: values[first:end] for name, values in columns.items()}, protocol=5))
        for number, first, end in ranges
    ]


def _cut_tables(table: pa.Table) -> Pieces:
    order, ranges = _ranges(table.column(0).to_numpy())
    rows = table.remove_column(0).take(pa.array(order))
    return [(number, table_bytes(rows.slice(first, end - first))) for number, first, end in ranges]


def table_bytes(table: pa.Table) -> bytes:
    """An Arrow table as bytes, which `pa.ipc.open_stream` reads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)
    return bytes(sink.getvalue())


def _tables(pairs: Iterable[tuple[int, bytes]]) -> Iterator[list[pa.Table]]:
    yield [pa.ipc.open_stream(data).read_all() for _, data in pairs]


def _joined(pairs: Iterable[tuple[int, bytes]], dtypes: Dtypes) -> Iterator[Arrays]:
    """The pieces of one block in one; arrays of length 0 where nothing was dealt."""
    pieces = [pickle.loads(data) for _, data in pairs]
    yield {
        name: np.concatenate([np.empty(0, dtype), *(piece[name] for piece in pieces)]) for name, dtype in dtypes.items()
    }


# ----------------------------------------------------------------------------------------------------
# Users cut into contiguous ranges with about as many rows each.


FINEST = 2**17
"""Ranges of users whose rows are counted on the driver: with fewer users than this, each on its own."""


@dataclass(frozen=True)
class Cuts:
    """Users with their blocks."""

    users: DataFrame
    """id, number, block"""
    firsts: Int64Array
    """(n_blocks + 1,) the first user of each block, and in the end the number of users"""


def cut_users(users: "Numbered", n_blocks: int) -> Cuts:
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


# ----------------------------------------------------------------------------------------------------
# Ids and their numbers, made inside Spark: distinct ids in ascending order, numbered from 0; none is collected.


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
