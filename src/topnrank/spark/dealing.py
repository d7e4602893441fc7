"""Rows dealt to the blocks they belong to: one shuffle of NumPy pieces, one partition for each block."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame

Arrays = dict[str, np.ndarray[Any, Any]]
Dtypes = Mapping[str, type[np.generic]]
"""Columns of numbers and what they become."""

PACKED_ROWS = 2**20
"""Rows that a task holds before it cuts them into pieces: a few dozen megabytes."""


def deal(rows: DataFrame, n_blocks: int, dtypes: Dtypes) -> RDD[Any]:
    """The columns `dtypes` of `rows`, dealt by the column `block`: element b of the result has those of block b.

    Partition b holds one element, a dict of arrays of one length, in no particular order.
    """
    names = tuple(dtypes)
    pieces = rows.select("block", *names).mapInArrow(lambda batches: _packed(batches, dtypes), "block int, data binary")
    dealt = pieces.rdd.map(lambda row: (row[0], bytes(row[1]))).partitionBy(n_blocks, int)
    return dealt.mapPartitions(lambda pairs: _joined(pairs, dtypes), preservesPartitioning=True)


def _packed(batches: Iterable[pa.RecordBatch], dtypes: Dtypes) -> Iterator[pa.RecordBatch]:
    """One row for each block among some rows: its number and its arrays."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= PACKED_ROWS:
            yield _pieces(pa.Table.from_batches(held), dtypes)
            held, rows = [], 0
    if rows:
        yield _pieces(pa.Table.from_batches(held), dtypes)


def _pieces(table: pa.Table, dtypes: Dtypes) -> pa.RecordBatch:
    block = table["block"].to_numpy()
    order = np.argsort(block, kind="stable")
    columns = {name: table[name].to_numpy().astype(dtype)[order] for name, dtype in dtypes.items()}
    numbers, starts = np.unique(block[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    data = [
        pickle.dumps({name: values[lo:hi] for name, values in columns.items()}, protocol=5)
        for lo, hi in zip(starts.tolist(), ends, strict=True)
    ]
    return pa.record_batch({"block": pa.array(numbers, pa.int32()), "data": pa.array(data, pa.binary())})


def _joined(pairs: Iterable[tuple[int, bytes]], dtypes: Dtypes) -> Iterator[Arrays]:
    """The pieces of one block in one; arrays of length 0 where nothing was dealt."""
    pieces = [pickle.loads(data) for _, data in pairs]
    yield {
        name: np.concatenate([np.empty(0, dtype), *(piece[name] for piece in pieces)]) for name, dtype in dtypes.items()
    }
