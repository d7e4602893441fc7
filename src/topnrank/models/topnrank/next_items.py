"""What comes next: a second score of TopNRank for the catalog, where rows have times and order says something.

Two questions have two best answers: which items a user likes, at any time, and which one comes next. The first is answered
by neighbors, factors and popularity (`models/topnrank/choice.py`). The second by a sum over the user's past in its order:
directed counts or the regression of the next item, neighbors whose likes fade, and what is popular of late
(`models/sequence/`), each weighed by what ranks held-out last items best. Where that sum ranks them better than neighbors
without order it is kept, and `recommend` gives its lists, for what is asked for there comes next. `evaluate` asks by the
times of the test rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._csr import row_owner
from topnrank._typing import BoolArray, Float32Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.kernels.jit import threads
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import TIMES
from topnrank.models.parameters import AUTO
from topnrank.models.sequence.choice import WORTH, HeldOutNext
from topnrank.models.sequence.joined import PLACES, WEIGHTS
from topnrank.models.sequence.links import BIAS, COUNTS, NEXT_BIAS, PAST, TARGETS, VALUES, LinkScores, link_scores
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.sequence.next_item_ridge import NextItemRidge
from topnrank.models.sequence.parts import undirected
from topnrank.models.sequence.transitions import Transitions

if TYPE_CHECKING:
    from topnrank.models.topnrank.model import TopNRank

ORDERS = ("auto", "counts", "ridge", "none")
"""What `order` may be."""
PER_USER = "per-user"
AFTER = 0.9
"""So large a share of test rows after the training rows of their users asks for what comes next."""
LINKS = (COUNTS, TARGETS, VALUES)
FEWEST_USERS = 100
"""Fewer held-out last items say too little to choose by."""
USUAL: dict[str, Any] = {"smoothing": 1.0, "head_share": 0.8, "head_decay": 0.6}
"""Settings of the counts that are not chosen: they matter little, and each would cost a search."""


def add_next(model: "TopNRank", fitted: Fitted, data: Interactions) -> Fitted:
    """The fitted state with the scores of what comes next, where `order` asks for them or held-out last items do.

    `data` are the training rows with weights, each user and item once.
    """
    order = model.order
    if order == AUTO and (model.recency is not None or model.sessions is not None):
        return fitted  # the user says in which way order counts
    if order == "none" or fitted.info.task != "catalog" or data.timestamps is None:
        return fitted
    if order == AUTO and PER_USER in (data.split, model.held_out):  # rows of any time are asked for
        return fitted
    with threads(model.num_threads):
        return _added(model, fitted, data, order)


def _added(model: "TopNRank", fitted: Fitted, data: Interactions, order: str) -> Fitted:
    """The same, with `order` not "none"."""
    kind, settings = ("ridge" if order == "ridge" else "counts"), fitted.info.following
    directed = _directed(kind, model)
    timeline = directed.timeline(data)
    if settings is None:
        held_out = HeldOutNext.of(timeline)
        few = held_out is None or held_out.users.size < FEWEST_USERS
        if order == AUTO and few:
            return fitted
        chosen = directed.chosen_on(held_out)
        if order == AUTO and held_out is not None and not _is_worth_it(chosen, held_out):
            return replace(fitted, info=replace(fitted.info, chosen={**(fitted.info.chosen or {}), "order": "none"}))
        settings = {name: getattr(chosen, name) for name in directed.open_settings()}
    arrays = replace(directed, **settings).arrays(data, timeline)
    arrays[NEXT_BIAS] = arrays.pop(BIAS)
    for name in (WEIGHTS, PLACES):
        arrays.pop(name, None)
    told = {"order": kind} if order == AUTO else {}
    info = replace(fitted.info, following=settings, chosen={**(fitted.info.chosen or {}), **told})
    return Fitted.of(data, {**fitted.arrays, **arrays}, info)


def _directed(kind: str, model: "TopNRank") -> OrderedModel:
    """The model of order of the kind "counts" or "ridge"."""
    shared: dict[str, Any] = {"feedback": "weights", "sessions": model.sessions, "num_threads": model.num_threads}
    if kind == "ridge":
        return NextItemRidge(**shared)
    return Transitions(**USUAL, undirected=AUTO, recent_popularity=AUTO, **shared)


def _is_worth_it(directed: OrderedModel, held_out: HeldOutNext) -> bool:
    """Whether the sum ranks the held-out last items better than neighbors that know no order."""
    flat = undirected(held_out.rest, [np.inf])[0]
    with_order, without = held_out.values([directed.whole(held_out.rest)], [[1.0]]), held_out.values([flat], [[1.0]])
    return bool(with_order[0] > WORTH * without[0])


@dataclass(frozen=True)
class NextScores:
    """The scores of what comes next."""

    links: LinkScores
    directed: OrderedModel
    """Nothing in it is "auto"; not fitted"""
    known: BoolArray
    """(n_users,) who has a past"""

    def history(self, items: IntArray, strengths: FloatArray) -> Float32Array:
        """(n_items,) scores for rows of these strengths, from the oldest to the latest."""
        return self.links.history(items, self.directed.past_of(strengths))


def next_scores(model: "TopNRank") -> NextScores | None:
    """Those of a fitted model, made ready once; None for a model without."""
    fitted = model.fitted
    return fitted.cached(NextScores, lambda: _next_scores(model)) if NEXT_BIAS in fitted.arrays else None


def next_model(model: "TopNRank", settings: Mapping[str, Any] | None) -> OrderedModel:
    """The model of order with the settings that a fitted model keeps, not fitted."""
    settings = settings or {}
    return replace(_directed("ridge" if "decays" in settings else "counts", model), **settings)


def _next_scores(model: "TopNRank") -> NextScores:
    fitted = model.fitted
    counts = np.bincount(row_owner(fitted.indptr), weights=fitted.arrays[PAST].any(axis=1), minlength=len(fitted.users))
    return NextScores(link_scores(fitted), next_model(model, fitted.info.following), counts > 0)


def are_next(fitted: Fitted, rows: Interactions) -> bool:
    """Whether rows of known users are what comes next: not before the last training row of their user.

    At least `AFTER` of them have to be, but no more than that after all training rows: what is asked for in the weeks
    after is ruled by what is popular then (`models/topnrank/choice.py`), not by what came last.
    """
    if rows.timestamps is None:
        return True
    times = fitted.arrays[TIMES].astype(np.int64)
    last = np.full(len(fitted.users), np.iinfo(np.int64).min)
    np.maximum.at(last, row_owner(fitted.indptr), times)
    users = fitted.users.index(rows.users.ids)[rows.user_index]
    asked, own = rows.timestamps[users >= 0], last[users[users >= 0]]
    if not asked.size:
        return True
    return bool((asked >= own).mean() >= AFTER > (asked > times.max()).mean())


@dataclass(frozen=True)
class _AnyTime:
    """The state without the scores of what comes next."""

    fitted: Fitted


def without_next(fitted: Fitted) -> Fitted:
    """The state without the scores of what comes next, made once."""
    arrays = {name: array for name, array in fitted.arrays.items() if name not in (*LINKS, PAST, NEXT_BIAS)}
    made = Fitted(fitted.users, fitted.items, fitted.indptr, fitted.indices, arrays, fitted.info)
    return fitted.cached(_AnyTime, lambda: _AnyTime(made)).fitted
