"""Events in PostgreSQL, for servers on several machines.

Transactions that write take one lock, so that numbers become readable in their order: without it a reader may see number
8 before number 7 and miss that one forever. Group commit makes up for the waiting: each worker writes all that has come
meanwhile as one transaction.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

from msgspec.structs import astuple

from topnrank._checks import one_of
from topnrank.errors import ParameterError
from topnrank.serve.problems import StoreUnavailableError
from topnrank.serve.store.base import Event, Kept, Receipt, RefreshRecord, Totals

try:
    import psycopg
    from psycopg_pool import AsyncConnectionPool, PoolTimeout
except ImportError as missing:
    raise ParameterError(
        "events in PostgreSQL need psycopg, which is not installed; install it with: pip install 'topnrank[postgres]'"
    ) from missing

DURABILITY = {"full": "on", "normal": "off"}
GROUP = 512
READERS = 4
"""Connections of a worker that read."""
WAIT_SECONDS = 10
_LOCK = 0x746F706E
"""Of all that writes; any number that nobody else uses."""

_SCHEMA = f"""
select pg_advisory_xact_lock({_LOCK});
create table if not exists topnrank_about(name text primary key, value text not null);
create table if not exists topnrank_events(
    seq bigint generated always as identity primary key, "user" text not null, item text not null, type text,
    value double precision, time double precision not null, id text unique, recommendation text);
create index if not exists topnrank_events_by_user on topnrank_events("user", seq);
create table if not exists topnrank_forgotten("user" text primary key, seq bigint not null);
create table if not exists topnrank_refreshes(
    time double precision not null, model text not null, result text not null, events bigint not null,
    seconds double precision not null, through bigint);
