"""Events in one SQLite file, in WAL mode, with group commit.

A commit costs one fsync, however many events it carries: a thread of its own collects what has come while the last commit
went on, and writes it as one transaction. Readers never wait for it.
"""

import asyncio
import errno
import logging
import os
import queue
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from msgspec.structs import astuple

from topnrank._checks import one_of
from topnrank.errors import ParameterError
from topnrank.serve.problems import StoreUnavailableError
from topnrank.serve.store.base import Event, Kept, Receipt, RefreshRecord, Totals

LOG = logging.getLogger("topnrank.serve")
DURABILITY = ("full", "normal")
GROUP = 512
"""Appends in one transaction, at most."""
BUSY_SECONDS = 10.0

_SCHEMA = """
create table if not exists about(name text primary key, value text not null);
create table if not exists events(
    seq integer primary key autoincrement, -- never used again, also after events were forgotten
    user text not null, item text not null, type text, value real, time real not null, id text unique,
    recommendation text);
create index if not exists by_user on events(user, seq);
create table if not exists forgotten(user text primary key, seq integer not null);
create table if not exists refreshes(
    time real not null, model text not null, result text not null, events integer not null, seconds real not null,
    through integer);
"""
_FIELDS = "user, item, time, type, value, id, recommendation"
_INSERT = f"insert into events({_FIELDS}) values (?, ?, ?, ?, ?, ?, ?) on conflict(id) do nothing"
_OF_USER = f"select {_FIELDS}, seq from events where user = ? and seq > ? order by seq desc limit ?"
_LAST = "select coalesce((select seq from sqlite_sequence where name = 'events'), 0)"

Work = Callable[[sqlite3.Connection], Any]


class _Job(NamedTuple):
    """A write that waits for its commit."""

    work: Work
    done: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop


