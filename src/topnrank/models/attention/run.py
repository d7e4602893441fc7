"""The training of SequenceRank: closed-form terms, a training that finds the number of epochs, and one on all rows."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank._progress import ProgressBar, progress_bar
from topnrank._torch import require_torch, torch_device
from topnrank._typing import Float32Array, FloatArray
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine
from topnrank.io.paths import parse_path
from topnrank.models.attention.model import STATES, TERM_WEIGHTS, SequenceRank, explicit
from topnrank.models.base import Fitted
from topnrank.models.parameters import AUTO
from topnrank.models.persistence import encode
from topnrank.models.sequence.choice import CUT, HeldOutNext
from topnrank.models.sequence.links import NEXT_BIAS, PAST, link_arrays
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.sequence.timeline import Pauses, Timeline
from topnrank.training import Callback, Checkpoint, EarlyStopping, Recorder, Round, Schedule, train

FEWEST_USERS, USUAL_EPOCHS = 20, 30
"""Fewer held-out last items say nothing of when to stop: then it is the usual number."""
MOST_CANDIDATES, SAMPLED = 200_000, 4000
METRIC = f"ndcg@{CUT}"


def fit_sequence(
    model: SequenceRank,
    data: Interactions,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
    callbacks: Sequence[Callback],
) -> Fitted:
    """The fitted state; see `SequenceRank.fit`."""
    torch_device(model.device, "SequenceRank")  # refused before anything is computed
    weighted, info = model.weighted(data)
    timeline = Timeline.of(weighted, 0.0, Pauses(None, 1.0), "SequenceRank")
    model = explicit(model, np.diff(timeline.events.indptr))
    held_out = HeldOutNext.last(timeline)
    order = None
    if model.terms != "none":
        order = model.order_model({})
        order = order.chosen_on(held_out) if order.open_settings() else order
    with _threads(model.num_threads), ExitStack() as stack:
        bar = stack.enter_context(progress_bar("SequenceRank", None, shown=progress))
        watch = _Watch(checkpoint, bar, callbacks, data.fingerprint())
        epochs: int | str = model.epochs
        value: float | None = None
        records: list[dict[str, float]] = []
        if epochs == AUTO:
            epochs = USUAL_EPOCHS
            if held_out is not None and held_out.users.size >= FEWEST_USERS:
                epochs, value, records = _best_epochs(model, order, held_out, watch)
        model = replace(model, epochs=int(epochs))
        training = _Training.of(model, order, timeline)
        engine, more = _train(training, int(epochs), watch, "all rows", [])
        states = engine.last_states(_last(training, np.arange(weighted.n_users)))
    arrays = {STATES: states, **engine.state.parameters}
    chosen = {name: getattr(model, name) for name in ("length", "dropout", "epochs")}
    info = replace(info, chosen=chosen, rounds=int(epochs), best_round=int(epochs), history=[*records, *more])
    if value is not None:
        info = replace(info, validation={METRIC: value})
    if order is not None:
        arrays[TERM_WEIGHTS] = np.float32(training.problem.terms.unit) * arrays[TERM_WEIGHTS]
        arrays |= _term_arrays(training, weighted, arrays[TERM_WEIGHTS])
        used = {name: one for name, one in order.changed_params().items() if name not in ("feedback", "num_threads")}
        info = replace(info, following=used)
    return Fitted.of(weighted, arrays, info)


@dataclass(frozen=True)
class _Training:
    """What one of the two trainings is about."""

    model: SequenceRank
    """Nothing in it is "auto" but the epochs"""
    timeline: Timeline
    problem: Any
    """AttentionProblem"""

    @classmethod
    def of(cls, model: SequenceRank, order: OrderedModel | None, timeline: Timeline) -> "_Training":
        """All that is computed before the first step."""
        from topnrank.models.attention.engine import AttentionProblem
        from topnrank.models.attention.losses import NextItemLoss
        from topnrank.models.attention.shape import Shape
        from topnrank.models.attention.terms import Terms
        from topnrank.models.attention.windows import Windows

        length, n = int(model.length), timeline.n_items
        terms = None if order is None else Terms.of(order, timeline, length, model.seed)
        kinds = 0 if terms is None else len(terms.kinds)
        sampled = {AUTO: 0 if n <= MOST_CANDIDATES else SAMPLED, "all": 0}
        problem = AttentionProblem(
            shape=Shape(model.width, model.blocks, model.heads, length, model.time_gaps, kinds),
            windows=Windows.of(timeline, length),
            n_items=n,
            loss=NextItemLoss(model.loss, discount=float(model.discount)),
            terms=terms,
            learning_rate=float(model.learning_rate),
            weight_decay=float(model.weight_decay),
            dropout=float(model.dropout),
            negatives=sampled[model.negatives] if isinstance(model.negatives, str) else int(model.negatives),
            seed=model.seed,
        )
        return cls(model, timeline, problem)


@dataclass(frozen=True)
class _Watch:
    """Who follows the trainings."""

    checkpoint: str | os.PathLike[str] | None
    bar: ProgressBar
    callbacks: Sequence[Callback]
    fingerprint: str


def _best_epochs(
    model: SequenceRank, order: OrderedModel | None, held_out: HeldOutNext, watch: _Watch
) -> tuple[int, float, list[dict[str, float]]]:
    """The number of epochs that ranks the held-out last items best, NDCG@10 there, and the records of the training."""
    training = _Training.of(model, order, held_out.rest)
    windows = _last(training, held_out.users)

    def measure(engine: Engine) -> float:
        return _ndcg(engine, windows, held_out)

    stopping = EarlyStopping(measure, METRIC, model.patience)
    _, records = _train(training, model.max_epochs, watch, "choosing the epochs", [stopping])
    return max(stopping.best_round, 1), float(stopping.best_value), records


def _train(
    training: _Training, rounds: int, watch: _Watch, what: str, first: list[EarlyStopping]
) -> tuple[Any, list[dict[str, float]]]:
    """A training of so many rounds at most; the engine after it, and its records."""
    from topnrank.models.attention.engine import AttentionEngine
    from topnrank.models.attention.network import start_values

    model, problem, recorder = training.model, training.problem, Recorder()
    state = AttentionEngine.start(_start(problem, start_values))
    done, finished, saved = 0, False, None
    if watch.checkpoint is not None:
        identity = {
            "model": model.name,
            "data": watch.fingerprint,
            "part": what,
            **{name: encode(one) for name, one in model.get_params().items() if name != "num_threads"},
        }
        persistent: dict[str, Any] = {"recorder": recorder} | ({"stopping": first[0]} if first else {})
        saved = Checkpoint(parse_path(watch.checkpoint) / what.replace(" ", "-"), identity, persistent)
        if (earlier := saved.resume(state)) is not None:
            state, done, finished = earlier
    engine = AttentionEngine(problem, state, torch_device(model.device, "SequenceRank"))
    if finished:
        return engine, recorder.records
    watch.bar.update(done, total=rounds, title=f"SequenceRank, {what}")
    callbacks: list[Callback] = [*first, recorder, *watch.callbacks, _Shown(watch.bar)]
    with ExitStack() as stack:
        if saved is not None:
            callbacks.append(saved)
            stack.enter_context(saved.alone())
        schedule = Schedule(np.arange(problem.windows.users.size), model.batch_size, model.seed, rounds)
        done = train(engine, schedule, callbacks, done=done)  # type: ignore[arg-type]
        if saved is not None:
            saved.write(engine, done, finished=True)  # type: ignore[arg-type]
    return engine, recorder.records


def _start(problem: Any, start_values: Any) -> dict[str, FloatArray]:
    """Start values; items begin at what they count in z by themselves."""
    values: dict[str, FloatArray] = start_values(problem.shape, problem.n_items, problem.seed)
    if problem.terms is not None:
        values["item_bias"] = problem.terms.bias.copy()
    return values


@dataclass
class _Shown:
    """A bar with the loss and the metric."""

    bar: ProgressBar

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Moves the bar."""
        metrics = "".join(f" · {name} {value:.4f}" for name, value in round_.metrics.items())
        self.bar.update(round_.number, text=f"loss {round_.objective:.4g}{metrics}")
        return False


