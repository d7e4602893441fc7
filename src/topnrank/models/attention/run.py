"""The training of SequenceRank: closed-form terms, a training that finds the number of epochs, and one on all rows."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank._progress import ProgressBar, progress_bar
from topnrank._torch import require_torch, torch_device
from topnrank._typing import Float32Array, Float64Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.engines import Engine
from topnrank.io.paths import parse_path
from topnrank.models.attention.model import STATES, TERM_WEIGHTS, SequenceRank, explicit
from topnrank.models.attention.terms import spread
from topnrank.models.base import FitInfo, Fitted
from topnrank.models.parameters import AUTO
from topnrank.models.persistence import encode
from topnrank.models.sequence.choice import CUT, HeldOutNext
from topnrank.models.sequence.links import NEXT_BIAS, PAST, LinkScores, link_arrays
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.sequence.parts import Part
from topnrank.models.sequence.timeline import Pauses, Timeline
from topnrank.training import Callback, Checkpoint, EarlyStopping, Recorder, Round, Schedule, train

FEWEST_USERS, USUAL_EPOCHS = 20, 30
"""Fewer held-out last items say nothing of when to stop: then it is the usual number."""
WEIGHTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0, 16.0, 32.0)
"""Of the terms."""
MOST_SCORES = 250_000_000
"""So many scores of held-out users are held in memory."""
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
    if held_out is not None and held_out.users.size < FEWEST_USERS:
        held_out = None
    order = _order(model, held_out)
    with _threads(model.num_threads), ExitStack() as stack:
        bar = stack.enter_context(progress_bar("SequenceRank", None, shown=progress))
        watch = _Watch(checkpoint, bar, callbacks, data.fingerprint())
        model, info = _chosen(model, order, held_out, info, watch)
        training = _Training.of(model, order, timeline)
        engine, records = _train(training, int(model.epochs), watch, "all rows", [])
        arrays = {**engine.state.parameters, STATES: engine.last_states(_last(training, np.arange(weighted.n_users)))}
    chosen = {name: getattr(model, name) for name in ("length", "dropout", "epochs")}
    if order is not None:
        arrays = _with_terms(arrays, training, order, weighted)
        used = {name: one for name, one in order.changed_params().items() if name not in ("feedback", "num_threads")}
        info = replace(info, following=used)
        chosen |= {} if model.joint else {"term_weight": float(model.term_weight)}
    rounds = int(model.epochs)
    history = [*info.history, *records]
    return Fitted.of(weighted, arrays, replace(info, chosen=chosen, rounds=rounds, best_round=rounds, history=history))


def _order(model: SequenceRank, held_out: HeldOutNext | None) -> OrderedModel | None:
    """The model of the terms, nothing in it "auto"; None without."""
    if model.terms == "none":
        return None
    order = model.order_model({})
    return order.chosen_on(held_out) if order.open_settings() else order


def _chosen(
    model: SequenceRank, order: OrderedModel | None, held_out: HeldOutNext | None, info: FitInfo, watch: "_Watch"
) -> tuple[SequenceRank, FitInfo]:
    """With the epochs and the weight of the terms that rank the held-out last items best, and what that was."""
    weighs = order is not None and not model.joint and model.term_weight == AUTO
    if model.epochs != AUTO and not weighs:
        return model, info
    if held_out is None:
        epochs = USUAL_EPOCHS if model.epochs == AUTO else int(model.epochs)
        return replace(model, epochs=epochs, term_weight=1.0 if weighs else model.term_weight), info
    training = _Training.of(model, order, held_out.rest)
    judge = _Judge.of(training, order, held_out)
    rounds, patience = model.max_epochs, model.patience
    if model.epochs != AUTO:
        rounds = patience = int(model.epochs)
    stopping = EarlyStopping(judge.measure, METRIC, patience)
    _, records = _train(training, rounds, watch, "choosing", [stopping, judge])
    best = max(stopping.best_round, 1) if model.epochs == AUTO else rounds
    at_best = records[best - 1]
    if weighs:
        model = replace(model, term_weight=at_best["term_weight"])
    return replace(model, epochs=best), replace(info, validation={METRIC: at_best[METRIC]}, history=records)


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
        terms = None if order is None or not model.joint else Terms.of(order, timeline, length, model.seed)
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


@dataclass
class _Judge:
    """Ranks the held-out last items after each round, and weighs the terms by them."""

    windows: Any
    """The latest rows of the rest"""
    held_out: HeldOutNext
    terms: Float32Array | None
    """(n_users, n_items) z, their spread about 1; None where nothing is weighed"""
    weights: Sequence[float]
    weight: float = 0.0
    """The best one of the latest round"""

    @classmethod
    def of(cls, training: "_Training", order: OrderedModel | None, held_out: HeldOutNext) -> "_Judge":
        """Of so many users that their scores fit."""
        model, most = training.model, max(FEWEST_USERS, MOST_SCORES // training.timeline.n_items)
        columns = {name: getattr(held_out, name)[:most] for name in ("users", "wanted", "owners")}
        held_out = replace(held_out, **columns)
        terms, weights = None, [0.0]
        if order is not None and not model.joint:
            whole = order.whole(held_out.rest)
            terms = _scores_of(whole, held_out.rest, held_out.users) / np.float32(spread(whole, held_out.rest))
            weights = list(WEIGHTS) if model.term_weight == AUTO else [float(model.term_weight)]
        return cls(_last(training, held_out.users), held_out, terms, weights)

    def measure(self, engine: Engine) -> float:
        """NDCG@10 at the best weight."""
        values = _ndcg(engine, self)
        self.weight = self.weights[int(np.argmax(values))]
        return float(values.max())

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Records the weight."""
        round_.metrics["term_weight"] = self.weight
        return False


