"""Models of the library as Estimators of `pyspark.ml`: `TopNRank` and one for each other class, made from the local classes.

Parameters are those of the local class, under the same names, and those of `params.SHARED`.
"""

from typing import Any, Self

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from topnrank.errors import DataError
from topnrank.models.base import Model
from topnrank.models.registry import SPARK_MODELS
from topnrank.spark.data.columns import SOURCE, column_of
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.jobs.train import HeldOut, train_on_blocks
from topnrank.spark.ml.files import ParamsReader, ParamsWriter
from topnrank.spark.ml.models import MODEL_CLASSES, RankingModel
from topnrank.spark.ml.params import SHARED, LocalParams, accessors, local_params, shared_params


class RankingEstimator(Estimator, LocalParams, MLReadable, MLWritable):  # type: ignore[misc]
    """Base of all Estimators."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.set_checked(values)

    def _fit(self, dataset: DataFrame) -> RankingModel:
        """Trains on the rows of a DataFrame, which never come to the driver as a whole, unless the model says so."""
        local, columns = self.local_model(), self.columns(dataset.columns)
        duplicates, blocks = self.getOrDefault("duplicates"), self.getOrDefault("numBlocks")
        given, validation, indicator = dataset, None, self.getOrDefault("validationIndicatorCol")
        if indicator is not None:
            if indicator not in dataset.columns:
                raise DataError(f"{SOURCE}: no column {indicator!r} (given as validationIndicatorCol)")
            dataset = given = dataset.persist()  # read once: a DataFrame may give other rows each time
            held_out = sf.coalesce(column_of(indicator).cast("boolean"), sf.lit(False))
            validation, dataset = HeldOut(given.where(held_out), columns, duplicates), given.where(~held_out)
        data = SparkInteractions.from_frame(dataset, columns, duplicates=duplicates, blocks=blocks)
        distributed = train_on_blocks(
            local,
            data,
            self.getOrDefault("checkpointDir"),
            validation=validation,
            metric=self.getOrDefault("validationMetric"),
            patience=self.getOrDefault("patience"),
        )
        distributed.blocks.count()  # computed now, because the training rows are let go
        data.blocks.unpersist()
        if validation is not None:
            given.unpersist()
        model: RankingModel = self._copyValues(MODEL_CLASSES[self.local_class](distributed))
        return model

    def file_content(self) -> None:
        """Nothing but metadata."""

    @classmethod
    def opened(cls, session: SparkSession, path: str) -> Self:
        """An estimator with defaults."""
        return cls()

    def write(self) -> ParamsWriter:
        """The writer of this estimator."""
        return ParamsWriter(self)

    @classmethod
    def read(cls) -> ParamsReader:
        """The reader of this class."""
        return ParamsReader(cls)


def _estimator_class(kind: type[Model]) -> type[RankingEstimator]:
    """The Estimator of a local class."""
    body = {
        "__doc__": f"{kind.__doc__}\n\n    On Spark: see `RankingEstimator`; the fitted model is a `{kind.__name__}Model`.",
        "__module__": __name__,
        "local_class": kind,
        **shared_params(),
        **local_params(kind),
        **accessors(list(SHARED)),
    }
    return type(kind.__name__, (RankingEstimator,), body)


ESTIMATOR_CLASSES: dict[type[Model], type[RankingEstimator]] = {
    kind: _estimator_class(kind) for kind in SPARK_MODELS.values()
}
globals().update({made.__name__: made for made in ESTIMATOR_CLASSES.values()})
