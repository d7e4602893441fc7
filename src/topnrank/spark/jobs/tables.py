"""Arrow tables made inside tasks as DataFrames, and rows of a DataFrame brought to the blocks of their users."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyspark import RDD, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as kinds

from topnrank import errors
from topnrank.errors import TopNRankError
from topnrank.kernels.jit import threads
from topnrank.spark.data.partition import table_bytes


def frame_of_tables(session: SparkSession, tables: RDD[Any], schema: "str | kinds.StructType") -> DataFrame:
    """A DataFrame of the Arrow tables of an RDD, column by column: rows never become Python objects."""
    packed = session.createDataFrame(
        tables.map(lambda table: (bytearray(table_bytes(table)),)), "data binary", verifySchema=False
    )
    return packed.mapInArrow(_read, schema)


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("data"):
            yield from pa.ipc.open_stream(data.as_buffer())


def task_threads() -> AbstractContextManager[None]:
    """Kernels inside use the cores of the task, not all of the machine: other tasks run beside it."""
    task = TaskContext.get()
    return threads(task.cpus() if task is not None else 0)


def guarded(task: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, tuple[str, str] | None]]:
    """`task` whose own errors are results: (result, None), or (None, error) for `unguarded` on the driver."""

    def run(value: Any) -> tuple[Any, tuple[str, str] | None]:
        try:
            return task(value), None
        except TopNRankError as error:
            return None, (type(error).__name__, str(error))

    return run


def unguarded(error: tuple[str, str]) -> TopNRankError:
    """The error of a task, without Spark's words around it."""
    kind: type[TopNRankError] = getattr(errors, error[0], TopNRankError)
    return kind(error[1])


def with_ids(frame: DataFrame, column: str, known: DataFrame) -> DataFrame:
    """`frame` with ids in place of the numbers in `column`."""
    ids = known.select(sf.col("number").alias(column), sf.col("id").alias("_id"))
    return frame.join(ids, column).drop(column).withColumnRenamed("_id", column)


def is_integer(known: DataFrame) -> bool:
    """Whether the ids of a frame (id, number) are integers."""
    return isinstance(known.schema["id"].dataType, kinds.LongType)


def known_numbers(rows: DataFrame, column: str, known: DataFrame, number: str) -> DataFrame:
    """`rows` with the numbers of the ids in `column`, null where they are not known."""
    columns: list[Column] = [sf.col("id").alias(column), sf.col("number").alias(number)]
    if number == "user_number":
        columns.append(sf.col("block"))
    return rows.join(known.select(*columns), column, "left")
