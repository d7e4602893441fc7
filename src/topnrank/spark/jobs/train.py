"""From blocks of users to a model in the cluster, by the training run of all engines (`models.factor.run`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark import RDD
from pyspark.sql import DataFrame

from topnrank._checks import require_integer
from topnrank._typing import FloatArray
from topnrank.data.feedback.by_name import feedback_from
from topnrank.data.feedback.liked import Relevant, likes_of_counts
from topnrank.data.feedback.policies import Centered
from topnrank.data.frames import Columns
from topnrank.engines import Engine, Problem, State
from topnrank.errors import ParameterError
from topnrank.evaluation.metrics import parse_metrics
from topnrank.models.base import Model
from topnrank.models.factor.fitted import served_parameters
from topnrank.models.factor.model import FactorModel
from topnrank.models.factor.recipe import Recipe
from topnrank.models.factor.run import (
    RunOptions,
    TrainingData,
    Validation,
    all_relevant,
    check_defined,
    run,
)
from topnrank.models.linear.neighbors import NEIGHBORS, WEIGHTS
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.topnrank.model import TopNRank
from topnrank.scorers import Parameters, RatingResiduals
from topnrank.scorers.base import NO_ROWS
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.engine.engine import SparkEngine
from topnrank.spark.engine.item_store import distribute
from topnrank.spark.engine.tasks import TrainingBlock
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, unfitted
from topnrank.spark.jobs.evaluate import EvaluationOptions, HeldOutRows, evaluate_rows
from topnrank.spark.jobs.order import train_order
from topnrank.spark.jobs.popularity import item_popularity_of_blocks
from topnrank.spark.jobs.prepare import DataCounts, PreparedBlocks, is_local, prepare_blocks
from topnrank.spark.session.session import described
from topnrank.training import Callback


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows for early stopping, as a DataFrame."""

    frame: DataFrame
    columns: Columns
    duplicates: str = "error"


def train_on_blocks(
    local: Model,
    data: SparkInteractions,
    checkpoint: str | None = None,
    *,
    validation: HeldOut | None = None,
    metric: str = "ndcg@10",
    patience: int = 10,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
) -> DistributedModel:
    """`local`, trained on `data`, whose rows stay in the cluster; the other arguments are those of `FactorModel.fit`.

    Models of order are summed in the cluster (`spark.jobs.order`). Other models in closed form (EASE, NeighborRidge,
    ItemMean, Popularity, Random), and feedback that looks at all rows at once (Grades, Relevance, ConversionRate,
    ItemCount, Recency), are for the driver, which collects the rows for them; factor models are trained in the cluster
    even so. With validation the driver keeps the parameters of the best round.
    """
    if not isinstance(local, FactorModel):
        if validation is not None:
            raise ParameterError(f"{type(local).__name__} is not trained in rounds: leave the validation rows out")
        if isinstance(local, OrderedModel) and (trained := train_order(local, data)) is not None:
            return trained
        return DistributedModel.of_local(local.fit(data.collect()), data.session, like=data)
    options = RunOptions(checkpoint, progress, callbacks)
    sample = data.blocks.first().interactions(data.n_items, data.type_names)
    found = DataCounts.of(data)
    recipe = _with_likes_of_all(local.resolve(sample), local, found, typed=bool(data.type_names))
    policy = feedback_from(recipe.feedback, sample)
    if isinstance(policy, Centered) and policy.unit is None and found.ratings is not None:
        policy = Centered(found.ratings.unit)
    if not is_local(policy):
        local = type(local)(**local.get_params() | {"engine": "spark"})
        held_out = None
        if validation is not None:
            held = SparkInteractions.from_frame(validation.frame, validation.columns, duplicates=validation.duplicates)
            held_out = held.collect()
            held.unpersist()
        stopping: dict[str, Any] = {"validation": held_out, "metric": metric, "patience": patience}
        fitted = local.fit(data.collect(), **stopping, **vars(options))
        return DistributedModel.of_local(fitted, data.session, like=data)
    parse_metrics(metric)  # refused even where nothing is validated
    require_integer("fit.patience", patience, 1)
    with described(data.session.sparkContext, "training lists"):
        prepared = prepare_blocks(data, policy, recipe, found)
        if recipe.popularity:
            prepared = prepared.with_popularity(item_popularity_of_blocks(data))
    try:
        return _Training(local, recipe, data, prepared).run(validation, metric, patience, options)
    finally:
        prepared.unpersist()


