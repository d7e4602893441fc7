"""Rows dealt to the blocks they belong to: one shuffle of NumPy pieces, one partition for each block."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame

from topnrank._typing import Int32Array, Int64Array

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
    dealt = _dealt(rows.select("block", *dtypes), n_blocks, lambda table: _cut_arrays(table, dtypes))
    return dealt.mapPartitions(lambda pairs: _joined(pairs, dtypes), preservesPartitioning=True)


def deal_tables(rows: DataFrame, n_blocks: int) -> RDD[Any]:
    """All columns of `rows`, dealt by the column `block`, the first: element b of the result is a list of Arrow tables."""
    dealt = _dealt(rows, n_blocks, _cut_tables)
    return dealt.mapPartitions(_tables, preservesPartitioning=True)


def _dealt(rows: DataFrame, n_blocks: int, cut: Callable[[pa.Table], Pieces]) -> RDD[Any]:
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
