"""An Evaluator for `CrossValidator` and its like: how well the scores of `transform` rank each user's rows.

Spark's own RankingEvaluator wants arrays of items; this one takes the rows as `transform` returns them, and gives what
`topnrank.evaluate` gives under the protocol "rated". For the whole catalog ask the model: `model.evaluate(test, ...)`.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._typing import Float32Array, IntArray
from topnrank.data.columns import to_numpy
from topnrank.data.feedback.policies import LIKED_FROM
from topnrank.data.frames import Columns, check_columns
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.evaluate import user_values
from topnrank.evaluation.labels import Labels
from topnrank.evaluation.metrics import ACCURACY, parse_metrics
from topnrank.evaluation.protocols import rank_rated
from topnrank.spark.data.columns import SOURCE, checked_rows, column_of

_SCHEMA = "total double, users bigint"


class RankingEvaluator(Evaluator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """The mean over users of a metric of their rows, ordered by score; ties count with their expected value.

    Parameters
    ----------
    metricName : such as "ndcg@10", "map", "auc": any metric of `topnrank.evaluate` but coverage, novelty and popularity.
    userCol, itemCol, labelCol, predictionCol : columns; the label is a rating or a weight.
    relevant : lowest label of a relevant row.
    """

    metricName = Param(Params._dummy(), "metricName", "such as ndcg@10", TypeConverters.toString)  # noqa: N815
    userCol = Param(Params._dummy(), "userCol", "column of user ids", TypeConverters.toString)  # noqa: N815
    itemCol = Param(Params._dummy(), "itemCol", "column of item ids", TypeConverters.toString)  # noqa: N815
    labelCol = Param(Params._dummy(), "labelCol", "column of ratings or weights", TypeConverters.toString)  # noqa: N815
    predictionCol = Param(Params._dummy(), "predictionCol", "column of scores", TypeConverters.toString)  # noqa: N815
    relevant = Param(Params._dummy(), "relevant", "lowest label of a relevant row", TypeConverters.toFloat)

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._setDefault(
            metricName="ndcg@10",
            userCol="user",
            itemCol="item",
            labelCol="rating",
            predictionCol="prediction",
            relevant=LIKED_FROM,
        )
        for name in values:
            if not self.hasParam(name):
                known = ", ".join(param.name for param in self.params)
                raise ParameterError(f"RankingEvaluator has no parameter {name!r}; its parameters: {known}")
        self._set(**values)
        self._metric()

    def _metric(self) -> str:
        name = str(self.getOrDefault("metricName"))
        (metric,) = parse_metrics(name)
        if metric.kind not in ACCURACY:
            raise ParameterError(
                f"RankingEvaluator: {name} needs the model: ask model.evaluate(test, metrics={name!r})"
            )
        return name

    def isLargerBetter(self) -> bool:  # noqa: N802 (Spark's name)
        """More is better, of all metrics here."""
        return True

    def _evaluate(self, dataset: DataFrame) -> float:
        names = ("userCol", "itemCol", "labelCol", "predictionCol")
        user, item, label, score = (self.getOrDefault(name) for name in names)
        columns = Columns(user=user, item=item, rating=label)
        check_columns(dataset.columns, asdict(columns), source=SOURCE)
        if score not in dataset.columns:
            raise DataError(f"{SOURCE}: no column {score!r} (given as predictionCol); call model.transform first")
        chosen = dataset.select(*(column_of(name) for name in (user, item, label, score))).persist()
        try:
            checked_rows(chosen, columns).unpersist()
            return self._mean(chosen.toDF("user", "item", "label", "score"))
        finally:
            chosen.unpersist()

    def _mean(self, rows: DataFrame) -> float:
        numbers = rows.select("user", sf.col("label").cast("double"), sf.col("score").cast("float"))
        highest = numbers.agg(sf.max("label")).first()
        assert highest is not None
        measure = Measure(self._metric(), float(self.getOrDefault("relevant")), float(highest[0]))
        found = numbers.repartition("user").mapInArrow(measure.run(), _SCHEMA).collect()
        users = sum(row["users"] for row in found)
        if not users:
            raise DataError(f"no row has a label of at least {self.getOrDefault('relevant'):g}; lower relevant")
        return float(math.fsum(row["total"] for row in found) / users)


@dataclass(frozen=True)
class Measure:
    """Inside tasks: the sum of a metric over the users of a partition, and their number."""

    metric: str
    relevant: float
    highest: float

    def run(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """What a task does with its batches."""

        def measured(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = [batch for batch in batches if batch.num_rows]
            total, users = self.of(pa.Table.from_batches(held)) if held else (0.0, 0)
            yield pa.record_batch({"total": [total], "users": [users]})

        return measured

    def of(self, table: pa.Table) -> tuple[float, int]:
        """The rows of some users, all of them."""
        codes = to_numpy(table["user"].combine_chunks().dictionary_encode().indices)
        order = np.argsort(codes, kind="stable")
        grades = to_numpy(table["label"])[order].astype(np.float64)
        scores = np.nan_to_num(to_numpy(table["score"])[order], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        counts = np.bincount(codes)
        gain, stop = np.exp2(grades) - 1.0, np.exp2(grades - self.highest) - np.exp2(-self.highest)
        labels = Labels(
            np.arange(len(counts)),
            np.concatenate([[0], np.cumsum(counts)]),
            np.arange(len(codes)),
            (grades >= self.relevant).astype(np.float64),
            gain,
            stop,
        )
        ranking = rank_rated(FixedScores(scores.astype(np.float32)), labels, parse_metrics(self.metric))
        values = user_values(ranking, parse_metrics(self.metric))[1][self.metric]
        defined = values[~np.isnan(values)]
        return float(defined.sum()), len(defined)


@dataclass(frozen=True, eq=False)
class FixedScores:
    """A ranker with a score for each row: item k is row k."""

    scores: Float32Array

    @property
    def fitted(self) -> Interactions:
        """The rows by index, without users: these are not asked for."""
        no_users, rows = IdMap(np.empty(0, np.int64)), IdMap(np.arange(len(self.scores)))
        return Interactions(no_users, rows, np.zeros(1, np.int64), np.empty(0, np.int32))

    def score_block(self, users: IntArray) -> Float32Array:
        """The scores of all rows for each user: a row has one user."""
        return np.tile(self.scores, (len(users), 1))

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The scores of rows."""
        return self.scores[items]