def _train(
    training: _Training, rounds: int, watch: _Watch, what: str, first: Sequence[Any]
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


def _ndcg(engine: Any, judge: _Judge, at_once: int = 250) -> Float64Array:
    """NDCG@10 of the held-out items among all but the user's other ones, at each weight of the terms."""
    import torch

    events, gains = judge.held_out.rest.events, np.zeros(len(judge.weights))
    for first in range(0, judge.held_out.users.size, at_once):
        part = slice(first, first + at_once)
        users, wanted = judge.held_out.users[part], judge.held_out.wanted[part].astype(np.int64)
        plain, mine = engine.scores(judge.windows, part), torch.from_numpy(wanted[:, None]).to(engine.device)
        rows = torch.from_numpy(np.repeat(np.arange(users.size), np.diff(events.indptr)[users])).to(engine.device)
        own = np.concatenate([events.items[events.indptr[user] : events.indptr[user + 1]] for user in users])
        others = plain.clone()
        others[rows, torch.from_numpy(own.astype(np.int64)).to(engine.device)] = -torch.inf
        others.scatter_(1, mine, plain.gather(1, mine))
        terms = None if judge.terms is None else torch.from_numpy(judge.terms[part]).to(engine.device)
        for place, weight in enumerate(judge.weights):
            scores = others if terms is None else others + weight * terms
            asked = scores.gather(1, mine)
            above = (scores > asked).sum(1) + 0.5 * ((scores == asked).sum(1) - 1)
            gains[place] += float(torch.where(above < CUT, 1.0 / torch.log2(above + 2.0), 0.0).sum())
    return gains / judge.held_out.users.size


def _scores_of(part: Part, timeline: Timeline, users: IntArray) -> Float32Array:
    """(n, n_items) scores of users."""
    events = timeline.events
    past, bias = part.past.astype(np.float32), part.bias.astype(np.float32)
    return LinkScores(part.links, bias, events.indptr, events.items, past).block(users)


def _with_terms(
    arrays: dict[str, Any], training: _Training, order: OrderedModel, weighted: Interactions
) -> dict[str, Any]:
    """The arrays with the links of all users; the past is weighted, and biases are part of the items' own."""
    timeline, terms, kinds = training.timeline, training.problem.terms, list(dict.fromkeys(order.all_kinds))
    if terms is None:
        whole = order.whole(timeline)
        weight = np.float32(float(training.model.term_weight) / spread(whole, timeline))
        arrays[TERM_WEIGHTS] = np.full(len(kinds), weight)
        arrays["item_bias"] = (arrays["item_bias"] + weight * whole.bias).astype(np.float32)
    else:
        whole = terms.links[-1]
        arrays[TERM_WEIGHTS] = np.float32(terms.unit) * arrays[TERM_WEIGHTS]
    scales = arrays[TERM_WEIGHTS][[kinds.index(kind) for kind in order.all_kinds]]
    past: Float32Array = np.zeros((len(weighted), len(scales)), np.float32)
    past[timeline.rows] = whole.past * scales
    links = link_arrays(whole.links, np.zeros(timeline.n_items)) | {PAST: past}
    links[NEXT_BIAS] = links.pop("item_bias")
    return arrays | links


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