def _last(training: _Training, users: Any) -> Any:
    from topnrank.models.attention.windows import Windows

    return Windows.last(training.timeline, users, int(training.model.length))


def _ndcg(engine: Any, windows: Any, held_out: HeldOutNext, at_once: int = 250) -> float:
    """NDCG@10 of the held-out items among all but the user's other ones."""
    import torch

    events, gains = held_out.rest.events, 0.0
    for first in range(0, held_out.users.size, at_once):
        part = slice(first, first + at_once)
        scores = engine.scores(windows, part)
        users, wanted = held_out.users[part], torch.from_numpy(held_out.wanted[part].astype(np.int64)).to(scores.device)
        mine = scores.gather(1, wanted[:, None])
        sizes = np.diff(events.indptr)[users]
        rows = torch.from_numpy(np.repeat(np.arange(users.size), sizes)).to(scores.device)
        own = np.concatenate([events.items[events.indptr[user] : events.indptr[user + 1]] for user in users])
        scores[rows, torch.from_numpy(own.astype(np.int64)).to(scores.device)] = -torch.inf
        scores.scatter_(1, wanted[:, None], mine)
        above = (scores > mine).sum(1) + 0.5 * ((scores == mine).sum(1) - 1)
        gains += float(torch.where(above < CUT, 1.0 / torch.log2(above + 2.0), 0.0).sum())
    return gains / held_out.users.size


def _term_arrays(training: _Training, weighted: Interactions, weights: FloatArray) -> dict[str, Any]:
    """The links of all users, the past weighted by what was learned; the biases are part of the items' own."""
    terms = training.problem.terms
    whole, scales = terms.links[-1], weights[terms.kind_of_scale]
    past: Float32Array = np.zeros((len(weighted), len(scales)), np.float32)
    past[training.timeline.rows] = whole.past * scales
    arrays = link_arrays(whole.links, np.zeros(training.timeline.n_items)) | {PAST: past}
    arrays[NEXT_BIAS] = arrays.pop("item_bias")
    return arrays


@contextmanager
def _threads(num_threads: int) -> Iterator[None]:
    """PyTorch's threads on the CPU."""
    torch = require_torch("SequenceRank")
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