insert into topnrank_about values ('identity', '{{identity}}') on conflict do nothing;
"""
_FIELDS = '"user", item, time, type, value, id, recommendation'
_INSERT = f"""insert into topnrank_events({_FIELDS})
select * from unnest(%s::text[], %s::text[], %s::float8[], %s::text[], %s::float8[], %s::text[], %s::text[])
on conflict(id) do nothing"""
_LAST = "select coalesce((select max(seq) from topnrank_events), 0)"
_OF_USER = f'select {_FIELDS}, seq from topnrank_events where "user" = %s and seq > %s order by seq desc limit %s'

Work = Callable[["psycopg.AsyncConnection[Any]"], Awaitable[Any]]


class _Job(NamedTuple):
    """A write that waits for its commit."""

    work: Work
    done: "asyncio.Future[Any]"


class PostgresStore:
    """See `base.EventStore`; one object for each process."""

    kind = "postgresql"

    def __init__(self, pool: "AsyncConnectionPool[Any]", identity: str) -> None:
        self.identity, self._pool = identity, pool
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._writer = asyncio.create_task(self._write())

    @classmethod
    async def open(cls, address: str, *, durability: str = "full") -> Self:
        """Connects, and makes the tables if they are not there."""
        setting = DURABILITY[one_of("durability", durability, tuple(DURABILITY))]
        settings = {"autocommit": True, "options": f"-c synchronous_commit={setting}"}
        pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            address, kwargs=settings, min_size=1, max_size=READERS + 1, timeout=WAIT_SECONDS, open=False
        )
        try:
            async with await psycopg.AsyncConnection.connect(
                address, autocommit=True, connect_timeout=WAIT_SECONDS
            ) as one:
                async with one.transaction():
                    await one.execute(_SCHEMA.format(identity=uuid.uuid4().hex))
                found = await one.execute("select value from topnrank_about where name = 'identity'")
                ((identity,),) = await found.fetchall()
        except psycopg.Error as error:
            reason = str(error).partition("\n")[0]
            raise ParameterError(
                f"events: the PostgreSQL server does not answer or refuses ({reason}); check the address"
            ) from None
        await pool.open()
        return cls(pool, identity)

    # -- writing ------------------------------------------------------------------------------------------------------

    async def append(self, events: Sequence[Event]) -> Receipt:
        """See `base.EventStore`."""
        columns = [list(column) for column in zip(*(astuple(event)[:7] for event in events), strict=True)]

        async def insert(connection: "psycopg.AsyncConnection[Any]") -> Receipt:
            accepted = (await connection.execute(_INSERT, columns)).rowcount
            return Receipt(accepted, len(events) - accepted, await _number(connection, _LAST))

        return await self._do(insert)  # type: ignore[no-any-return]

    async def forget(self, user: str) -> int:
        """See `base.EventStore`."""

        async def remove(connection: "psycopg.AsyncConnection[Any]") -> int:
            through = max(1, await _number(connection, _LAST))
            sql = 'insert into topnrank_forgotten values (%s, %s) on conflict("user") do update set seq = excluded.seq'
            await connection.execute(sql, (user, through))
            return int((await connection.execute('delete from topnrank_events where "user" = %s', (user,))).rowcount)

        return await self._do(remove)  # type: ignore[no-any-return]

    async def log_refresh(self, record: RefreshRecord) -> None:
        """See `base.EventStore`."""
        sql = "insert into topnrank_refreshes values (%s, %s, %s, %s, %s, %s)"
        await self._do(lambda connection: connection.execute(sql, astuple(record)))

    async def check(self) -> None:
        """A transaction that writes something."""
        sql = "insert into topnrank_about values ('checked', now()) on conflict(name) do update set value = excluded.value"
        await self._do(lambda connection: connection.execute(sql))

    async def _do(self, work: Work) -> Any:
        if self._writer.done():
            raise StoreUnavailableError("the event store is closed; try again")
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        return await job.done

    async def _write(self) -> None:
        """One transaction after the other until the store is closed."""
        closing = False
        while not closing:
            group: list[_Job] = []
            job = await self._jobs.get()
            while True:
                if job is None:
                    closing = True
                else:
                    group.append(job)
                if closing or len(group) >= GROUP or self._jobs.empty():
                    break
                job = self._jobs.get_nowait()
            if group:
                await self._commit(group)

    async def _commit(self, group: list[_Job]) -> None:
        """Writes a group as one transaction, and tells who waits."""
        try:
            async with self._connection() as connection, connection.transaction():
                await connection.execute(f"select pg_advisory_xact_lock({_LOCK})")
                results = [await job.work(connection) for job in group]
        except Exception as error:
            if len(group) > 1 and not isinstance(error, StoreUnavailableError):  # one job must not spoil the others
                for job in group:
                    await self._commit([job])
                return
            for job in group:
                if not job.done.done():
                    job.done.set_exception(error)
            return
        for job, result in zip(group, results, strict=True):
            if not job.done.done():
                job.done.set_result(result)

    # -- reading ------------------------------------------------------------------------------------------------------

    async def of_user(self, user: str, after: int, limit: int) -> Kept:
        """See `base.EventStore`."""
        async with self._connection() as connection:
            sql = 'select coalesce((select seq from topnrank_forgotten where "user" = %s), 0)'
            forgotten = await _number(connection, sql, (user,))
            rows = await (await connection.execute(_OF_USER, (user, after, limit))).fetchall()
        events = [Event(*row) for row in reversed(rows)]
        events.sort(key=lambda event: (event.time, event.seq))
        return Kept(events, forgotten)

    async def since(self, after: int, limit: int) -> list[Event]:
        """See `base.EventStore`."""
        sql = f"select {_FIELDS}, seq from topnrank_events where seq > %s order by seq limit %s"
        return [Event(*row) for row in await self._rows(sql, (after, limit))]

    async def forgotten(self, after: int) -> dict[str, int]:
        """See `base.EventStore`."""
        return dict(await self._rows('select "user", seq from topnrank_forgotten where seq > %s', (after,)))

    async def totals(self) -> Totals:
        """See `base.EventStore`."""
        ((count, last),) = await self._rows("select count(*), coalesce(max(seq), 0) from topnrank_events", ())
        newest = await self._rows("select time from topnrank_events where seq = %s", (last,))
        return Totals(count, newest[0][0] if newest else None, last)

    async def refreshes(self, limit: int) -> list[RefreshRecord]:
        """See `base.EventStore`."""
        sql = "select * from topnrank_refreshes order by time desc limit %s"
        return [RefreshRecord(*row) for row in await self._rows(sql, (limit,))]

    async def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        async with self._connection() as connection:
            return list(await (await connection.execute(sql, values)).fetchall())

    async def close(self) -> None:
        """Writes what waits, and closes."""
        self._jobs.put_nowait(None)
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer
        await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> "AsyncIterator[psycopg.AsyncConnection[Any]]":
        """A connection of the pool; what it cannot do now is a StoreUnavailableError."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, psycopg.InternalError, PoolTimeout) as error:
            raise StoreUnavailableError(_reason(error)) from error


async def _number(connection: "psycopg.AsyncConnection[Any]", sql: str, values: Sequence[Any] = ()) -> int:
    ((number,),) = await (await connection.execute(sql, values)).fetchall()
    return int(number)


def _reason(error: Exception) -> str:
    """Words for what the server says, without what it says."""
    code = getattr(error, "sqlstate", None) or ""
    if code == "53100":
        return "the disk of the event store is full; nothing was stored"
    if code in ("25006", "57P03"):
        return "the event store may only be read now; nothing was stored"
    return "the event store does not answer; nothing was stored"
