"""Commands around a store that cannot be written, read or opened: one sentence, and nothing is lost."""

import asyncio
import errno
import os
import sqlite3
from pathlib import Path

import pytest

from topnrank.cli.exit_codes import guarded
from topnrank.errors import DiskError, ParameterError
from topnrank.serve.refresh import Request, refresh
from topnrank.serve.store.base import Event, StoreUnavailableError, open_store
from topnrank.serve.store.sqlite import SqliteStore


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A store with one event of a user and an item that the models know."""

    async def fill() -> None:
        store = await open_store(str(tmp_path / "events.db"))
        await store.append([Event("10", "5", 1e9, value=4.0)])
        await store.close()

    asyncio.run(fill())
    return tmp_path / "events.db"


@pytest.fixture
def live(serving: Path, tmp_path: Path) -> Path:
    path = tmp_path / "live.safetensors"
    path.write_bytes((serving / "films.safetensors").read_bytes())
    return path


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def stores_nothing(*_: object) -> None:
    raise StoreUnavailableError("the disk is full; nothing was stored")


def cannot_open(_: SqliteStore) -> None:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"  # type: ignore[misc]
    raise error


def test_a_refresh_whose_log_cannot_be_written_is_one_sentence_and_counts_once(live, events, monkeypatch, capsys):
    before = live.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_do", stores_nothing)
        assert guarded(["refresh", str(live), "--events", str(events)]) == 1
    said = capsys.readouterr().err
    assert (said.count("\n"), said.startswith(f"topnrank: {events}: the disk is full")) == (1, True)
    learned = live.read_bytes()
    assert learned != before
    assert asyncio.run(refresh(Request(str(live), str(events)))).result == "nothing new"
    assert live.read_bytes() == learned


def test_what_went_wrong_first_is_told_where_the_log_cannot_be_written_either(live, events, monkeypatch):
    before = live.read_bytes()
    monkeypatch.setattr("topnrank.io.atomic.os.fsync", full)
    monkeypatch.setattr(SqliteStore, "_do", stores_nothing)
    with pytest.raises(DiskError, match=r"live\.safetensors: the disk is full"):
        asyncio.run(refresh(Request(str(live), str(events))))
    assert live.read_bytes() == before


def test_an_export_that_cannot_be_written_closes_the_store(events, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("topnrank.io.atomic.os.fsync", full)
    assert guarded(["events", "export", str(events), "-o", str(tmp_path / "all.csv")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.db"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_does_not_let_a_store_be_opened_is_waited_for_by_servers_only(tmp_path, monkeypatch, code):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    file = tmp_path / "events.db"
    file.touch()
    monkeypatch.setattr(SqliteStore, "_connect", cannot_open)
    with pytest.raises(ParameterError, match="cannot be opened"):
        SqliteStore(str(tmp_path))  # a folder
    monkeypatch.setattr("topnrank.serve.store.sqlite.os.open", refuse)
    with pytest.raises(StoreUnavailableError):
        SqliteStore(str(file), patient=False)
    store = SqliteStore(str(file))
    monkeypatch.undo()
    asyncio.run(store.check())
    asyncio.run(store.close())
