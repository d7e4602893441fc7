"""From a DataFrame to blocks of users, without collecting it.

    DataFrame                 ids -> numbers                    blocks: ranges of users with about as many rows each
    user item rating          user: ann 0, bob 1, eve 2         block 0: users 0 to 1    indptr  0 2 3
    eve  m1   4               item: m1 0, m2 1, m3 2                                     indices 0 2 | 1
    ann  m3   5       ──▶     (sorted, numbered by rank,  ──▶   block 1: user 2          indptr  0 1
    bob  m2   3                in Spark)                                                 indices 0
    ann  m1   1

Two joins replace ids by their indices, one shuffle brings the rows to their blocks (`partition`). Indices are those of
`Interactions` of the same rows, so a block holds the rows that `Interactions` has for its users.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from topnrank._checks import one_of
from topnrank._typing import Int64Array
from topnrank.data.duplicates import DUPLICATE_RULES, CodedColumns, check_countable, rule_for_rows, unique_rows
from topnrank.data.frames import Columns
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.spark.data.columns import ORDER, SOURCE, CheckedRows, checked_rows
from topnrank.spark.data.partition import Arrays, number_ids, partition_rows, partition_users
from topnrank.spark.engine.settings import default_blocks
from topnrank.spark.session.session import described
from topnrank.spark.session.shipping import prepare_executors

MAX_TYPES = 10_000
"""Most feedback types: every task knows their names."""
_VALUES = {"rating": "ratings", "weight": "weights", "timestamp": "timestamps", "type": "types"}
"""Roles of columns, and the arrays they become."""
_DTYPES: dict[str, type[np.generic]] = {
    "ratings": np.float32,
    "types": np.int32,
    "weights": np.float32,
    "timestamps": np.int64,
}


class Merged(NamedTuple):
    """How repeated rows of a block were merged."""

    rows: int = 0
    example: tuple[int, int] | None = None
    """Numbers of the user and the item of one repeated row"""
    problem: str | None = None
    """Why they could not be merged"""


NOTHING_MERGED = Merged()


@dataclass(frozen=True, eq=False)
class UserBlock:
    """The rows of the users `first` to `first + n_users - 1`; items are indices of the whole catalog."""

    number: int
    """Index of the block, and of its partition"""
    first: int
    data: Arrays
    """indptr, indices and, where the data has them, ratings, types, weights, timestamps: see `Interactions`"""
    merged: Merged = NOTHING_MERGED

    @property
    def n_users(self) -> int:
        """Users of the block, each with at least one row."""
        return len(self.data["indptr"]) - 1

    def interactions(self, n_items: int, type_names: tuple[str, ...] = ()) -> Interactions:
        """The rows as `Interactions`, whose ids are the indices of users and items."""
        users = IdMap(np.arange(self.first, self.first + self.n_users))
        columns: dict[str, Any] = dict(self.data)
        return Interactions(users, IdMap(np.arange(n_items)), type_names=type_names, **columns)


@dataclass(frozen=True, eq=False)
class SparkInteractions:
    """Interactions in the cluster: ids with their indices as DataFrames, rows as an RDD of blocks.

    Everything is persisted (memory, then disk) until `unpersist`.
    """

    session: SparkSession
    users: DataFrame
    """id, number, and the block the user belongs to"""
    items: DataFrame
    """id, number"""
    blocks: RDD[Any]
    """`UserBlock`s, one in each partition, in ascending order of users"""
    n_users: int
    n_items: int
    firsts: Int64Array
    """(n_blocks + 1,) first user of each block, and at the end n_users"""
    sizes: Int64Array
    """(n_blocks,) rows of each block"""
    type_names: tuple[str, ...] = ()
    merged_rows: int = 0
    cached: tuple[DataFrame, ...] = ()
    """The persisted frames behind `users` and `items`"""

    @property
    def n_rows(self) -> int:
        """Rows, repeated ones merged."""
        return int(self.sizes.sum())

    @property
    def n_blocks(self) -> int:
        """Blocks, each with at least one user."""
        return len(self.sizes)

    def __repr__(self) -> str:
        return (
            f"SparkInteractions({self.n_rows} rows, {self.n_users} users, {self.n_items} items, {self.n_blocks} blocks)"
        )

    @classmethod
    def from_frame(
        cls, frame: DataFrame, columns: Columns, *, duplicates: str = "error", blocks: int | None = None
    ) -> Self:
        """Blocks of the rows of `frame`.

        Parameters
        ----------
        frame, columns
            The data, and the names of the columns to use: ids are integers or text.
        duplicates
            Rows of one user and item (and type): "error", "last", "sum", "max" or "count", as in `Interactions.from_table`.
            Which row is the last is a question of order: that of files and of sorted DataFrames, not that of shuffled ones.
        blocks
            How many; None for the larger of the default parallelism and one per 2 million rows. Never more than users.
        """
        one_of("duplicates", duplicates, DUPLICATE_RULES)
        check_blocks(blocks)
        valued = columns.rating is not None or columns.weight is not None
        duplicates = rule_for_rows(duplicates, valued=valued)
        if duplicates == "count":
            check_countable(valued=valued)
        if duplicates in ("sum", "max") and not valued:
            raise DataError(
                f"duplicates={duplicates!r} needs a rating or weight column and the data has neither; use 'last'"
            )
        with described(frame.sparkSession.sparkContext, "rows to blocks of users"):
            rows = checked_rows(frame, columns, ordered=duplicates != "error")
            try:
                return cls._of_rows(rows, duplicates, blocks)
            finally:
                rows.unpersist()

    @classmethod
    def _of_rows(cls, rows: CheckedRows, duplicates: str, wanted: int | None) -> Self:
        session = rows.frame.sparkSession
        prepare_executors(session)
        counts = rows.frame.groupBy(sf.col("user").alias("id")).agg(sf.count(sf.lit(1)).alias("rows"))
        users = number_ids(counts, "user")
        items = number_ids(rows.frame.select(sf.col("item").alias("id")).distinct(), "item")
        ranges = partition_users(users, wanted or default_blocks(session.sparkContext, rows.n_rows))
        firsts, names = ranges.firsts, type_names(rows)
        layout = Layout(tuple(firsts.tolist()), items.count, names, duplicates)
        numbered = with_numbers(with_type_codes(rows.frame, names), ranges.users, items.frame).drop("user", "item")
        parts = partition_coded_rows(numbered, len(firsts) - 1)
        blocks = parts.mapPartitionsWithIndex(layout.build, preservesPartitioning=True)
        blocks = blocks.persist(StorageLevel.MEMORY_AND_DISK)
        sizes, cached = np.empty(0, np.int64), (users.cached, items.cached)
        found = cls(
            session, ranges.users, items.frame, blocks, users.count, items.count, firsts, sizes, names, cached=cached
        )
        return found._counted(duplicates)

    def _counted(self, duplicates: str) -> Self:
        """Computes the blocks and their sizes; repeated rows are an error where they must not be."""
        facts = self.blocks.map(lambda block: (len(block.data["indices"]), block.merged)).collect()
        merged = [one for _, one in facts]
        problem = next((one.problem for one in merged if one.problem), None)
        repeated = sum(one.rows for one in merged)
        if problem is None and repeated and duplicates == "error":
            example = next(one.example for one in merged if one.example is not None)
            user, item = (
                frame.where(sf.col("number") == number).first()["id"]
                for frame, number in zip((self.users, self.items), example, strict=True)
            )
            what = "user, item and type" if self.type_names else "user and item"
            problem = (
                f"{SOURCE}: each {what} must occur once, but {repeated} rows repeat others, for example one of user "
                f"{user!r} and item {item!r}; remove the repeats or choose a rule with duplicates='last', 'sum' or 'max'"
            )
        if problem is not None:
            self.unpersist()
            raise DataError(problem)
        return replace(self, sizes=np.array([size for size, _ in facts], np.int64), merged_rows=repeated)

    def unpersist(self) -> None:
        """Frees memory and disk in the cluster; the blocks can still be read, from the data they came from."""
        self.blocks.unpersist()
        for frame in self.cached:
            frame.unpersist()

    def collect(self) -> Interactions:
        """All rows on the driver, which must have the memory: as `Interactions.from_frame` makes them of the same rows."""
        blocks = sorted(self.blocks.collect(), key=lambda block: int(block.number))
        names = [name for name in blocks[0].data if name != "indptr"]
        columns: dict[str, Any] = {name: np.concatenate([block.data[name] for block in blocks]) for name in names}
        sizes = np.concatenate([np.diff(block.data["indptr"]) for block in blocks])
        return Interactions(
            IdMap(collect_ids(self.users)),
            IdMap(collect_ids(self.items)),
            np.concatenate([[0], np.cumsum(sizes)]),
            **columns,
            type_names=self.type_names,
            merged_rows=self.merged_rows,
        )


def check_blocks(blocks: object) -> None:
    """None, or an integer of at least 1."""
    if blocks is not None and (isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1):
        raise ParameterError(f"blocks must be an integer of at least 1, or None, got {blocks!r}")


def type_names(rows: CheckedRows) -> tuple[str, ...]:
    """The feedback types in order; an empty tuple for data without."""
    if not rows.has("type"):
        return ()
    found = sorted(row[0] for row in rows.frame.select("type").distinct().limit(MAX_TYPES + 1).collect())
    if len(found) > MAX_TYPES:
        raise DataError(f"{SOURCE}: there are more than {MAX_TYPES} feedback types; name the column that holds them")
    return tuple(found)


def collect_table(frame: DataFrame) -> pa.Table:
    """A DataFrame as an Arrow table on the driver."""
    if hasattr(frame, "toArrow"):  # Spark 4
        return frame.toArrow()
    batches = frame._collect_as_arrow()  # none at all where there are no rows
    return pa.Table.from_batches(batches, None if batches else to_arrow_schema(frame.schema))


def collect_ids(numbered: DataFrame) -> np.ndarray[Any, Any]:
    """The ids of a frame (id, number) in the order of their indices."""
    ids = collect_table(numbered.select("id", "number")).sort_by("number")["id"].to_numpy()
    return np.asarray(ids, np.int64 if ids.dtype.kind == "i" else object)


def with_numbers(rows: DataFrame, users: DataFrame, items: DataFrame, how: str = "inner") -> DataFrame:
    """`rows` with the columns user_number, block and item_number beside user and item."""
    known_users = users.select(sf.col("id").alias("user"), sf.col("number").alias("user_number"), "block")
    known_items = items.select(sf.col("id").alias("item"), sf.col("number").alias("item_number"))
    return rows.join(known_users, "user").join(known_items, "item", how)


def with_type_codes(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """The column `type` as indices in `names`."""
    if not names:
        return rows
    # by name, because the function itself takes no column for the second argument before Spark 4
    position = sf.call_function("array_position", sf.array(*map(sf.lit, names)), sf.col("type"))
    return rows.withColumn("type", (position - 1).cast("int"))


def partition_coded_rows(numbered: DataFrame, n_blocks: int) -> RDD[Any]:
    """Rows with indices, brought to their blocks as arrays user_codes, item_codes, ratings, ... and order."""
    renamed = {"user_number": "user_codes", "item_number": "item_codes", **_VALUES, ORDER: ORDER}
    present = {old: new for old, new in renamed.items() if old in numbered.columns}
    dtypes: dict[str, type[np.generic]] = {"user_codes": np.int64, "item_codes": np.int64, **_DTYPES, ORDER: np.int64}
    columns = [sf.col(old).alias(new) for old, new in present.items()]
    return partition_rows(numbered.select("block", *columns), n_blocks, {new: dtypes[new] for new in present.values()})


@dataclass(frozen=True)
class Layout:
    """What every task needs to make a block of its rows."""

    firsts: tuple[int, ...]
    n_items: int
    type_names: tuple[str, ...]
    duplicates: str

    def build(self, number: int, parts: Iterator[Arrays]) -> Iterator[UserBlock]:
        """The block of a partition."""
        (columns,) = parts  # also exhausts it: a worker whose input is left over is not used again
        first, last = self.firsts[number], self.firsts[number + 1]
        rows, merged = merge_rows(columns, first, last, self)
        names = ("ratings", "types", "weights", "timestamps")
        values = {name: array for name in names if (array := getattr(rows, name)) is not None}
        indptr = np.searchsorted(rows.user_codes, np.arange(last - first + 1))
        yield UserBlock(number, first, {"indptr": indptr, "indices": rows.item_codes, **values}, merged)


def merge_rows(columns: Arrays, first: int, last: int, layout: Layout) -> tuple[CodedColumns, Merged]:
    """The rows of the users first .. last - 1 in CSR order, with repeated ones merged."""
    values: dict[str, Any] = dict(columns)
    if (order := values.pop(ORDER, None)) is not None:
        by_order = np.argsort(order, kind="stable")
        values = {name: column[by_order] for name, column in values.items()}
    codes = (values.pop("user_codes") - first).astype(np.int32), values.pop("item_codes").astype(np.int32)
    ids = IdMap(np.arange(first, last)), IdMap(np.arange(layout.n_items))
    return _unique(CodedColumns(*ids, *codes, type_names=layout.type_names, **values), layout.duplicates)


def _unique(rows: CodedColumns, duplicates: str) -> tuple[CodedColumns, Merged]:
    try:
        kept, count = unique_rows(rows, "last" if duplicates == "error" else duplicates, str)
    except DataError as error:  # such as sums beyond the range of float32
        kept, _ = unique_rows(rows, "last", str)
        return kept, Merged(problem=f"{SOURCE}: {error}")
    if not count or duplicates != "error":
        return kept, Merged(count)
    cells, repeats = np.unique(rows.keys() // max(1, len(rows.type_names)), return_counts=True)
    user, item = divmod(int(cells[repeats.argmax()]), len(rows.items))
    return kept, Merged(count, (int(rows.users.ids[user]), item))
