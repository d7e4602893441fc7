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


def fetch(server: FileServer, target: Path, expected: str | None = MD5) -> None:
    download(f"{server.address}/a.zip", target, md5=expected)


def left_over(target: Path) -> list[str]:
    """What lies beside the target, apart from the lock."""
    return sorted(path.name for path in target.parent.iterdir() if path.suffix != ".lock")


def test_a_whole_file(server: FileServer, target: Path) -> None:
    fetch(server, target)
    assert target.read_bytes() == CONTENT
    assert left_over(target) == ["a.zip"]
    fetch(server, target)
    assert len(server.asked) == 1


def test_what_a_killed_download_left_is_removed_by_the_next(server: FileServer, target: Path) -> None:
    target.parent.mkdir(parents=True)
    (target.parent / ".a.zip.0123456789ab.part").write_bytes(CONTENT[:HALF])
    fetch(server, target)
    assert left_over(target) == ["a.zip"]


def test_a_length_that_is_no_number_is_one_sentence(server: FileServer, target: Path) -> None:
    server.length = "abc"
    with pytest.raises(DataError, match=r"a\.zip: .*(cannot be understood|cannot be reached)"):
        fetch(server, target)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_broken_connection_is_tried_again(chunked: bool, server: FileServer, target: Path) -> None:
    server.breaks, server.chunked = [HALF, 1000], chunked
    server.sends = ("ETag",) if chunked else server.sends
    fetch(server, target)
    assert target.read_bytes() == CONTENT
    assert [one.sent for one in server.asked] == [HALF, 1000, len(CONTENT)]
    assert left_over(target) == ["a.zip"]


def test_a_server_that_never_stops_breaking(server: FileServer, target: Path) -> None:
    server.breaks = [100] * 50
    with pytest.raises(DataError, match=r"a\.zip: the connection broke off 5 times; check the network"):
        fetch(server, target)
    assert len(server.asked) == 5
    assert left_over(target) == []


def test_a_wrong_checksum(server: FileServer, target: Path) -> None:
    with pytest.raises(
        DataError, match=rf"MD5 checksum of the file .* is not the published one, {'0' * 32}; it was thrown"
    ):
        fetch(server, target, "0" * 32)
    assert left_over(target) == []
    assert len(server.asked) == 1
    fetch(server, target)
    assert target.read_bytes() == CONTENT


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


def test_a_place_that_cannot_be_written(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(OutputError, match=r"cache.*cannot be written.*TOPNRANK_CACHE"):
        fetch(server, tmp_path / "cache" / "a.zip")


def test_two_at_once_fetch_it_once(server: FileServer, target: Path) -> None:
    together = threading.Barrier(2)

    def work() -> None:
        together.wait()
        fetch(server, target)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
