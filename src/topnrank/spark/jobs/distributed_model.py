"""A fitted model in the cluster: what belongs to items is broadcast, what belongs to users is in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD, Broadcast, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topnrank._typing import FloatArray, IdArray, Int32Array, Int64Array
from topnrank.data.ids import IdMap
from topnrank.models.base import FitInfo, Fitted, Model, rows_belong_to
from topnrank.models.factor.fitted import history_sums
from topnrank.models.linear.neighbors import LIKED, NEIGHBORS
from topnrank.scorers import Scorer
from topnrank.spark.data.interactions import SparkInteractions, collect_ids
from topnrank.spark.jobs.prepare import PreparedBlock
from topnrank.spark.jobs.tables import task_threads
from topnrank.spark.session.shipping import prepare_executors


@dataclass(frozen=True, eq=False)
class ModelBlock:
    """What scoring needs of the users `first` to `first + n_users - 1`."""

    number: int
    first: int
    indptr: Int64Array
    """With `indices`: the items the users were trained on"""
    indices: Int32Array
    arrays: dict[str, FloatArray]
    """The fitted arrays whose rows belong to users or to their training rows"""

    @property
    def n_users(self) -> int:
        """Users of the block."""
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class ItemParameters:
    """A fitted model without what belongs to users; small enough for every worker."""

    model: Model
    """Hyper-parameters only"""
    arrays: dict[str, FloatArray]
    """The fitted arrays whose rows belong to items"""
    info: FitInfo
    n_items: int
    whole: Model | None = None
    """The fitted model, with indices for ids, where scores need more than a user's own rows"""

    @classmethod
    def of(cls, model: Model) -> "ItemParameters":
        """The items' part of a fitted model."""
        fitted = model.fitted
        arrays = {
            name: array for name, array in fitted.arrays.items() if rows_belong_to(name) in ("item", "link", "scalar")
        }
        # random scores, and EASE's kernel of users, need numbers of other users
        whole = None
        if model.name == "random" or "user_kernel" in fitted.arrays:
            ids = (IdMap(np.arange(len(fitted.users))), IdMap(np.arange(len(fitted.items))))
            whole = unfitted(model)
            whole._fitted = Fitted(*ids, fitted.indptr, fitted.indices, fitted.arrays, fitted.info)
        return cls(unfitted(model), arrays, fitted.info, len(fitted.items), whole)


def unfitted(model: Model) -> Model:
    """A model with the same hyper-parameters."""
    return type(model)(**model.get_params())


def block_model(item_parameters: ItemParameters, block: ModelBlock) -> Model:
    """Inside a task: a model of the library for the users of a block; the ids are the indices of users and items."""
    if item_parameters.whole is not None:
        return item_parameters.whole
    model = unfitted(item_parameters.model)
    users, items = np.arange(block.first, block.first + block.n_users), np.arange(item_parameters.n_items)
    arrays = {**item_parameters.arrays, **block.arrays}
    model._fitted = Fitted(IdMap(users), IdMap(items), block.indptr, block.indices, arrays, item_parameters.info)
    return model


def model_block(
    item_parameters: ItemParameters, block: PreparedBlock, scorer: Scorer, vectors: FloatArray | None
) -> ModelBlock:
    """Inside a task: what scoring needs of a block of training rows.

    `vectors` are the users'; without them users are histories, whose sums `scorer` computes from the items' vectors.
    """
    rows, arrays = block.rows, dict(block.arrays)
    if vectors is None:
        with task_threads():
            vectors = history_sums(scorer, item_parameters.arrays, rows)
    arrays["user_factors"] = vectors
    if NEIGHBORS in item_parameters.arrays:
        arrays[LIKED] = (rows.gains > 0).astype(np.uint8)
    return ModelBlock(block.number, block.first, rows.indptr, rows.items, arrays)


