"""Arrow tables of tasks as DataFrames, and ids and their indices in DataFrames."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyspark import RDD, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as kinds

from topnrank.kernels.jit import threads
from topnrank.spark.data.partition import table_bytes


def frame_of_tables(session: SparkSession, tables: RDD[Any], schema: "str | kinds.StructType") -> DataFrame:
    """A DataFrame of the Arrow tables of an RDD, column by column: rows never become Python objects."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column("data"):
                yield from pa.ipc.open_stream(data.as_buffer())

    rows = tables.map(lambda table: (bytearray(table_bytes(table)),))
    return session.createDataFrame(rows, "data binary", verifySchema=False).mapInArrow(read, schema)


def task_threads() -> AbstractContextManager[None]:
    """Kernels inside use the cores of the task, not all of the machine: other tasks run beside it."""
    task = TaskContext.get()
    return threads(task.cpus() if task is not None else 0)


def with_ids(frame: DataFrame, column: str, known: DataFrame) -> DataFrame:
    """`frame` with ids in place of the indices in `column`."""
    ids = known.select(sf.col("number").alias(column), sf.col("id").alias("_id"))
    return frame.join(ids, column).drop(column).withColumnRenamed("_id", column)


def is_integer(known: DataFrame) -> bool:
    """Whether the ids of a frame (id, number) are integers."""
    return isinstance(known.schema["id"].dataType, kinds.LongType)


def known_numbers(rows: DataFrame, column: str, known: DataFrame, number: str) -> DataFrame:
    """`rows` with the indices of the ids in `column`, null where they are not known."""
    columns: list[Column] = [sf.col("id").alias(column), sf.col("number").alias(number)]
    if number == "user_number":
        columns.append(sf.col("block"))
    return rows.join(known.select(*columns), column, "left")
