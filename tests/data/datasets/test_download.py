"""Fetching over HTTP from a real server on loopback."""

import hashlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.file_server import FileServer, serving
from topnrank.data.datasets.download import download, published_md5
from topnrank.errors import DataError, OutputError

CONTENT = bytes(range(256)) * 4000
HALF = len(CONTENT) // 2
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(FileServer(files={"a.zip": CONTENT})) as running:
        yield running


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "a.zip"


def fetch(server: FileServer, target: Path, expected: str | None = MD5) -> str | None:
    return download(f"{server.address}/a.zip", target, md5=lambda: expected)


def left_over(target: Path) -> list[str]:
    """What lies beside the target, apart from the lock."""
    return sorted(path.name for path in target.parent.iterdir() if path.suffix != ".lock")


def test_a_whole_file(server: FileServer, target: Path) -> None:
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert left_over(target) == ["a.zip"]
    assert fetch(server, target) is None
    assert len(server.asked) == 1


def test_a_broken_connection_goes_on_where_it_broke(server: FileServer, target: Path) -> None:
    server.breaks = [HALF]
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert [(one.range, one.sent) for one in server.asked] == [(None, HALF), (f"bytes={HALF}-", len(CONTENT) - HALF)]
    assert server.asked[1].if_range is not None
    assert left_over(target) == ["a.zip"]


def test_a_later_call_goes_on_where_it_broke(server: FileServer, target: Path) -> None:
    server.breaks = [HALF, 0]
    with pytest.raises(DataError, match=rf"a\.zip: the connection broke off after {HALF:,} bytes; run it again"):
        fetch(server, target)
    assert left_over(target) == ["a.zip.part", "a.zip.part.tag"]
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert [one.sent for one in server.asked] == [HALF, 0, len(CONTENT) - HALF]


def test_by_date_where_there_is_no_tag(server: FileServer, target: Path) -> None:
    server.sends, server.breaks = ("Last-Modified", "Content-Length"), [HALF]
    assert fetch(server, target) == MD5
    assert server.asked[1].if_range == "Mon, 17 Oct 2016 08:00:00 GMT"
    assert server.asked[1].sent == len(CONTENT) - HALF


def test_a_file_that_changed_meanwhile_is_fetched_anew(server: FileServer, target: Path) -> None:
    server.breaks = [HALF, 0]
    with pytest.raises(DataError):
        fetch(server, target)
    server.files["a.zip"] = CONTENT[::-1]
    assert fetch(server, target, None) is None
    assert target.read_bytes() == CONTENT[::-1]
    assert server.asked[-1].sent == len(CONTENT)


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_servers_of_which_the_rest_cannot_be_asked(knows_ranges: bool, server: FileServer, target: Path) -> None:
    """One that has no tags, so that the rest might be of another version; one that knows no ranges."""
    server.knows_ranges, server.breaks = knows_ranges, [1000]
    if knows_ranges:
        server.sends = ("Content-Length",)
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert server.asked[-1].sent == len(CONTENT)
    assert (server.asked[-1].range is None) is knows_ranges


@pytest.mark.parametrize("breaks", [(), (HALF,)])
def test_a_file_in_chunks_of_unknown_length(breaks: tuple[int, ...], server: FileServer, target: Path) -> None:
    server.chunked, server.sends, server.breaks = True, ("ETag",), [*breaks]
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert [one.sent for one in server.asked] == ([HALF, HALF] if breaks else [len(CONTENT)])


@pytest.mark.parametrize("extra", [b"", b"too much"])
def test_a_part_that_is_whole_or_too_long(extra: bytes, server: FileServer, target: Path) -> None:
    """As after a kill between the last byte and the renaming, or after a change of the file."""
    server.breaks = [HALF, 0]
    with pytest.raises(DataError):
        fetch(server, target)
    part = target.with_name("a.zip.part")
    part.write_bytes(CONTENT + extra)
    assert fetch(server, target) == MD5
    assert target.read_bytes() == CONTENT
    assert server.asked[-1].sent == (len(CONTENT) if extra else 0)


def test_a_wrong_checksum(server: FileServer, target: Path) -> None:
    with pytest.raises(DataError, match=rf"has the MD5 checksum {MD5}, the published one is {'0' * 32}; it was thrown"):
        fetch(server, target, "0" * 32)
    assert left_over(target) == ["a.zip.part.tag"]
    assert fetch(server, target) == MD5
    assert server.asked[-1].range is None


def test_another_part_than_asked_for(server: FileServer, target: Path) -> None:
    server.breaks, server.wrong_start = [HALF], True
    with pytest.raises(DataError, match="another part of the file than asked for"):
        fetch(server, target)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "no longer at that address"), (503, "try again later"), (403, "login; fetch the file")]
)
def test_answers_that_are_no_file(status: int, words: str, server: FileServer, target: Path) -> None:
    server.statuses["a.zip"] = status
    with pytest.raises(DataError, match=rf"a\.zip: the server answered {status} .*{words}"):
        fetch(server, target)
    assert left_over(target) == []


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.zip"
        with pytest.raises(DataError, match=r"a\.zip: cannot be reached \(.*refused.*\); check the network"):
            download(url, tmp_path / "a.zip")


def test_a_server_that_never_stops_breaking(server: FileServer, target: Path) -> None:
    server.breaks = [100] * 50
    with pytest.raises(DataError, match="broke off after 1,000 bytes"):
        fetch(server, target)
    assert len(server.asked) == 10


def test_a_place_that_cannot_be_written(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(OutputError, match=r"cache.*cannot be written.*TOPNRANK_CACHE"):
        fetch(server, tmp_path / "cache" / "a.zip")


def test_two_at_once_fetch_it_once(server: FileServer, target: Path) -> None:
    together = threading.Barrier(2)
    found: list[str | None] = []

    def work() -> None:
        together.wait()
        found.append(fetch(server, target))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [MD5, None]
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"MD5 (a.zip) = {MD5}\n", MD5),
        (f"{MD5.upper()}  a.zip\n", MD5),
        ("<html>moved</html>", None),
        (f"{MD5}0 is too long", None),
    ],
)
def test_published_checksums(text: str, found: str | None, server: FileServer) -> None:
    server.files["a.zip.md5"] = text.encode()
    assert published_md5(f"{server.address}/a.zip.md5") == found
    assert published_md5(f"{server.address}/none.md5") is None


@pytest.mark.process
def test_the_bar_is_drawn_in_a_terminal_on_standard_error_only(server: FileServer, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    code = (
        "import sys; from pathlib import Path; from topnrank.data.datasets.download import download;"
        "download(sys.argv[1], Path(sys.argv[2]), progress=True)"
    )
    reader, terminal = pty.openpty()
    call = [sys.executable, "-c", code, f"{server.address}/a.zip"]
    shown = subprocess.run([*call, str(tmp_path / "a")], stdout=subprocess.PIPE, stderr=terminal, check=True)
    os.close(terminal)
    drawn = os.read(reader, 65536).decode()
    os.close(reader)
    assert shown.stdout == b""
    assert "1.0/1.0 MB" in drawn
    piped = subprocess.run([*call, str(tmp_path / "b")], capture_output=True, check=True)
    assert (piped.stdout, piped.stderr) == (b"", b"")
