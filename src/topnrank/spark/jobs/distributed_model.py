"""A fitted model that lives in the cluster: what belongs to items is broadcast, what belongs to users lies in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD, Broadcast, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from topnrank._typing import FloatArray, IdArray, Int32Array, Int64Array
from topnrank.data.feedback.by_name import feedback_from_dict
from topnrank.data.ids import IdMap
from topnrank.models.base import Fitted, Model
from topnrank.models.factor.fitted import history_sums, row_arrays
from topnrank.models.factor.model import FactorModel
from topnrank.models.factor.prepare import Prepared, prepare
from topnrank.models.linear.neighbors import LIKED, NEIGHBORS
from topnrank.scorers import RatingResiduals, TypeChannels
from topnrank.scorers.base import NO_ROWS
from topnrank.spark.data.interactions import SparkInteractions, UserBlock, collect_ids
from topnrank.spark.jobs.tables import task_threads

USER, SEEN = "user_", "seen_"
"""How the names of arrays begin whose rows belong to users, and to the users' training rows."""


@dataclass(frozen=True, eq=False)
class ModelBlock:
    """What scoring needs of the users `first` to `first + n_users - 1`."""

    number: int
    first: int
    indptr: Int64Array
    """With `indices`: the items the users were trained on"""
    indices: Int32Array
    arrays: dict[str, FloatArray]
    """The users' rows of the item_parameters arrays"""

    @property
    def n_users(self) -> int:
        """Users of the block."""
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class ItemParameters:
    """What training leaves, but for what belongs to users; small enough for every worker."""

    model: Model
    """Hyper-parameters only"""
    arrays: dict[str, FloatArray]
    """Rows belong to items"""
    facts: dict[str, Any]
    n_items: int
    whole: Model | None = None
    """The fitted model, with numbers for ids, where scores need more than a user's own rows"""

    @classmethod
    def of(cls, model: Model) -> "ItemParameters":
        """The items' part of a fitted model."""
        fitted = model.fitted
        arrays = {name: array for name, array in fitted.arrays.items() if not name.startswith((USER, SEEN))}
        return cls(unfitted(model), arrays, fitted.facts, len(fitted.items), None if splits(model) else numbered(model))

    def settled(self) -> FactorModel:
        """The model as it was trained, without users."""
        model = unfitted(self.model)
        assert isinstance(model, FactorModel)
        nobody = IdMap(np.empty(0, np.int64)), IdMap(np.arange(self.n_items))
        model._fitted = Fitted(*nobody, np.zeros(1, np.int64), np.empty(0, np.int32), self.arrays, self.facts)
        return model.settled()


def unfitted(model: Model) -> Model:
    """A model with the same hyper-parameters."""
    return type(model)(**model.get_params())


def numbered(model: Model) -> Model:
    """A fitted model whose ids are the numbers of users and items."""
    fitted, copy = model.fitted, unfitted(model)
    users, items = (IdMap(np.arange(len(ids))) for ids in (fitted.users, fitted.items))
    copy._fitted = Fitted(users, items, fitted.indptr, fitted.indices, fitted.arrays, fitted.facts)
    return copy


def splits(model: Model) -> bool:
    """Whether a user's scores need no number of other users: all models but random ones and EASE's kernel of users."""
    return model.name != "random" and "user_kernel" not in model.fitted.arrays


def block_model(item_parameters: ItemParameters, block: ModelBlock) -> Model:
    """Inside a task: a model of the library for the users of a block; the ids are the numbers of users and items."""
    if item_parameters.whole is not None:
        return item_parameters.whole
    model = unfitted(item_parameters.model)
    users = IdMap(np.arange(block.first, block.first + block.n_users))
    arrays = {**item_parameters.arrays, **block.arrays}
    model._fitted = Fitted(
        users, IdMap(np.arange(item_parameters.n_items)), block.indptr, block.indices, arrays, item_parameters.facts
    )
    return model