@dataclass(frozen=True, eq=False)
class DistributedModel:
    """A fitted model in the cluster."""

    session: SparkSession
    item_parameters: ItemParameters
    users: DataFrame
    """id, number, block"""
    items: DataFrame
    """id, number"""
    blocks: RDD[Any]
    """`ModelBlock`s, one in each partition"""
    firsts: Int64Array
    """(n_blocks + 1,) the first user of each block, and at the end the number of users"""
    shared: "Broadcast[ItemParameters]" = field(repr=False)
    """`item_parameters`, sent to every worker once"""
    local: Model | None = field(default=None, repr=False)
    """The same model on the driver, where it is there anyway"""
    cached: tuple[DataFrame, ...] = field(default=(), repr=False)
    """The persisted frames behind `users` and `items`"""

    @property
    def n_users(self) -> int:
        """Users the model knows."""
        return int(self.firsts[-1])

    @property
    def n_items(self) -> int:
        """Items the model knows."""
        return self.item_parameters.n_items

    @property
    def n_blocks(self) -> int:
        """Blocks of users."""
        return len(self.firsts) - 1

    @classmethod
    def of_blocks(
        cls,
        item_parameters: ItemParameters,
        data: SparkInteractions,
        blocks: "RDD[PreparedBlock]",
        scorer: Scorer,
        vectors: "RDD[Any] | None" = None,
    ) -> "DistributedModel":
        """A model trained on `data`, prepared as `blocks`; `vectors` are the users', unless they come from histories."""
        shared = data.session.sparkContext.broadcast(item_parameters)
        if vectors is None:
            made = blocks.map(lambda block: model_block(shared.value, block, scorer, None))
        else:
            made = blocks.zip(vectors).map(lambda both: model_block(shared.value, both[0], scorer, both[1]))
        made = made.persist(StorageLevel.MEMORY_AND_DISK)
        return cls(data.session, item_parameters, data.users, data.items, made, data.firsts, shared, cached=data.cached)

    @classmethod
    def of_local(cls, model: Model, session: SparkSession, like: SparkInteractions | None = None) -> "DistributedModel":
        """A model of the library in blocks: those of the training data, or as many as there are cores."""
        prepare_executors(session)
        fitted, item_parameters = model.fitted, ItemParameters.of(model)
        if like is None:
            n_blocks = max(1, min(session.sparkContext.defaultParallelism, len(fitted.users)))
            firsts = np.arange(n_blocks + 1) * len(fitted.users) // n_blocks
            block = np.repeat(np.arange(n_blocks, dtype=np.int32), np.diff(firsts))
            users, items = id_frame(session, fitted.users.ids, block=block), id_frame(session, fitted.items.ids)
        else:
            users, items, firsts = like.users, like.items, like.firsts
        parts = list(_partition_users(fitted, firsts))
        blocks = session.sparkContext.parallelize(parts, len(parts)).persist(StorageLevel.MEMORY_AND_DISK)
        shared = session.sparkContext.broadcast(item_parameters)
        return cls(session, item_parameters, users, items, blocks, firsts, shared, model, like.cached if like else ())

    def to_local(self) -> Model:
        """The model of the library, on the driver."""
        if self.local is not None:
            return self.local
        blocks = sorted(self.blocks.collect(), key=lambda block: int(block.number))
        sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
        own = {name: np.concatenate([block.arrays[name] for block in blocks]) for name in blocks[0].arrays}
        model = unfitted(self.item_parameters.model)
        model._fitted = Fitted(
            IdMap(collect_ids(self.users)),
            IdMap(collect_ids(self.items)),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([block.indices for block in blocks]),
            {**self.item_parameters.arrays, **own},
            self.item_parameters.info,
        )
        return model

    def unpersist(self) -> None:
        """Frees memory and disk in the cluster."""
        self.blocks.unpersist()
        self.shared.unpersist()
        for frame in self.cached:
            frame.unpersist()


def _partition_users(fitted: Fitted, firsts: Int64Array) -> Iterator[ModelBlock]:
    """The users' part of a fitted model, by block."""
    for number, (first, last) in enumerate(zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)):
        indptr = fitted.indptr[first : last + 1]
        rows = {"user": slice(first, last), "seen": slice(int(indptr[0]), int(indptr[-1]))}
        arrays = {
            name: np.ascontiguousarray(array[rows[rows_belong_to(name)]])
            for name, array in fitted.arrays.items()
            if rows_belong_to(name) in rows and name != "user_kernel"
        }
        yield ModelBlock(number, first, indptr - indptr[0], np.array(fitted.indices[rows["seen"]]), arrays)


def id_frame(session: SparkSession, ids: IdArray, **columns: Any) -> DataFrame:
    """Ids in order, with their indices and further columns."""
    kind = pa.int64() if ids.dtype.kind in "iu" else pa.string()
    table = pa.table({"id": pa.array(ids, kind), "number": np.arange(len(ids), dtype=np.int64), **columns})
    return frame_of(session, table)


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame; before Spark 4, which takes it as it is, row by row."""
    if hasattr(DataFrame, "toArrow"):  # came with Spark 4, as did tables in createDataFrame
        return session.createDataFrame(table)
    # not by way of pandas, from which Spark 3.5 cannot tell what an empty column holds
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return session.createDataFrame(list(rows), from_arrow_schema(table.schema), verifySchema=False)
