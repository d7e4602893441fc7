"""The library as Models of `pyspark.ml`: `TopNRankModel` and one for each other class, made from the local classes.

    model = topnrank.spark.TopNRank(factors=20, userCol="userId", itemCol="movieId").fit(ratings)
    model.recommendForAllUsers(10)
    model.write().overwrite().save("hdfs:///models/films")

The folder that is saved holds the library's own model file: `topnrank.load` opens it without Spark.
"""

import os
from typing import Any, Self, Unpack

import numpy as np
import pyarrow as pa
from pyspark.ml import Model as SparkModel
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from topnrank.errors import NotFittedError, ParameterError
from topnrank.evaluation.result import Evaluation
from topnrank.models.base import Model
from topnrank.models.registry import SPARK_MODELS
from topnrank.models.serving.filters import SharedOptions
from topnrank.spark.jobs.distributed_model import DistributedModel
from topnrank.spark.jobs.evaluate import EvaluationKeywords, EvaluationOptions, evaluate_blocks
from topnrank.spark.jobs.recommend import recommend_blocks
from topnrank.spark.jobs.score import score_rows
from topnrank.spark.jobs.tables import frame_of_tables, with_ids
from topnrank.spark.ml.files import ParamsReader, ParamsWriter, open_model
from topnrank.spark.ml.params import NOT_ON_SPARK, SHARED, LocalParams, accessors, local_params, shared_params
from topnrank.spark.session.session import require_classic


