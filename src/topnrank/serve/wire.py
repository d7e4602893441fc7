"""What goes over the wire: requests and answers as msgspec structs, which check, encode and document themselves.

The limits of a request are here, so that a request that breaks one is refused before anything is computed.
"""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from topnrank.serve.store.base import Event, RefreshRecord

MAX_BODY = 1 << 20
"""Bytes of a request."""
MAX_N = 1000
MAX_HISTORY = 1000
MAX_ITEMS = 10_000
MAX_EVENTS = 1000
MAX_BATCH = 100
MAX_ID = 256
MAX_EXPLAIN = 20

Id = (
    Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, Meta(min_length=1, max_length=MAX_ID, pattern=r"^[^\x00]*$")]
)
"""An id as it is in the model, or as text."""
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]
N = Annotated[int, Meta(ge=1, le=MAX_N, description="Items in the list.")]


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of what clients send: a slip of the pen in a name is an error, not a setting without effect."""


# -- recommending -----------------------------------------------------------------------------------------------------


class Entry(Request, kw_only=True):
    """One item of a history."""

    item: Id
    rating: Annotated[Number | None, Meta(description="A rating or a weight, as the model was trained with.")] = None
    type: Annotated[
        Word | None, Meta(description='"like", "dislike", "remove", or a feedback type the model was trained with.')
    ] = None


History = Annotated[
    list[Id | Entry],
    Meta(max_length=MAX_HISTORY, description="Items from the oldest to the latest; of an item twice the last counts."),
]


class GroupLimit(Request, kw_only=True):
    """How many items of one group a list may hold."""

    max: Annotated[int, Meta(ge=1, le=MAX_N)]


Items = Annotated[list[Id], Meta(max_length=MAX_ITEMS)]
Fields = Annotated[list[Word], Meta(max_length=20, description="Facts of the items to add, such as title.")]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_ID, pattern=r"^[^\x00]*$")]
ModelName = Annotated[str, Meta(max_length=MAX_ID)]


class Taste(Request, kw_only=True):
    """Whose list: a user, a history, or both (the history then adds to what is known of the user)."""

    user: Id | None = None
    history: History | None = None
    model: Annotated[ModelName | None, Meta(description="Name of the model; the first one unless given.")] = None


class RecommendRequest(Taste, kw_only=True):
    """A list of the best items."""

    n: N = 10
    items: Annotated[Items | None, Meta(description="Only these items are candidates.")] = None
    exclude: Annotated[Items | None, Meta(description="Never these items.")] = None
    exclude_seen: bool = True
    min_score: Number | None = None
    groups: GroupLimit | None = None
    popularity: Annotated[float, Meta(ge=-1, le=1, description="Above 0: better known items; below: less known.")] = 0.0
    diversity: Annotated[float, Meta(ge=0, le=1, description="0: by score alone; 1: as unlike as possible.")] = 0.0
    explain: Annotated[int, Meta(ge=0, le=MAX_EXPLAIN, description="Reasons for each item.")] = 0
    fields: Fields | None = None


class RankRequest(Taste, kw_only=True):
    """Own candidates in the order of their scores; items the user knows stay in."""

    items: Annotated[list[Id], Meta(min_length=1, max_length=MAX_ITEMS)]
    fields: Fields | None = None


class BatchRequest(Request, kw_only=True):
    """Many lists in one request."""

    requests: Annotated[list[RecommendRequest], Meta(min_length=1, max_length=MAX_BATCH)]


class ExplainRequest(Taste, kw_only=True):
    """Why an item has its score."""

    item: Id


class CompareRequest(Request, kw_only=True):
    """The lists of two or more models for the same taste."""

    models: Annotated[list[ModelName], Meta(min_length=2, max_length=8)]
    user: Id | None = None
    history: History | None = None
    n: N = 10
    exclude_seen: bool = True
    popularity: Annotated[float, Meta(ge=-1, le=1)] = 0.0
    diversity: Annotated[float, Meta(ge=0, le=1)] = 0.0
    groups: GroupLimit | None = None
    fields: Fields | None = None


class Reason(Struct):
    """What an item of the history gives to a score."""

    item: int | str
    part: float


class Listed(Struct, omit_defaults=True):
    """An item of a list."""

    item: int | str
    score: Annotated[float, Meta(description="The model's score, whatever the order was changed by.")]
    rank: int
    title: str | UnsetType = UNSET
    group: str | UnsetType | None = UNSET
    fields: dict[str, Any] | UnsetType = UNSET
    why: list[Reason] | UnsetType = UNSET


class Answer(Struct):
    """A list, and where it comes from."""

    id: Annotated[str, Meta(description="Name this recommendation in the events that it leads to.")]
    model: str
    version: Annotated[str, Meta(description="Fingerprint of the model file.")]
    source: Annotated[
        str,
        Meta(
            description='"user", "history", "fold-in" (a vector fitted to the history), or "popular" (nothing known).'
        ),
    ]
    fresh_through: Annotated[int | None, Meta(description="The last event of the user that counted.")]
    items: list[Listed]
    unknown_items: Annotated[list[int | str], Meta(description="Given items that the model does not know.")]
    took_ms: float


class Problem(Struct, omit_defaults=True):
    """What went wrong, in one sentence (RFC 9457)."""

    title: str
    status: int
    detail: str
    request_id: str | None = None


class BatchPart(Struct, omit_defaults=True):
    """The answer to one request of a batch, or its problem."""

    status: int
    answer: Answer | None = None
    problem: Problem | None = None


class BatchAnswer(Struct):
    """In the order of the requests."""

    answers: list[BatchPart]


class Part(Struct):
    """A part of a score."""

    item: int | str
    part: Annotated[float, Meta(description="What the item of the history gives to the score.")]
    parts: Annotated[dict[str, float], Meta(description="The same by kind; they add up to it.")]
    rank_without: Annotated[
        int | None, Meta(description="Rank of the explained item if this one were not in the history.")
    ]


class Explanation(Struct):
    """A score as a sum: `rest` and all parts add up to `score`."""

    model: str
    version: str
    item: int | str
    score: float
    rank: int | None
    parts: list[Part]
    rest: Annotated[dict[str, float], Meta(description="What does not come from the history, such as the bias.")]
    unknown_items: list[int | str]


class Pair(Struct):
    """How much of the lists of two models is the same."""

    models: list[str]
    shared: int
    overlap: Annotated[float, Meta(description="Shared items as a part of the longer list.")]
    moves: Annotated[dict[str, int], Meta(description="By shared item: its rank in the first list minus the second.")]


class Comparison(Struct):
    """Lists side by side."""

    answers: list[Answer]
    pairs: list[Pair]
    took_ms: float


# -- items ------------------------------------------------------------------------------------------------------------


class Item(Struct, omit_defaults=True):
    """An item of the catalog."""

    item: int | str
    title: str | None = None
    group: str | None = None
    fields: dict[str, Any] | UnsetType = UNSET
    popularity: Annotated[int | None, Meta(description="Training rows with it.")] = None


class ItemList(Struct):
    """Items found."""

    model: str
    items: list[Item]
    total: Annotated[int, Meta(description="How many items match.")]


class SimilarList(Struct):
    """The nearest items, nearest first."""

    model: str
    version: str
    item: int | str
    items: list[Listed]


class Point(Struct, omit_defaults=True):
    """An item on the map."""

    item: int | str
    x: float
    y: float
    title: str | None = None
    group: str | None = None


class ItemMap(Struct):
    """The best-known items in a plane: the two main components of the items' vectors, each within -1 and 1."""

    model: str
    version: str
    items: list[Point]
    total: int


