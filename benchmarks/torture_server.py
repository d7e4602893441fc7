"""A server that stores and forgets events: the application of `topnrank serve` in this process, called as a host calls it.

What it has acknowledged is written to a file beside the folder, where no fault reaches it: after a kill it must be there.
"""

import asyncio
import json
import logging
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

SERVER = "serve"
GONE = "3"
"""A user who is forgotten in the end."""
REQUESTS = [
    [(user, item) for user in ("1", "2", GONE, "77") for item in range(first, first + 3)] for first in (0, 3, 6)
]
"""Pairs of user and item of each request to store events."""


class Stored(NamedTuple):
    """An event, without its number: one that is stored again after a kill gets another."""

    id: str
    user: str
    item: str
    value: float


def events_of(pairs: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """The events of one request; their ids make a second attempt harmless."""
    return [
        {"user": user, "item": item, "value": 1 + item % 5, "time": 1e9 + item, "id": f"{user}-{item}"}
        for user, item in pairs
    ]


def serve(model: str, events: str) -> int:
    """Starts the application, sends it all requests, and ends it; the exit code of a client that stops where one fails."""
    from topnrank.errors import InputError

    logging.getLogger("topnrank.serve").addHandler(logging.NullHandler())  # its answers are looked at
    try:
        return asyncio.run(_served(model, Path(events)))
    except InputError as error:  # the server does not start
        print(f"topnrank: {error}", file=sys.stderr)
        return 2


async def _served(model: str, events: Path) -> int:
    from topnrank.serve import create_app

    app = create_app(model, events=str(events), watch_seconds=0.0)
    told = _told(events.parent)
    async with app.router.lifespan_context(app):
        for pairs in REQUESTS:
            status, answer = await _send(app, "POST", "/v1/events", {"events": events_of(pairs)})
            if status != 202:
                return _refused(status, answer)
            kept = [Stored(one["id"], one["user"], str(one["item"]), one["value"]) for one in events_of(pairs)]
            told.write_text(json.dumps([*_read(told), *kept]))
        told.write_text(json.dumps([one for one in _read(told) if one.user != GONE]))  # from now on they may be gone
        status, answer = await _send(app, "DELETE", f"/v1/users/{GONE}", {})
        if status != 200:
            return _refused(status, answer)
    return 0


def _refused(status: int, answer: Any) -> int:
    """503 is the server's word for a disk that does not take events; anything else is a defect."""
    print(f"topnrank: {'' if status == 503 else 'unexpected '}{status} {answer['detail']}", file=sys.stderr)
    return 1


async def _send(app: Any, method: str, path: str, body: Any) -> tuple[int, Any]:
    """A request as ASGI knows it: status and answer."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:]))


def acknowledged(folder: Path) -> set[Stored]:
    """The events that the server in this folder said are stored, without those that it was asked to forget."""
    return set(_read(_told(folder)))


def stored(file: Path) -> set[Stored]:
    """The events in the store."""
    if not file.exists():
        return set()
    with closing(sqlite3.connect(file)) as database:
        if database.execute("pragma integrity_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("SQLite finds it damaged")
        if not database.execute("select 1 from sqlite_master where name = 'events'").fetchall():
            return set()
        rows = database.execute("select id, user, item, value from events").fetchall()
    if len(rows) != len(set(rows)):
        raise sqlite3.DatabaseError("it holds events twice")
    return {Stored(*row) for row in rows}


def _told(folder: Path) -> Path:
    return folder.with_name("told.json")


def _read(told: Path) -> list[Stored]:
    return [Stored(*one) for one in json.loads(told.read_text())] if told.exists() else []