class RankingModel(SparkModel, LocalParams, MLReadable, MLWritable):  # type: ignore[misc]
    """A fitted model in the cluster; base of all."""

    def __init__(self, distributed: DistributedModel | None = None) -> None:
        super().__init__()
        self._distributed = distributed

    @property
    def distributed(self) -> DistributedModel:
        """The parts of the model in the cluster."""
        if self._distributed is None:
            raise NotFittedError(f"this {type(self).__name__} is empty; use fit, load or from_local")
        return self._distributed

    # -- use ----------------------------------------------------------------------------------------------------------

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """Adds the scores of each row's user and item; coldStartStrategy decides what unknown ones get."""
        names = {"user": "userCol", "item": "itemCol", "output": "predictionCol"}
        drop = self.getOrDefault("coldStartStrategy") == "drop"
        columns = {role: self.getOrDefault(param) for role, param in names.items()}
        return score_rows(self.distributed, dataset, **columns, drop=drop)

    def recommend(self, users: DataFrame | None = None, *, n: int = 10, **options: Unpack[SharedOptions]) -> DataFrame:
        """The n best items for all users, or for those of a DataFrame: a row for each, with score and rank (1 = best).

        Options are those of `topnrank.TopNRank.recommend`.
        """
        user, item = self.getOrDefault("userCol"), self.getOrDefault("itemCol")
        lists = recommend_blocks(self.distributed, users, n=n, user_column=user, **options)
        return lists.withColumnsRenamed({"user": user, "item": item})

    def recommendForAllUsers(self, numItems: int, *, exclude_seen: bool = True) -> DataFrame:  # noqa: N802
        """The best items for each user: a column of users, and `recommendations`, an array of (item, rating), best first.

        As in Spark's ALS, but for the items a user was trained on: they are left out, unless exclude_seen=False.
        """
        return self._grouped(recommend_blocks(self.distributed, n=numItems, exclude_seen=exclude_seen))

    def recommendForUserSubset(  # noqa: N802
        self, dataset: DataFrame, numItems: int, *, exclude_seen: bool = True
    ) -> DataFrame:
        """As `recommendForAllUsers`, for the users of a DataFrame; those the model does not know are left out."""
        name = self.getOrDefault("userCol")
        lists = recommend_blocks(
            self.distributed, dataset, n=numItems, user_column=name, exclude_seen=exclude_seen, unknown="skip"
        )
        return self._grouped(lists)

    def _grouped(self, lists: DataFrame) -> DataFrame:
        row = sf.struct("rank", sf.col("item").alias(self.getOrDefault("itemCol")), sf.col("score").alias("rating"))
        ranked = lists.groupBy(sf.col("user").alias(self.getOrDefault("userCol"))).agg(
            sf.sort_array(sf.collect_list(row)).alias("recommendations")
        )
        return ranked.withColumn("recommendations", sf.transform("recommendations", lambda one: one.dropFields("rank")))

    def evaluate(self, test: DataFrame, **options: Unpack[EvaluationKeywords]) -> Evaluation:
        """How well the model ranks held-out rows: `topnrank.evaluate` as a Spark job, with its options.

        The result has the values of single users with per_user=True only.
        """
        question = EvaluationOptions(**{"duplicates": self.getOrDefault("duplicates"), **options})
        return evaluate_blocks(self.distributed, test, self.columns(test.columns), question)

    # -- vectors --------------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Length of the vectors."""
        return int(self._item_factors().shape[1])

    @property
    def itemFactors(self) -> DataFrame:  # noqa: N802
        """Item vectors: id, features. A score is the product of two vectors plus the item's bias."""
        vectors, known = self._item_factors(), self.distributed
        parts = known.session.sparkContext.parallelize([_vectors(0, vectors)], 1)
        return with_ids(frame_of_tables(known.session, parts, _VECTORS), "id", known.items).select("id", "features")

    @property
    def userFactors(self) -> DataFrame:  # noqa: N802
        """User vectors: id, features; with user_representation="history" the sums over the users' items."""
        self._item_factors()
        known = self.distributed
        parts = known.blocks.map(lambda block: _vectors(block.first, block.arrays["user_factors"]))
        return with_ids(frame_of_tables(known.session, parts, _VECTORS), "id", known.users).select("id", "features")

    def _item_factors(self) -> np.ndarray[Any, Any]:
        arrays = self.distributed.item_parameters.arrays
        if "item_factors" not in arrays:
            raise ParameterError(f"{type(self).__name__} has no vectors")
        return arrays["item_factors"]

    def unpersist(self) -> None:
        """Frees the model's memory and disk in the cluster."""
        self.distributed.unpersist()

    # -- files and the library ----------------------------------------------------------------------------------------

    def to_local(self) -> Model:
        """The model of the library, on the driver, which must have the memory: ids and all."""
        return self.distributed.to_local()

    def file_content(self) -> Model:
        """The model to write to the file."""
        return self.to_local()

    @classmethod
    def from_local(cls, model: Model | str | os.PathLike[str], session: SparkSession | None = None) -> Self:
        """A model of the library, or the file of one on any file system that Spark knows, as a model in the cluster."""
        from topnrank.spark.session.session import get_session

        session = require_classic(session or get_session())
        local = model if isinstance(model, Model) else open_model(session, os.fspath(model))
        if type(local) is not cls.local_class:
            raise ParameterError(
                f"{cls.__name__}.from_local: the model is a {type(local).__name__}; use {type(local).__name__}Model"
            )
        made = cls(DistributedModel.of_local(local, session))
        given = {name: value for name, value in local.get_params().items() if name not in NOT_ON_SPARK}
        made._set(**given)
        return made

    @classmethod
    def opened(cls, session: SparkSession, path: str) -> Self:
        """The model whose file is at `path`."""
        return cls.from_local(path, session)

    def write(self) -> ParamsWriter:
        """The writer of this model: `write().overwrite().save(path)`."""
        return ParamsWriter(self)

    @classmethod
    def read(cls) -> ParamsReader:
        """The reader of this class."""
        return ParamsReader(cls)


_VECTORS = "id bigint, features array<float>"


def _vectors(first: int, vectors: np.ndarray[Any, Any]) -> pa.Table:
    """Indices from `first` on, and their vectors."""
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
    ends = pa.array(np.arange(len(vectors) + 1, dtype=np.int32) * vectors.shape[1])
    return pa.table({"id": np.arange(first, first + len(vectors)), "features": pa.ListArray.from_arrays(ends, flat)})


def _model_class(kind: type[Model]) -> type[RankingModel]:
    """The class of fitted models of a local class."""
    body = {
        "__doc__": f"A fitted `topnrank.{kind.__name__}` in the cluster: see `RankingModel`.",
        "__module__": __name__,
        "local_class": kind,
        **shared_params(),
        **local_params(kind),
        **accessors(list(SHARED)),
    }
    return type(f"{kind.__name__}Model", (RankingModel,), body)


MODEL_CLASSES: dict[type[Model], type[RankingModel]] = {kind: _model_class(kind) for kind in SPARK_MODELS.values()}
globals().update({made.__name__: made for made in MODEL_CLASSES.values()})