def model_block(
    item_parameters: ItemParameters, block: UserBlock, type_names: tuple[str, ...], factors: FloatArray | None = None
) -> ModelBlock:
    """Inside a task: what scoring needs of training rows, which are weighted as in training.

    `factors` are the users' vectors; those of user_representation="history" are computed here, from the vectors of their items.
    """
    model, facts = item_parameters.settled(), item_parameters.facts
    data = block.interactions(item_parameters.n_items, type_names)
    policy = feedback_from_dict(facts["feedback"]) if "feedback" in facts else model.policy()
    earlier = Prepared(data, NO_ROWS, _residuals(item_parameters), {})
    prepared = prepare(data, policy, model.selection(), strict=False, earlier=earlier)
    arrays: dict[str, FloatArray] = {} if factors is None else {"user_factors": factors}
    if prepared.residuals is not None:
        with task_threads():
            arrays["user_factors"] = history_sums(model, item_parameters.arrays, prepared.rows)
    arrays |= row_arrays(model, prepared)
    if NEIGHBORS in item_parameters.arrays:
        arrays[LIKED] = (prepared.rows.gains > 0).astype(np.uint8)
    return ModelBlock(block.number, block.first, prepared.data.indptr, prepared.data.indices, arrays)


def _residuals(item_parameters: ItemParameters) -> RatingResiduals | TypeChannels | None:
    """How histories know their rows, as it was item_parameters."""
    if (weights := item_parameters.facts.get("type_weights")) is not None:
        return TypeChannels(tuple(weights))
    if "item_offsets" not in item_parameters.arrays:
        return None
    offsets = item_parameters.arrays["item_offsets"].astype(np.float32, copy=False)
    return RatingResiduals(offsets, float(item_parameters.facts["residual_mean"]))


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
    """(n_blocks + 1,) the first user of each block, and in the end the number of users"""
    shared: "Broadcast[ItemParameters]" = field(repr=False)
    """`item_parameters`, sent to every worker once"""
    local: Model | None = field(default=None, repr=False)
    """The same model on the driver, where it is there anyway"""
    cached: tuple[DataFrame, ...] = field(default=(), repr=False)
    """What `users` and `items` are read from"""

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
    def of_rows(
        cls, item_parameters: ItemParameters, data: SparkInteractions, factors: RDD[Any] | None = None
    ) -> "DistributedModel":
        """A model trained on `data`; `factors` has the users' vectors of each block, unless they come from histories."""
        names = data.type_names
        shared = data.session.sparkContext.broadcast(item_parameters)
        if factors is None:
            blocks = data.blocks.map(lambda block: model_block(shared.value, block, names))
        else:
            blocks = data.blocks.zip(factors).map(lambda both: model_block(shared.value, both[0], names, both[1]))
        blocks = blocks.persist(StorageLevel.MEMORY_AND_DISK)
        return cls(
            data.session, item_parameters, data.users, data.items, blocks, data.firsts, shared, cached=data.cached
        )

    @classmethod
    def of_local(cls, model: Model, session: SparkSession, like: SparkInteractions | None = None) -> "DistributedModel":
        """A model of the library, cut into blocks: those of the training data, or as many as there are cores."""
        fitted, item_parameters = model.fitted, ItemParameters.of(model)
        if like is None:
            n_blocks = max(1, min(session.sparkContext.defaultParallelism, len(fitted.users)))
            firsts = np.arange(n_blocks + 1) * len(fitted.users) // n_blocks
            block = np.repeat(np.arange(n_blocks, dtype=np.int32), np.diff(firsts))
            users, items = id_frame(session, fitted.users.ids, block=block), id_frame(session, fitted.items.ids)
        else:
            users, items, firsts = like.users, like.items, like.firsts
        parts = list(_cut(fitted, firsts))
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
            self.item_parameters.facts,
        )
        return model

    def unpersist(self) -> None:
        """Lets go of memory and disk in the cluster."""
        self.blocks.unpersist()
        self.shared.unpersist()
        for frame in self.cached:
            frame.unpersist()


def _cut(fitted: Fitted, firsts: Int64Array) -> Iterator[ModelBlock]:
    """The users' part of a fitted model, by block."""
    sides = {USER: np.arange(len(fitted.users) + 1), SEEN: fitted.indptr}
    for number, (first, last) in enumerate(zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)):
        arrays = {
            name: np.ascontiguousarray(array[rows[first] : rows[last]])
            for begin, rows in sides.items()
            for name, array in fitted.arrays.items()
            if name.startswith(begin) and name != "user_kernel"
        }
        indptr = fitted.indptr[first : last + 1]
        indices = np.array(fitted.indices[indptr[0] : indptr[-1]])
        yield ModelBlock(number, first, indptr - indptr[0], indices, arrays)


def id_frame(session: SparkSession, ids: IdArray, **columns: Any) -> DataFrame:
    """Ids in order, with their numbers and further columns."""
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
