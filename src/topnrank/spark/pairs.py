"""Scores of pairs as a Spark job: each pair travels to the block of its user."""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank.spark.dealing import Arrays, deal
from topnrank.spark.frames import column_of, id_column
from topnrank.spark.served import Learnt, Served, ServedBlock, block_model
from topnrank.spark.tables import frame_of_tables, is_integer, known_numbers, task_threads

_USER, _ITEM, _SCORE = "__user", "__item", "__score"


def score_pairs(served: Served, rows: DataFrame, names: tuple[str, str], output: str, *, drop: bool) -> DataFrame:
    """`rows` with a column `output` of the scores of their users and items, the columns `names`.

    Rows of unknown users or items have NaN there, or are left out with `drop`.
    """
    user, item = (
        id_column(rows, name, integer=is_integer(known))
        for name, known in zip(names, (served.users, served.items), strict=True)
    )
    keyed = rows.withColumns({_USER: user, _ITEM: item})
    pairs = keyed.select(sf.col(_USER).alias("user"), sf.col(_ITEM).alias("item")).distinct()
    numbers = known_numbers(known_numbers(pairs, "user", served.users, "user_number"), "item", served.items, "number")
    known = numbers.where(sf.col("user_number").isNotNull() & sf.col("number").isNotNull())
    columns = {"user_number": np.int64, "number": np.int64}
    shared, dealt = served.shared, deal(known, served.n_blocks, columns)
    tables = served.blocks.zip(dealt).map(lambda both: _scored(shared.value, *both))
    scores = frame_of_tables(served.session, tables, "user_number bigint, number bigint, score float")
    found = known.join(scores, ["user_number", "number"]).select(
        sf.col("user").alias(_USER), sf.col("item").alias(_ITEM), sf.col("score").alias(_SCORE)
    )
    joined = keyed.join(found, [_USER, _ITEM], "inner" if drop else "left")
    scored = joined.withColumn(output, sf.coalesce(sf.col(_SCORE), sf.lit(float("nan")).cast("float")))
    return scored.select(*(column_of(name) for name in [*rows.columns, output]))


def _scored(learnt: Learnt, block: ServedBlock, dealt: Arrays) -> pa.Table:
    """Inside a task: the scores of the pairs of a block."""
    model = block_model(learnt, block)
    with task_threads():
        scores = model.score_pairs(model.user_map.index(dealt["user_number"]), dealt["number"])
    return pa.table({**dealt, "score": np.asarray(scores, np.float32)})
