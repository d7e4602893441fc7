"""Lists for one request: whose taste, the scores, which items, in which order.

Without `popularity` and `diversity` a list is that of `model.recommend`, to the bit: the same scores by the same kernels.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import UNSET

from topnrank._typing import BoolArray, Float32Array, Float64Array, Int64Array
from topnrank.errors import ParameterError
from topnrank.kernels.top_items import top_items
from topnrank.models.serving.explain import Contributions, OneHistory, history_of_user
from topnrank.models.serving.filters import Request
from topnrank.serve.models import Served
from topnrank.serve.store.base import EventStore
from topnrank.serve.tastes import (
    History,
    add_events,
    history_of,
    numbers_of,
    user_number,
    words_of_request,
    words_of_user,
)
from topnrank.serve.wire import MAX_HISTORY, Answer, GroupLimit, Listed, Reason, RecommendRequest, Taste

if TYPE_CHECKING:
    from topnrank.serve.batching import Batcher

POOL = 100
"""The best items among which `diversity` chooses, or five times the list if that is more."""


@dataclass(frozen=True)
class Known:
    """What a request's list is made from."""

    user: int = -1
    """Number of a known user of whom nothing else is known; -1: see `history`"""
    history: History | None = None
    """None with user -1: nothing is known"""
    fresh_through: int | None = None
    unknown: list[int | str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether neither user nor history is known."""
        return self.user < 0 and self.history is None


async def known_of(served: Served, taste: Taste, store: EventStore | None) -> Known:
    """Training rows, then events that the model was not trained on, then the history of the request."""
    model, values = served.model, served.values
    given = None
    if taste.history:
        given = words_of_request(model, values, taste.history)
    if taste.user is None:
        if taste.history is None:
            raise ParameterError("give a user, a history, or both; an empty history asks for what is popular")
        if given is None:
            return Known()
        return Known(-1, history_of(given.said, values) if given.said else None, None, given.unknown)
    number = user_number(model, taste.user)
    kept = None
    if store is not None:
        # nothing was trained on of a user without training rows
        through = 0 if number < 0 else served.events_through.get(store.identity, 0)
        kept = await store.of_user(str(taste.user), through, MAX_HISTORY)
        if kept.forgotten > served.events_through.get(f"{store.identity} forgotten", 0):
            number = -1
    if (kept is None or not kept.events) and given is None:
        return Known(number)
    said = {} if number < 0 else words_of_user(model, values, number)
    unknown: list[int | str] = []
    fresh = None
    if kept is not None and kept.events:
        unknown = add_events(said, model, values, kept.events)
        fresh = max(event.seq for event in kept.events)
    if given is not None:
        for item, value in given.said.items():
            said.pop(item, None)
            said[item] = value
        unknown = [*unknown, *given.unknown]
    return Known(-1, history_of(said, values) if said else None, fresh, unknown)


class Scored(NamedTuple):
    """Scores of all items, NaN for those that are no candidates as they were seen."""

    scores: Float32Array
    """(1, n_items)"""
    source: str


def score(served: Served, known: Known, *, seen_too: bool) -> Scored:
    """The scores of `known`; where nothing is known, the number of training rows of each item."""
    if known.history is not None:
        source = "fold-in" if served.folds_in else "history"
        return Scored(served.scores_of_history(*known.history, seen_too=seen_too), source)
    source = "user" if known.user >= 0 else "popular"
    return Scored(served.scores_of_user(known.user, seen_too=seen_too), source)


async def answer(
    served: Served, request: RecommendRequest, store: EventStore | None, batcher: "Batcher | None" = None
) -> Answer:
    """The answer to a request for a list."""
    begin = time.perf_counter()
    known = await known_of(served, request, store)
    seen_too = not request.exclude_seen
    if batcher is not None and known.history is not None and batcher.takes(served):
        scored = Scored(await batcher.scores(served, known.history, seen_too=seen_too), "history")
    else:
        scored = score(served, known, seen_too=seen_too)
    scores, unknown = scored.scores, list(known.unknown)
    if (banned := _banned(served, request, unknown)) is not None:
        np.copyto(scores, np.float32(np.nan), where=banned)
    best = choose(served, scores, request)
    items = listed(served, best, scores[0, best], request.fields)
    if request.explain and best.size and not known.nothing:
        add_reasons(served, known, items, best, request.explain)
    return answer_of(served, known, scored.source, items, unknown, begin)


def answer_of(
    served: Served, known: Known, source: str, items: list[Listed], unknown: list[int | str], begin: float | None = None
) -> Answer:
    """A list with where it comes from; `begin` is when the work on it began."""
    return Answer(
        id=f"r_{os.urandom(8).hex()}",
        model=served.name,
        version=served.version,
        source=source,
        fresh_through=known.fresh_through,
        items=items,
        unknown_items=unknown,
        took_ms=0.0 if begin is None else round(1000 * (time.perf_counter() - begin), 3),
    )


def _banned(served: Served, request: RecommendRequest, unknown: list[int | str]) -> BoolArray | None:
    """(n_items,) what `items` and `exclude` take away; ids that the model does not know are added to `unknown`."""
    if request.items is None and request.exclude is None:
        return None
    banned = np.full(len(served.catalog), request.items is not None)
    for ids, ban in ((request.items, False), (request.exclude, True)):
        numbers = np.array(numbers_of(served.model, ids or []), np.int64)
        banned[numbers[numbers >= 0]] = ban
        unknown.extend(one for one, number in zip(ids or [], numbers.tolist(), strict=True) if number < 0)
    return banned


def choose(served: Served, scores: Float32Array, request: RecommendRequest) -> Int64Array:
    """The items of the list, best first, in the order that the request asks for."""
    groups = _group_limit(served, request.groups)
    wanted = Request(request.n, groups=None if groups is None else served.catalog.groups, max_per_group=groups or 0)
    ordering = scores
    if request.popularity:
        deviation = np.nanstd(scores[0]) if not np.isnan(scores).all() else 0.0
        ordering = scores + np.float32(request.popularity * 2 * deviation) * served.known
    if request.diversity:
        best = _diverse(served, ordering, request, groups)
    else:
        best = wanted.best(ordering)[0]
        best = best[best >= 0]
    if request.min_score is not None:
        best = best[scores[0, best] >= np.float32(request.min_score)]
    return np.asarray(best)


def _group_limit(served: Served, groups: GroupLimit | None) -> int | None:
    if groups is None:
        return None
    if not served.catalog.has_groups:
        raise ParameterError(
            "groups: the server knows no groups of the items; start it with --items FILE that has a column group"
        )
    return groups.max


def _diverse(served: Served, ordering: Float32Array, request: RecommendRequest, most: int | None) -> Int64Array:
    """Maximal marginal relevance: item after item, the best of (1 - d) times its score, from 0 to 1 in the pool, less d
    times how much it is like the most similar one that is listed."""
    size = min(max(POOL, 5 * request.n), ordering.shape[1])
    pool = top_items(np.ascontiguousarray(ordering), size)[0]
    pool = pool[pool >= 0]
    if not pool.size:
        return np.asarray(pool)
    scores = ordering[0, pool].astype(np.float64)
    relevance = (scores - scores.min()) / ((scores.max() - scores.min()) or 1.0)
    alike, nearest = _similarities(served, pool), np.zeros(pool.size)
    groups, counts, left = served.catalog.groups[pool], dict[int, int](), np.ones(pool.size, np.bool_)
    chosen: list[int] = []
    while len(chosen) < request.n and left.any():
        value = (1 - request.diversity) * relevance - request.diversity * nearest
        place = int(np.argmax(np.where(left, value, -np.inf)))
        left[place] = False
        group = int(groups[place])
        if most is not None and group >= 0:
            if counts.get(group, 0) >= most:
                continue
            counts[group] = counts.get(group, 0) + 1
        chosen.append(place)
        nearest = np.maximum(nearest, alike[place])
    return np.asarray(pool[chosen])


def _similarities(served: Served, pool: Int64Array) -> Float64Array:
    """(n, n) how alike the items are, 0 to 1: the cosine of their vectors, or whether they are of one group."""
    if not served.finds_similar:
        groups = served.catalog.groups[pool]
        return np.asarray((groups[:, None] == groups) & (groups >= 0), np.float64)
    vectors = served.vectors_of(pool, pool)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(np.maximum(vectors @ vectors.T, 0.0))


def listed(
    served: Served, items: Int64Array, scores: Float32Array, fields: Sequence[str] | None, first: int = 1
) -> list[Listed]:
    """Items as they go over the wire, with the facts that were asked for."""
    ids = served.model.item_ids_[items].tolist()
    rows = [
        Listed(item, value, rank) for rank, (item, value) in enumerate(zip(ids, scores.tolist(), strict=True), first)
    ]
    if fields:
        for row, number in zip(rows, items.tolist(), strict=True):
            facts = served.catalog.of(number)
            more: dict[str, Any] = {}
            for name in fields:
                if name == "title":
                    row.title = facts.get("title") or str(row.item)
                elif name == "group":
                    row.group = facts.get("group")
                else:
                    more[name] = facts.get(name)
            row.fields = more or UNSET
    return rows


def contributions_of(served: Served, known: Known, targets: Int64Array) -> tuple[Int64Array, Contributions]:
    """The items of the history, and what each of them gives to the targets."""
    if not served.explains:
        raise ParameterError(
            f"explain: the model {served.name!r} does not build scores from the items of a history; models with "
            "user_representation='history' do, such as TopNRank"
        )
    if known.nothing:
        raise ParameterError("explain: nothing is known of this user, so the list is that of popular items")
    if known.history is not None:
        history = OneHistory(known.history.items, known.history.values)
    else:
        history = history_of_user(served.model, known.user)
    return np.asarray(history.items, np.int64), served.model.contributions(history, targets)


def add_reasons(served: Served, known: Known, rows: list[Listed], targets: Int64Array, most: int) -> None:
    """The items of the history with the largest parts of each score."""
    own, contributions = contributions_of(served, known, targets)
    block = sum(contributions.parts.values())
    ids = served.model.item_ids_[own].tolist()
    for row, parts in zip(rows, np.atleast_2d(block), strict=True):
        order = np.argsort(-np.abs(parts), kind="stable")[:most]
        row.why = [Reason(ids[k], float(parts[k])) for k in order.tolist() if parts[k] != 0]
