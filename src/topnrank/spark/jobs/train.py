"""From user blocks to a model in the cluster."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from topnrank._typing import FloatArray
from topnrank.data.feedback.by_name import feedback_from
from topnrank.data.feedback.policies import Feedback
from topnrank.engines.adaptive import AdaptiveEngine
from topnrank.engines.base import Engine
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel
from topnrank.models.linear.neighbors import NEIGHBORS, WEIGHTS
from topnrank.models.persistence import encode
from topnrank.scorers import RatingResiduals
from topnrank.scorers.base import NO_ROWS
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.engine.engine import SparkEngine
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, unfitted
from topnrank.spark.jobs.prepare import PreparedBlocks, is_local, prepare_blocks
from topnrank.spark.session.session import described
from topnrank.training import Callback, Checkpoint, Progress, Recorder, Tolerance, train


@dataclass(frozen=True)
class Watching:
    """Who watches a training, by the names of `FactorModel.fit`."""

    checkpoint: str | None = None
    progress: bool = False
    callbacks: Sequence[Callback] = ()


def train_on_blocks(
    local: Model,
    data: SparkInteractions,
    checkpoint: str | None = None,
    *,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
) -> DistributedModel:
    """`local`, trained on `data`, whose rows stay in the cluster; `progress` and `callbacks` are those of `fit`.

    Models in closed form (EASE, NeighborRidge, ItemMean, Popularity, Random), and feedback that looks at all rows at once
    (Grades, Relevance, ConversionRate, ItemCount, Recency) are for the driver, which collects the rows for them; factor
    models are trained in the cluster even so.
    """
    if not isinstance(local, FactorModel):
        return DistributedModel.of_local(local.fit(data.collect()), data.session, like=data)
    sample = data.blocks.first().interactions(data.n_items, data.type_names)
    model = local.settled(sample)
    policy = feedback_from(model.policy(), sample)
    if not is_local(policy):
        local = type(local)(**local.get_params() | {"engine": "spark"})
        fitted = local.fit(data.collect(), checkpoint=checkpoint, progress=progress, callbacks=callbacks)
        return DistributedModel.of_local(fitted, data.session, like=data)
    return _trained(local, model, policy, data, Watching(checkpoint, progress, callbacks))


def _trained(
    local: FactorModel, model: FactorModel, policy: Feedback, data: SparkInteractions, watching: Watching
) -> DistributedModel:
    with described(data.session.sparkContext, "training lists"):
        prepared = prepare_blocks(data, policy, model.selection())
    run = _Run(model, prepared, data)
    facts = run.go(watching)
    arrays: dict[str, FloatArray] = {
        name: block.astype(np.float32) for name, block in run.engine.item_state().parameters.items()
    }
    if isinstance(prepared.residuals, RatingResiduals):
        arrays["item_offsets"] = prepared.residuals.offsets
    if (neighbors := prepared.frozen.neighbors) is not None:
        kept: dict[str, Any] = {NEIGHBORS: neighbors.items, WEIGHTS: neighbors.weights}
        arrays |= kept
    facts = {"rows": data.n_rows, "task": model._task(), **prepared.facts, **facts}
    item_parameters = ItemParameters(unfitted(local), arrays, facts, data.n_items)
    distributed = DistributedModel.of_rows(item_parameters, data, run.engine.user_vectors())
    distributed.blocks.count()  # made now: what it is made from is let go
    run.engine.close()
    prepared.lists.unpersist()
    return distributed


class _Run:
    """One call of `fit` in the cluster."""

    def __init__(self, model: FactorModel, prepared: PreparedBlocks, data: SparkInteractions) -> None:
        self.model, self.prepared, self.data = model, prepared, data
        indptr = np.concatenate([[0], np.cumsum(prepared.sizes)])
        self.schedule = model.schedule(NO_ROWS._replace(indptr=indptr))

    def go(self, watching: Watching) -> dict[str, Any]:
        """Starts or resumes, trains to the end, and returns the facts of the training."""
        model, frozen, recorder = self.model, self.prepared.frozen, Recorder()
        state = model.start_state(self.data.n_users, self.data.n_items, frozen)
        done, finished, saved = 0, False, None
        if watching.checkpoint is not None:
            saved = Checkpoint(watching.checkpoint, self._identity(), {"recorder": recorder})
            if (earlier := saved.resume()) is not None:
                state, done, finished = earlier
        problem = model.problem(NO_ROWS, frozen)
        self.engine = SparkEngine(problem, state, self.data.session, self.prepared.lists)
        engine: Engine = AdaptiveEngine(self.engine) if problem.adaptive else self.engine
        if not finished:
            with ExitStack() as bar:
                callbacks = [recorder, *self._watchers(watching, done, bar), *([] if saved is None else [saved])]
                done = train(engine, self.schedule, callbacks, done=done)
            if saved is not None:
                saved.write(engine, done, finished=True)
        return {"history": recorder.records, "rounds": done, "best_round": done}

    def _watchers(self, watching: Watching, done: int, bar: ExitStack) -> list[Callback]:
        """In the order of the local training: who was given, who stops, who shows."""
        watchers = list(watching.callbacks)
        if self.model.tolerance > 0.0:
            watchers.append(Tolerance(self.model.tolerance))
        if watching.progress:
            title = type(self.model).__name__
            watchers.append(bar.enter_context(Progress(self.schedule.rounds, done=done, title=title)))
        return watchers

    def _identity(self) -> dict[str, Any]:
        """What must be equal for a run to resume another."""
        parameters = {
            name: encode(value)
            for name, value in self.model.get_params().items()
            if name not in ("num_threads", "engine")
        }
        return {"model": self.model.name, "data": self.prepared.facts["fingerprint"], "parameters": parameters}