# -- events -----------------------------------------------------------------------------------------------------------


class EventIn(Request, kw_only=True):
    """What a user did with an item."""

    user: Id
    item: Id
    type: Word | None = None
    value: Annotated[Number | None, Meta(description="A rating or a weight.")] = None
    time: Annotated[datetime, Meta(tz=True)] | Annotated[float, Meta(ge=0, le=1e11)] | None = None
    id: Annotated[
        Text | None,
        Meta(description="Of an id that came before nothing is stored: give one, and a retry does no harm."),
    ] = None
    recommendation: Word | None = None


class EventsRequest(Request, kw_only=True):
    """Events of any users."""

    events: Annotated[list[EventIn], Meta(min_length=1, max_length=MAX_EVENTS)]


class EventsReceipt(Struct):
    """Given when all events are safe on the disk, and not before."""

    accepted: int
    duplicates: int
    unknown_items: Annotated[list[int | str], Meta(description="Stored, but the first model does not know them.")]
    through: Annotated[int, Meta(description="Number of the last event that is stored.")]


class UserEvents(Struct):
    """What is known of a user: training rows of the first model, and the last events."""

    user: str
    training_rows: int
    events: list[Event]


class Forgotten(Struct):
    """What was forgotten."""

    user: str
    events: int
    training_rows: Annotated[int, Meta(description="Rows of the model that count no longer.")]


# -- the server -------------------------------------------------------------------------------------------------------


class ModelFacts(Struct):
    """A model that is served."""

    name: str
    kind: str
    version: str
    task: str
    users: int
    items: int
    training_rows: int
    value: Annotated[str | None, Meta(description='What the number of a row is: "ratings", "weights" or nothing.')]
    liked: Annotated[str | None, Meta(description="Which ratings count as liked.")]
    like: Annotated[float | None, Meta(description='The value that the type "like" stands for.')]
    dislike: float | None
    types: Annotated[list[str], Meta(description="Feedback types that the model knows.")]
    explains: bool
    similar: bool
    groups: bool
    modified: Annotated[float, Meta(description="When the file was written, in seconds since 1970.")]
    loaded: float
    events_through: int | None
    refused: Annotated[str | None, Meta(description="Why the newest file is not served, if it is not.")]


class ModelList(Struct):
    """All models; the first one answers where none is named."""

    models: list[ModelFacts]
    version: Annotated[str, Meta(description="Version of topnrank.")]


class ReloadRequest(Request, kw_only=True):
    """How to take in a new file."""

    force: Annotated[bool, Meta(description="Also a file that lacks items of the model that is served.")] = False


class Reloaded(Struct):
    """The model after the request; by this worker at once, by the others within a second."""

    model: str
    version: str
    changed: bool


class Latency(Struct):
    """Requests to a route, and how long they took, by all workers since the start."""

    route: str
    requests: int
    errors: int
    p50_ms: float | None
    p99_ms: float | None


class Status(Struct):
    """For operators."""

    version: str
    uptime_s: float
    workers: int
    models: list[ModelFacts]
    store: Annotated[str | None, Meta(description="Kind of the event store.")]
    events: int
    last_event: Annotated[float | None, Meta(description="Time of the last event.")]
    latency: list[Latency]
    refreshes: list[RefreshRecord]
