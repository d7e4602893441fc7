"""Lists: for one request, for many, and of the client's own candidates."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta, Struct, field

from topnrank._typing import Int64Array
from topnrank.serve import lists
from topnrank.serve.endpoints.base import Call, Route, problem_of
from topnrank.serve.tastes import numbers_of
from topnrank.serve.wire import (
    MAX_EXPLAIN,
    Answer,
    BatchAnswer,
    BatchPart,
    BatchRequest,
    ModelName,
    N,
    RankRequest,
    RecommendRequest,
    Word,
)

if TYPE_CHECKING:
    from topnrank.serve.app import Server


class RecommendQuery(Struct, forbid_unknown_fields=True):
    """The settings of a list in a query string; `fields` are separated by commas."""

    n: N = 10
    model: ModelName | None = None
    exclude_seen: bool = True
    popularity: Annotated[float, Meta(ge=-1, le=1)] = 0.0
    diversity: Annotated[float, Meta(ge=0, le=1)] = 0.0
    explain: Annotated[int, Meta(ge=0, le=MAX_EXPLAIN)] = 0
    fields: Annotated[list[Word], Meta(max_length=20)] = field(default_factory=list)


async def recommend(server: "Server", call: Call) -> Answer:
    """The best items for a user, for a history, or for a user with a history added."""
    return await server.answer(call.body)


async def recommend_to_user(server: "Server", call: Call) -> Answer:
    """The best items for a user."""
    query: RecommendQuery = call.query
    return await server.answer(
        RecommendRequest(
            user=call.path["user"],
            n=query.n,
            model=query.model,
            exclude_seen=query.exclude_seen,
            popularity=query.popularity,
            diversity=query.diversity,
            explain=query.explain,
            fields=query.fields or None,
        )
    )


async def recommend_batch(server: "Server", call: Call) -> BatchAnswer:
    """Many lists at once; a request that cannot be followed does not spoil the others."""
    body: BatchRequest = call.body
    parts = []
    for request in body.requests:
        try:
            parts.append(BatchPart(200, answer=await server.answer(request)))
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                raise
            parts.append(BatchPart(problem.status, problem=problem))
    return BatchAnswer(parts)


async def rank(server: "Server", call: Call) -> Answer:
    """Own candidates, best first, with their scores; those that the user knows already stay in."""
    body: RankRequest = call.body
    served = server.models.get(body.model)
    request = RecommendRequest(
        user=body.user, history=body.history, model=body.model, items=body.items, fields=body.fields
    )
    known = await lists.known_of(served, request, server.store)
    scored = lists.score(served, known, seen_too=True)
    numbers = np.array(numbers_of(served.model, body.items), np.int64)
    unknown = [one for one, number in zip(body.items, numbers.tolist(), strict=True) if number < 0]
    candidates: Int64Array = np.unique(numbers[numbers >= 0])
    order = candidates[np.argsort(-scored.scores[0, candidates], kind="stable")]
    items = lists.listed(served, order, scored.scores[0, order], body.fields)
    return lists.answer_of(served, known, scored.source, items, [*known.unknown, *unknown])


ROUTES = [
    Route("POST", "/v1/recommend", "read", recommend, Answer, body=RecommendRequest),
    Route("POST", "/v1/recommend/batch", "read", recommend_batch, BatchAnswer, body=BatchRequest),
    Route("GET", "/v1/users/{user}/recommend", "read", recommend_to_user, Answer, query=RecommendQuery),
    Route("POST", "/v1/rank", "read", rank, Answer, body=RankRequest),
]
