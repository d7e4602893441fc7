"""What an event store promises.

An event is acknowledged when it is safe on the disk and every worker can read it. Events are numbered in the order in which
they became readable: whoever has read up to a number has missed nothing below it. An id that came before is not stored
again. A store has an identity, so that a model knows whose events it was trained on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from topnrank.errors import DiskError, ParameterError
from topnrank.serve.problems import StoreUnavailableError

__all__ = [
    "Event",
    "EventStore",
    "Kept",
    "Receipt",
    "RefreshRecord",
    "StoreUnavailableError",
    "Totals",
    "for_commands",
    "open_store",
]

POSTGRES = ("postgresql://", "postgres://")


class Event(Struct, omit_defaults=True):
    """What a user did with an item; `seq` is 0 until it is stored."""

    user: str
    item: str
    time: float
    type: str | None = None
    value: float | None = None
    id: str | None = None
    recommendation: str | None = None
    seq: int = 0


class Receipt(NamedTuple):
    """An acknowledgement."""

    accepted: int
    duplicates: int
    through: int


class Kept(NamedTuple):
    """What a store knows of a user."""

    events: list[Event]
    """By time, the oldest first"""
    forgotten: int
    """What the user did up to this number is forgotten, training rows included; 0 for nothing"""


class RefreshRecord(Struct):
    """A line of the log of refreshes."""

    time: float
    model: str
    result: str
    events: int
    seconds: float
    through: int | None


class Totals(NamedTuple):
    """The whole store in numbers."""

    events: int
    last_time: float | None
    last_seq: int


class EventStore(Protocol):
    """Events by user, durable; what fails for now raises StoreUnavailableError."""

    kind: str

    @property
    def identity(self) -> str:
        """Of this store and no other."""
        ...

    async def append(self, events: Sequence[Event]) -> Receipt:
        """Returns when the events are durable and readable by everybody."""
        ...

    async def of_user(self, user: str, after: int, limit: int) -> Kept:
        """The last `limit` events of a user with a number above `after`."""
        ...

    async def since(self, after: int, limit: int) -> list[Event]:
        """The first `limit` events with a number above `after`, in the order of numbers."""
        ...

    async def forgotten(self, after: int) -> dict[str, int]:
        """Users who were forgotten at a number above `after`, and that number."""
        ...

    async def forget(self, user: str) -> int:
        """Removes the user's events and remembers that rows of training do not count either; returns how many."""
        ...

    async def totals(self) -> Totals:
        """How many events there are."""
        ...

    async def check(self) -> None:
        """StoreUnavailableError unless the store can be written now."""
        ...

    async def log_refresh(self, record: RefreshRecord) -> None:
        """Adds a line to the log of refreshes."""
        ...

    async def refreshes(self, limit: int) -> list[RefreshRecord]:
        """The last lines of the log, the newest first."""
        ...

    async def close(self) -> None:
        """Writes what waits, and closes."""
        ...


@contextmanager
def for_commands(where: str) -> Iterator[None]:
    """A StoreUnavailableError as a DiskError: a server tries again with the next request, and a command ends."""
    try:
        yield
    except StoreUnavailableError as error:
        shown = "--events" if where.startswith(POSTGRES) else where  # an address may hold a password
        raise DiskError(f"{shown}: {error}; mend that, and run the command again") from error


async def open_store(where: str, *, durability: str = "full", must_exist: bool = False) -> EventStore:
    """The store at a path of a file (SQLite) or a postgresql:// address; made if it is not there, unless it must be."""
    if where.startswith(POSTGRES):
        from topnrank.serve.store.postgres import PostgresStore

        return await PostgresStore.open(where, durability=durability)
    if "://" in where:
        raise ParameterError(
            f"events: {where.partition('://')[0]}:// is no event store; give a file or postgresql://..."
        )
    if must_exist and not Path(where).is_file():
        raise ParameterError(f"{where}: there is no such file of events; 'topnrank serve --events' makes one")
    from topnrank.serve.store.sqlite import SqliteStore

    return await asyncio.to_thread(SqliteStore, where, durability=durability, patient=not must_exist)
