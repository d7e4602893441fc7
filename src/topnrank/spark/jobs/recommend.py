"""Recommending as a Spark job: each task makes the lists of one block of users, with the code of one machine."""

from collections.abc import Iterator, Mapping
from typing import Any, Unpack, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._checks import one_of, require_integer
from topnrank._typing import Int64Array
from topnrank.errors import ParameterError, UnknownIdError
from topnrank.models.serving.filters import RecommendOptions, SharedOptions
from topnrank.models.serving.recommend import recommend_table
from topnrank.spark.data.columns import column_of, id_column
from topnrank.spark.data.interactions import collect_table
from topnrank.spark.data.partition import partition_rows
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, ModelBlock, block_model, frame_of
from topnrank.spark.jobs.tables import frame_of_tables, is_integer, task_threads, with_ids

UNKNOWN = ("error", "skip")
LIST_ROWS = 2**20
"""Rows of lists that a task holds at a time."""
SCHEMA = "user bigint, item bigint, score float, rank int"


def recommend_blocks(
    distributed: DistributedModel,
    users: DataFrame | None = None,
    *,
    n: int = 10,
    user_column: str = "user",
    **options: Unpack[SharedOptions],
) -> DataFrame:
    """The n best items of all users, or of those in the column `user_column` of `users`, each once.

    Options are those of `Model.recommend`, with lists of items only; users the model does not know are an error, or left
    out with unknown="skip".

    Returns
    -------
    DataFrame with the columns user, item, score, rank (1 = best); its rows are in no particular order.
    """
    n = require_integer("recommend: n", n, 1)
    unknown = one_of("unknown", options.get("unknown", "error"), UNKNOWN)
    asked = _by_number(distributed, options)
    shared = distributed.shared
    if users is None:
        tables = distributed.blocks.flatMap(lambda block: _lists(shared.value, block, None, n, asked))
    else:
        parts = partition_rows(
            _wanted(distributed, users, user_column, unknown), distributed.n_blocks, {"number": np.int64}
        )
        both = distributed.blocks.zip(parts)
        tables = both.flatMap(lambda pair: _lists(shared.value, pair[0], pair[1]["number"], n, asked))
    lists = frame_of_tables(distributed.session, tables, SCHEMA)
    lists = with_ids(with_ids(lists, "user", distributed.users), "item", distributed.items)
    return lists.select("user", "item", "score", "rank")


def _lists(
    item_parameters: ItemParameters, block: ModelBlock, users: Int64Array | None, n: int, asked: RecommendOptions
) -> Iterator[pa.Table]:
    """Inside a task: the lists of some users of a block, by number."""
    model = block_model(item_parameters, block)
    numbers = np.arange(block.first, block.first + block.n_users) if users is None else np.sort(users)
    size = max(1, LIST_ROWS // n)
    for first in range(0, len(numbers), size):
        with task_threads():
            table = recommend_table(model, numbers[first : first + size], None, n, asked)
        yield table.cast(pa.schema({"user": "int64", "item": "int64", "score": "float32", "rank": "int32"}.items()))


def _wanted(distributed: DistributedModel, users: DataFrame, name: str, unknown: str) -> DataFrame:
    """The users asked for, each once, with their numbers and blocks."""
    if name not in users.columns:
        raise ParameterError(
            f"recommend: the users have no column {name!r}, only {', '.join(map(repr, users.columns))}"
        )
    ids = id_column(users, name, integer=is_integer(distributed.users))
    asked = users.select(ids.alias("id"), column_of(name).cast("string").alias("given")).dropDuplicates(["id"])
    if unknown == "error":
        missing = asked.join(distributed.users, "id", "left_anti").agg(sf.count(sf.lit(1)), sf.min("given")).first()
        if missing is not None and missing[0]:
            raise UnknownIdError(
                f"recommend: the model does not know {missing[0]} of the users, for example {missing[1]!r}; leave them out "
                "with unknown='skip'"
            )
    return asked.join(distributed.users, "id").select("number", "block")


def _by_number(distributed: DistributedModel, options: SharedOptions) -> RecommendOptions:
    """The options with numbers in place of the ids of items."""
    for name in options:
        one_of("recommend: an option", name, tuple(SharedOptions.__annotations__))
    asked: dict[str, Any] = {name: value for name, value in options.items() if name != "unknown" and value is not None}
    for name in ("items", "exclude"):
        if isinstance(asked.get(name), Mapping):
            raise ParameterError(
                f"recommend: {name} by user is not possible on Spark; give a list, or filter the result"
            )
        if name in asked:
            asked[name] = item_numbers(distributed, asked[name])
    if isinstance(groups := asked.get("groups"), Mapping):
        asked["groups"] = dict(zip(item_numbers(distributed, list(groups)).tolist(), groups.values(), strict=True))
    elif groups is not None:
        raise ParameterError("recommend: on Spark groups must be a dict {item: group}")
    return cast(RecommendOptions, asked)


def item_numbers(distributed: DistributedModel, items: Any) -> Int64Array:
    """Numbers of some item ids, in their order; UnknownIdError names one the model does not know."""
    given = np.atleast_1d(np.asarray(items, dtype=object)).tolist()
    table = pa.table({"place": np.arange(len(given)), "item": [str(one) for one in given]})
    frame = frame_of(distributed.session, table)
    ids = id_column(frame, "item", integer=is_integer(distributed.items))
    found = collect_table(
        frame.select("place", ids.alias("id")).join(distributed.items, "id", "left").select("place", "number")
    )
    found = found.sort_by("place")
    if found["number"].null_count:
        missing = given[found["number"].is_null().index(True).as_py()]
        raise UnknownIdError(f"the model does not know item {missing!r}; it was trained on {distributed.n_items} items")
    return np.asarray(found["number"].to_numpy(), np.int64)