def _with_likes_of_all(recipe: Recipe, local: FactorModel, found: DataCounts, *, typed: bool) -> Recipe:
    """The recipe, where it takes likes by the scale, with the rule for the ratings or weights of all blocks."""
    if recipe.task != "catalog" or not isinstance(local, TopNRank) or local.feedback is not None:
        return recipe
    policy = likes_of_counts(found.ratings, None if typed else found.weights)
    return replace(recipe, feedback=policy) if policy is not None or found.weights is not None else recipe


@dataclass(frozen=True)
class _Training:
    """A training on blocks that are prepared."""

    local: FactorModel
    recipe: Recipe
    data: SparkInteractions
    prepared: PreparedBlocks

    def run(self, validation: HeldOut | None, metric: str, patience: int, options: RunOptions) -> DistributedModel:
        """Trains, and makes the model."""
        data, prepared = self.data, self.prepared
        engines: list[SparkEngine] = []

        def make_engine(problem: Problem, state: State) -> Engine:
            lists = prepared.blocks.map(lambda block: TrainingBlock(block.first, block.rows))
            engines.append(SparkEngine(problem, state, data.session, lists))
            return engines[0]

        sizes = NO_ROWS._replace(indptr=np.concatenate([[0], np.cumsum(prepared.sizes)]))
        training = TrainingData(
            sizes,
            data.n_users,
            data.n_items,
            prepared.frozen,
            prepared.info,
            lambda: prepared.info.fingerprint,
            make_engine,
        )
        rows = None
        if validation is not None:
            rule: Relevant = prepared.info.liked or "auto"
            wanted = EvaluationOptions(self.recipe.task, metric, rule, duplicates=validation.duplicates)
            rows = HeldOutRows.of(data, validation.frame, validation.columns, wanted)
        try:
            early = None if rows is None else self._validation(rows, metric, patience)
            _, best, info = run(self.local, self.recipe, training, early, options)
            (spark_engine,) = engines
            items, vectors = spark_engine.item_state().parameters, spark_engine.user_vectors()
            if best is not None:
                items, vectors = best, self._scattered(best)
            model = self._model(items, vectors, replace(info, rows=data.n_rows))
            model.blocks.count()  # computed now, because what it is made of is let go
            return model
        finally:
            for made in engines:
                made.close()
            if rows is not None:
                rows.unpersist()

    def _model(self, items: Parameters, vectors: "RDD[Any] | None", info: Any) -> DistributedModel:
        """The model in the cluster with these parameters."""
        data, prepared = self.data, self.prepared
        own: Parameters = {name: block for name, block in items.items() if name != "user_factors"}
        arrays: dict[str, Any] = {**served_parameters(self.recipe, own, prepared.frozen)}
        if isinstance(prepared.residuals, RatingResiduals):
            arrays["item_offsets"] = prepared.residuals.offsets
        if (neighbors := prepared.frozen.neighbors) is not None:
            arrays |= {NEIGHBORS: neighbors.items, WEIGHTS: neighbors.weights}
        item_parameters = ItemParameters(unfitted(self.local), arrays, info, data.n_items)
        return DistributedModel.of_blocks(item_parameters, data, prepared.blocks, self.recipe.scorer, vectors)

    def _scattered(self, parameters: Parameters) -> "RDD[FloatArray] | None":
        """Users' vectors from the driver to their blocks; None where users are histories."""
        if "user_factors" not in parameters:
            return None
        parts = np.split(parameters["user_factors"], self.data.firsts[1:-1])
        return distribute(self.data.session.sparkContext, list(parts))

    def _validation(self, rows: HeldOutRows, metric: str, patience: int) -> Validation:
        """Early stopping by a metric on held-out rows in the cluster; refused when no order of them could be wrong."""

        if rows.all_relevant and self.recipe.task == "rated":
            raise all_relevant(rows.n_rows, rows.rule)

        def measure(engine: Engine) -> float:
            assert isinstance(engine, SparkEngine)
            info = replace(self.prepared.info, task=self.recipe.task)
            model = self._model(engine.item_state().parameters, engine.user_vectors(), info)
            try:
                result = evaluate_rows(model, rows)
            finally:
                model.blocks.unpersist()
                model.shared.unpersist()
            return check_defined(metric, result[metric])

        return Validation(measure, metric, patience, rows.digest)