class SqliteStore:
    """See `base.EventStore`; one object for each process and event loop."""

    kind = "sqlite"

    def __init__(self, path: str, *, durability: str = "full", patient: bool = True) -> None:
        self.path, self._durability = path, one_of("durability", durability, DURABILITY)
        self._identity = ""
        self._reader: sqlite3.Connection | None = None
        self._failed = False
        """Whether a write failed: SQLite's state of a disk that was full or read-only must not outlive it"""
        try:
            with _translated():
                self._read()
        except StoreUnavailableError as error:
            if error.for_good and not _may_pass(path):
                raise ParameterError(f"{path}: {error}; give another file") from None
            if not patient:
                raise
            LOG.warning("events: %s; the server starts, and tries again with each request", error)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        """A connection in autocommit mode, so that transactions begin and end where this file says."""
        made = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        made.execute("pragma journal_mode=wal")
        made.execute(f"pragma synchronous={self._durability}")
        return made

    def _read(self) -> sqlite3.Connection:
        """The connection that reads; the first time the tables are made, unless they are there."""
        if self._reader is None:
            made = self._connect()
            try:
                try:
                    found = made.execute("select value from about where name = 'identity'").fetchone()
                except sqlite3.OperationalError:
                    found = None
                if found is None:
                    made.executescript(_SCHEMA)
                    made.execute("insert or ignore into about values ('identity', ?)", (uuid.uuid4().hex,))
                    found = made.execute("select value from about where name = 'identity'").fetchone()
            except BaseException:
                made.close()
                raise
            self._identity, self._reader = found[0], made
        return self._reader

    @property
    def identity(self) -> str:
        """See `base.EventStore`; empty while the file cannot be read."""
        if self._reader is None:
            with suppress(StoreUnavailableError), _translated():
                self._read()
        return self._identity

    # -- writing ------------------------------------------------------------------------------------------------------

    async def append(self, events: Sequence[Event]) -> Receipt:
        """See `base.EventStore`."""
        rows = [astuple(event)[:7] for event in events]

        def insert(connection: sqlite3.Connection) -> Receipt:
            accepted = connection.executemany(_INSERT, rows).rowcount
            return Receipt(accepted, len(rows) - accepted, connection.execute(_LAST).fetchone()[0])

        return await self._do(insert)  # type: ignore[no-any-return]

    async def forget(self, user: str) -> int:
        """See `base.EventStore`."""

        def remove(connection: sqlite3.Connection) -> int:
            through = connection.execute(_LAST).fetchone()[0]
            connection.execute("insert or replace into forgotten values (?, ?)", (user, max(1, through)))
            return connection.execute("delete from events where user = ?", (user,)).rowcount

        return await self._do(remove)  # type: ignore[no-any-return]

    async def log_refresh(self, record: RefreshRecord) -> None:
        """See `base.EventStore`."""
        await self._do(
            lambda connection: connection.execute("insert into refreshes values (?, ?, ?, ?, ?, ?)", astuple(record))
        )

    async def check(self) -> None:
        """A transaction that writes something, without an fsync of its own."""
        await self._do(
            lambda connection: connection.execute("insert or replace into about values ('checked', ?)", (time.time(),))
        )

    async def _do(self, work: Work) -> Any:
        """Hands work to the writing thread; returns its result after the commit."""
        if not self._thread.is_alive():
            raise StoreUnavailableError("the event store is closed; try again")
        if self._failed and self._reader is not None:
            self._reader.close()
            self._reader, self._failed = None, False
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.create_future(), loop)
        self._jobs.put(job)
        return await job.done

    def _write(self) -> None:
        """The writing thread: one transaction after the other until the store is closed."""
        connection: sqlite3.Connection | None = None
        closing = False
        while not closing:
            group: list[_Job] = []
            job = self._jobs.get()
            while True:
                if job is None:
                    closing = True
                else:
                    group.append(job)
                if closing or len(group) >= GROUP:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            if group:
                connection = self._commit(connection, group)
        if connection is not None:
            connection.close()

    def _commit(self, connection: sqlite3.Connection | None, group: list[_Job]) -> sqlite3.Connection | None:
        """Writes a group as one transaction, and tells who waits; a connection that failed is not used again."""
        try:
            with _translated():
                if connection is None:
                    connection = self._connect()
                    connection.executescript(_SCHEMA)
                connection.execute("begin immediate")
                results = [job.work(connection) for job in group]
                connection.execute("commit")
        except Exception as error:
            if connection is not None:
                connection.close()  # which rolls back
            self._failed = True
            if len(group) > 1 and not isinstance(error, StoreUnavailableError):  # one job must not spoil the others
                for job in group:
                    self._close(self._commit(None, [job]))
                return None
            for job in group:
                _tell(job, None, error)
            return None
        for job, result in zip(group, results, strict=True):
            _tell(job, result, None)
        return connection

    def _close(self, connection: sqlite3.Connection | None) -> None:
        if connection is not None:
            connection.close()

    # -- reading ------------------------------------------------------------------------------------------------------

    async def of_user(self, user: str, after: int, limit: int) -> Kept:
        """See `base.EventStore`."""
        with _translated():
            found = self._read().execute("select seq from forgotten where user = ?", (user,)).fetchone()
            rows = self._read().execute(_OF_USER, (user, after, limit)).fetchall()
        events = [Event(*row) for row in reversed(rows)]
        if len(events) > 1:
            events.sort(key=_by_time)
        return Kept(events, found[0] if found else 0)

    async def since(self, after: int, limit: int) -> list[Event]:
        """See `base.EventStore`."""
        with _translated():
            sql = f"select {_FIELDS}, seq from events where seq > ? order by seq limit ?"
            return [Event(*row) for row in self._read().execute(sql, (after, limit))]

    async def forgotten(self, after: int) -> dict[str, int]:
        """See `base.EventStore`."""
        with _translated():
            return dict(self._read().execute("select user, seq from forgotten where seq > ?", (after,)).fetchall())

    async def totals(self) -> Totals:
        """See `base.EventStore`."""
        with _translated():
            count = self._read().execute("select count(*) from events").fetchone()[0]
            newest = self._read().execute("select time from events order by seq desc limit 1").fetchone()
            return Totals(count, newest[0] if newest else None, self._read().execute(_LAST).fetchone()[0])

    async def refreshes(self, limit: int) -> list[RefreshRecord]:
        """See `base.EventStore`."""
        with _translated():
            sql = "select * from refreshes order by time desc limit ?"
            return [RefreshRecord(*row) for row in self._read().execute(sql, (limit,))]

    async def close(self) -> None:
        """Writes what waits; the last connection leaves the one file, without a log beside it."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        if self._reader is not None:
            self._reader.close()


def _by_time(event: Event) -> tuple[float, int]:
    return event.time, event.seq


def _tell(job: _Job, result: Any, error: Exception | None) -> None:
    """Resolves a future from another thread, unless its request or its loop is gone."""

    def resolve() -> None:
        if job.done.done():
            return
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(error)

    try:
        job.loop.call_soon_threadsafe(resolve)
    except RuntimeError:  # the loop is closed
        return


_REASONS = {
    "SQLITE_FULL": "the disk is full; nothing was stored",
    "SQLITE_READONLY": "the event store may only be read; nothing was stored",
    "SQLITE_BUSY": "the event store is busy; nothing was stored",
    "SQLITE_IOERR": "the disk does not take or give the data; nothing was stored",
    "SQLITE_CANTOPEN": "the event store cannot be opened",
    "SQLITE_NOTADB": "the file of the event store is no SQLite database",
    "SQLITE_CORRUPT": "the file of the event store is damaged",
}
_FOR_GOOD = ("SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_CORRUPT")
"""What does not pass by itself."""


def _may_pass(path: str) -> bool:
    """Whether SQLite could not open a file that can be opened now, or is kept from it by a full or broken disk only."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        with open(path, "rb") as file:
            return file.read(16) in (b"", b"SQLite format 3\0")
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of SQLite as a StoreUnavailableError, without the path."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        reason = next((text for code, text in _REASONS.items() if name.startswith(code)), None)
        for_good = name.startswith(_FOR_GOOD)
        raise StoreUnavailableError(reason or "the event store does not work now", for_good=for_good) from error
