"""Why: the parts of a score, and what another model says of the same taste."""

import time
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from topnrank._typing import Float32Array
from topnrank.serve import lists
from topnrank.serve.endpoints.base import Call, Route
from topnrank.serve.lists import Known, contributions_of, known_of, score
from topnrank.serve.models import Served
from topnrank.serve.problems import ProblemError
from topnrank.serve.tastes import history_of, numbers_of, words_of_user
from topnrank.serve.wire import (
    Answer,
    CompareRequest,
    Comparison,
    ExplainRequest,
    Explanation,
    Pair,
    Part,
    RecommendRequest,
)

if TYPE_CHECKING:
    from topnrank.serve.app import Server

LARGEST = 20
"""Parts, the largest first, of which the rank without them is computed: each is a list of its own."""


async def explain(server: "Server", call: Call) -> Explanation:
    """The score of an item as a sum over the history; exact, not an approximation."""
    body: ExplainRequest = call.body
    served = server.models.get(body.model)
    (number,) = numbers_of(served.model, [body.item])
    if number < 0:
        raise ProblemError(404, f"the model {served.name!r} does not know item {body.item!r}")
    known = await known_of(served, body, server.store)
    own, contributions = contributions_of(served, known, np.array([number]))
    scores = score(served, known, seen_too=False).scores[0]
    blocks = {kind: block[0] for kind, block in contributions.parts.items()}
    totals = np.sum(list(blocks.values()), axis=0)
    order = np.argsort(-np.abs(totals), kind="stable")
    without = _ranks_without(served, known, number, order[:LARGEST].tolist())
    ids = served.model.item_ids_[own].tolist()
    rest = {kind: float(block[0]) for kind, block in contributions.rest.items()}
    return Explanation(
        model=served.name,
        version=served.version,
        item=body.item,
        score=float(totals.sum() + sum(rest.values())),
        rank=_rank(scores, number),
        parts=[
            Part(ids[k], float(totals[k]), {kind: float(block[k]) for kind, block in blocks.items()}, without.get(k))
            for k in order.tolist()
            if totals[k] != 0
        ],
        rest=rest,
        unknown_items=known.unknown,
    )


def _rank(scores: Float32Array, number: int) -> int | None:
    """The rank of an item among all that are not NaN; None for one that is."""
    own = scores[number]
    if np.isnan(own):
        return None
    return int((scores > own).sum() + (scores[:number] == own).sum()) + 1


def _ranks_without(served: Served, known: Known, number: int, places: list[int]) -> dict[int, int | None]:
    """By the place of an item in the history: the rank of `number` if it were not there."""
    history = known.history
    if history is None:
        said = words_of_user(served.model, served.values, known.user)
        history = history_of(said, served.values)
        order = served.model.seen_indices[slice(*served.model.seen_indptr[known.user : known.user + 2].tolist())]
        where = {item: place for place, item in enumerate(history.items.tolist())}
        places_in_history = {place: where[int(order[place])] for place in places}
    else:
        places_in_history = {place: place for place in places}
    if history.items.size < 2:
        return {}
    ranks: dict[int, int | None] = {}
    for place, in_history in places_in_history.items():
        less = history.without(in_history)
        try:
            scores = served.scores_of_history(*less, seen_too=True)[0]
        except ValueError:  # nothing liked is left
            continue
        scores[less.items] = np.nan
        ranks[place] = _rank(scores, number)
    return ranks


async def compare(server: "Server", call: Call) -> Comparison:
    """The lists of two or more models for the same taste, and what they share."""
    begin = time.perf_counter()
    body: CompareRequest = call.body
    shared = {
        "user": body.user,
        "history": body.history,
        "n": body.n,
        "exclude_seen": body.exclude_seen,
        "popularity": body.popularity,
        "diversity": body.diversity,
        "groups": body.groups,
        "fields": body.fields,
    }
    answers = [
        await lists.answer(server.models.get(name), RecommendRequest(model=name, **shared), server.store)  # type: ignore[arg-type]
        for name in body.models
    ]
    pairs = [_pair(one, other) for one, other in combinations(answers, 2)]
    return Comparison(answers, pairs, round(1000 * (time.perf_counter() - begin), 3))


def _pair(one: Answer, other: Answer) -> Pair:
    ranks = {row.item: row.rank for row in one.items}
    moves = {str(row.item): ranks[row.item] - row.rank for row in other.items if row.item in ranks}
    longest = max(len(one.items), len(other.items))
    return Pair([one.model, other.model], len(moves), len(moves) / longest if longest else 0.0, moves)


ROUTES = [
    Route("POST", "/v1/explain", "read", explain, Explanation, body=ExplainRequest, problems=(404,)),
    Route("POST", "/v1/compare", "read", compare, Comparison, body=CompareRequest),
]
