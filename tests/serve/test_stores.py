"""Event stores: one suite for SQLite and for a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.serving import postgres
from topnrank.errors import ParameterError
from topnrank.serve.store import Event, EventStore, open_store
from topnrank.serve.store.base import RefreshRecord

Opener = Callable[[], Any]


@pytest.fixture(scope="module")
def postgres_address() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store each time; it is empty at first."""
    if request.param == "sqlite":
        where = str(tmp_path / "events.db")
    else:
        where = request.getfixturevalue("postgres_address")
        asyncio.run(emptied(where))

    @asynccontextmanager
    async def opened() -> AsyncIterator[EventStore]:
        store = await open_store(where)
        try:
            yield store
        finally:
            await store.close()

    return opened


async def emptied(address: str) -> None:
    import psycopg

    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        names = ("about", "events", "forgotten", "refreshes")
        await connection.execute(f"drop table if exists {', '.join(f'topnrank_{name}' for name in names)}")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def event(user: str = "ann", item: str = "1", time: float = 0.0, **more: Any) -> Event:
    return Event(user, item, time, **more)


def test_events_come_back_as_they_went_in(opener):
    given = [
        event(type="buy", value=1.5, id="e1", recommendation="r_1", time=3.25),
        event(item="two words", time=2.0),
        event(user="bob ✓", time=1.0),
    ]

    async def work() -> None:
        async with opener() as store:
            receipt = await store.append(given)
            assert receipt[:2] == (3, 0)
            kept = await store.of_user("ann", 0, 10)
            assert [replace(one, seq=0) for one in kept.events] == [given[1], given[0]]  # by time
            assert (await store.of_user("ann", kept.events[1].seq, 10)).events == [kept.events[0]]
            identity = store.identity
        async with opener() as store:  # again, from the disk
            assert store.identity == identity
            assert [replace(one, seq=0) for one in await store.since(0, 10)] == given
            assert await store.since(0, 1) == (await store.since(0, 10))[:1]
            totals = await store.totals()
            assert (totals.events, totals.last_time, totals.last_seq) == (3, 1.0, receipt.through)

    run(work())


def test_an_id_counts_once(opener):
    async def work() -> None:
        async with opener() as store:
            first = await store.append([event(id="a"), event(id="b"), event(id="a"), event()])
            assert first[:2] == (3, 1)
            again = await store.append([event(id="a", item="9"), event(id="c")])
            assert again[:2] == (1, 1)
            assert len((await store.of_user("ann", 0, 10)).events) == 4

    run(work())


def test_many_at_once_are_all_there_and_numbers_grow(opener):
    async def work() -> None:
        async with opener() as store, opener() as other:
            stores = [store, other]
            receipts = await asyncio.gather(
                *(stores[n % 2].append([event(user=f"u{n % 7}", id=f"e{n}-{k}") for k in range(3)]) for n in range(200))
            )
            assert sum(one.accepted for one in receipts) == 600
            everything = await other.since(0, 1000)
            assert [one.id for one in everything if one.user == "u3"].count("e3-0") == 1
            assert len({one.id for one in everything}) == 600
            numbers = [one.seq for one in everything]
            assert numbers == sorted(set(numbers))

    run(work())


def test_whoever_reads_on_misses_nothing(opener):
    """Numbers become readable in their order, also with two writers: what comes later is above what was read."""

    async def work() -> None:
        seen: list[Event] = []
        async with opener() as one, opener() as two, opener() as reader:

            async def write(store: EventStore, name: str) -> None:
                for n in range(40):
                    await store.append([event(id=f"{name}{n}")])

            async def read() -> None:
                while len(seen) < 80:
                    seen.extend(await reader.since(seen[-1].seq if seen else 0, 1000))
                    await asyncio.sleep(0)

            await asyncio.wait_for(asyncio.gather(write(one, "a"), write(two, "b"), read()), 120)
            assert len({found.id for found in seen}) == 80

    run(work())


def test_a_forgotten_user_leaves_no_event_and_numbers_are_not_used_again(opener):
    async def work() -> None:
        async with opener() as store:
            await store.append([event(user="bob")])
            receipt = await store.append([event(), event()])
            assert await store.forget("ann") == 2
            kept = await store.of_user("ann", 0, 10)
            assert kept.events == []
            assert kept.forgotten == receipt.through
            assert await store.forgotten(0) == {"ann": receipt.through}
            assert await store.forgotten(receipt.through) == {}
            assert (await store.append([event()])).through > receipt.through
            assert (await store.of_user("bob", 0, 10)).forgotten == 0

    run(work())


def test_only_the_last_events_of_a_user_are_given(opener):
    async def work() -> None:
        async with opener() as store:
            await store.append([event(item=str(n)) for n in range(30)])
            assert [one.item for one in (await store.of_user("ann", 0, 4)).events] == ["26", "27", "28", "29"]

    run(work())


def test_the_log_of_refreshes(opener):
    async def work() -> None:
        async with opener() as store:
            lines = [RefreshRecord(float(n), "films", "updated", n, 0.5, None if n else 7) for n in range(4)]
            for line in lines:
                await store.log_refresh(line)
            assert await store.refreshes(3) == lines[:0:-1]
            await store.check()

    run(work())


def test_what_is_no_store_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "text.db").write_text("this is no database, however one looks at it" * 100)
    with pytest.raises(ParameterError, match="no SQLite database"):
        run(open_store(str(tmp_path / "text.db")))
    with pytest.raises(ParameterError, match="cannot be opened"):
        run(open_store(str(tmp_path / "no" / "folder" / "events.db")))
    with pytest.raises(ParameterError, match="redis:// is no event store"):
        run(open_store("redis://localhost"))
    with pytest.raises(ParameterError, match="does not answer or refuses"):
        run(open_store("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2"))
