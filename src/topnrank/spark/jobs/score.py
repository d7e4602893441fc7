"""Scores of rows as a Spark job: each row travels, with all its columns, to the block of its user."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as kinds

from topnrank._typing import Float32Array
from topnrank.spark.data.columns import column_of, id_column
from topnrank.spark.data.partition import partition_tables
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, ModelBlock, block_model
from topnrank.spark.jobs.tables import frame_of_tables, is_integer, task_threads

_NUMBERS = ("__user_number", "__item_number")


def score_rows(
    distributed: DistributedModel, rows: DataFrame, *, user: str, item: str, output: str, drop: bool
) -> DataFrame:
    """`rows` with a column `output` of the scores of their users and items, which the columns `user` and `item` name.

    Rows of unknown users or items have NaN there, or are left out with `drop`. The rows are read once: a DataFrame may give
    others each time, such as those of `limit` or `sample`.
    """
    ids = {
        "__user": id_column(rows, user, integer=is_integer(distributed.users)),
        "__item": id_column(rows, item, integer=is_integer(distributed.items)),
    }
    keyed = rows.withColumns(ids)
    users = distributed.users.select(
        sf.col("id").alias("__user"), sf.col("number").alias(_NUMBERS[0]), sf.col("block").alias("__own")
    )
    items = distributed.items.select(sf.col("id").alias("__item"), sf.col("number").alias(_NUMBERS[1]))
    how = "inner" if drop else "left"
    # rows without a user have no block: any will do, if they do not all go to the same one
    block = sf.coalesce("__own", sf.pmod(sf.hash("__user", "__item"), sf.lit(distributed.n_blocks)))
    numbered = keyed.join(users, "__user", how).join(items, "__item", how)
    columns = [column_of(name) for name in rows.columns]
    parts = partition_tables(numbered.select(block.alias("__block"), *_NUMBERS, *columns), distributed.n_blocks)
    shared = distributed.shared
    tables = distributed.blocks.zip(parts).flatMap(lambda both: _scored(shared.value, both[0], both[1], output))
    schema = kinds.StructType([*rows.schema.fields, kinds.StructField(output, kinds.FloatType())])
    return frame_of_tables(distributed.session, tables, schema)


def _scored(
    item_parameters: ItemParameters, block: ModelBlock, parts: list[pa.Table], output: str
) -> Iterator[pa.Table]:
    """Inside a task: the rows of a block without their numbers, with their scores."""
    model = block_model(item_parameters, block)
    for table in parts:
        users, items = (table.column(place).combine_chunks() for place in (0, 1))
        known = np.asarray(pc.and_(users.is_valid(), items.is_valid()))
        scores: Float32Array = np.full(len(table), np.nan, np.float32)
        numbers = [np.asarray(column.fill_null(0))[known] for column in (users, items)]
        with task_threads():
            scores[known] = model.score_pairs(model.user_map.index(numbers[0]), numbers[1])
        yield table.remove_column(0).remove_column(0).append_column(output, pa.array(scores))
