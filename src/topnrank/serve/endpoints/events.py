"""Events: storing them, what is known of a user, and forgetting."""

import time
from datetime import datetime
from typing import TYPE_CHECKING

from topnrank.serve.endpoints.base import Call, Route
from topnrank.serve.problems import ProblemError
from topnrank.serve.store.base import Event, EventStore
from topnrank.serve.tastes import numbers_of, user_number
from topnrank.serve.wire import EventIn, EventsReceipt, EventsRequest, Forgotten, UserEvents

if TYPE_CHECKING:
    from topnrank.serve.app import Server

SHOWN = 1000
"""The last events of a user that are shown."""


async def store_events(server: "Server", call: Call) -> EventsReceipt:
    """Stores events; the answer comes when they are safe on the disk and count in every worker's next answer."""
    body: EventsRequest = call.body
    store, now = _store(server), time.time()
    receipt = await store.append([_event(one, now) for one in body.events])
    model = server.models.get(None).model
    ids = list(dict.fromkeys(one.item for one in body.events))
    unknown = [one for one, number in zip(ids, numbers_of(model, ids), strict=True) if number < 0]
    server.metrics.events.labels("accepted").inc(receipt.accepted)
    if receipt.duplicates:
        server.metrics.events.labels("duplicate").inc(receipt.duplicates)
    if unknown:
        server.metrics.unknown_items.inc(len(unknown))
    return EventsReceipt(receipt.accepted, receipt.duplicates, unknown, receipt.through)


def _event(given: EventIn, now: float) -> Event:
    moment = given.time
    seconds = now if moment is None else moment.timestamp() if isinstance(moment, datetime) else float(moment)
    return Event(str(given.user), str(given.item), seconds, given.type, given.value, given.id, given.recommendation)


async def events_of_user(server: "Server", call: Call) -> UserEvents:
    """Training rows of the first model, and the last events."""
    user, served = call.path["user"], server.models.get(None)
    kept = await _store(server).of_user(user, 0, SHOWN)
    number = -1 if kept.forgotten else user_number(served.model, user)
    rows = 0 if number < 0 else int(served.model.seen_indptr[number + 1] - served.model.seen_indptr[number])
    return UserEvents(user, rows, kept.events)


async def forget(server: "Server", call: Call) -> Forgotten:
    """Removes the user's events, and from now on passes over the user's training rows.

    They leave the model file, and their part in the items' vectors, with the next full training (`topnrank refresh --data`).
    """
    user, served = call.path["user"], server.models.get(None)
    events = await _store(server).forget(user)
    number = user_number(served.model, user)
    rows = 0 if number < 0 else int(served.model.seen_indptr[number + 1] - served.model.seen_indptr[number])
    return Forgotten(user, events, rows)


def _store(server: "Server") -> EventStore:
    if server.store is None:
        raise ProblemError(409, "this server keeps no events; start it with --events FILE, or a postgresql:// address")
    return server.store


ROUTES = [
    Route(
        "POST",
        "/v1/events",
        "write",
        store_events,
        EventsReceipt,
        body=EventsRequest,
        lines=EventIn,
        status=202,
        problems=(409, 503),
        tag="events",
    ),
    Route("GET", "/v1/users/{user}/events", "read", events_of_user, UserEvents, problems=(409, 503), tag="events"),
    Route("DELETE", "/v1/users/{user}", "write", forget, Forgotten, problems=(409, 503), tag="events"),
]
