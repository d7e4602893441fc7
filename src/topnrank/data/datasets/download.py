"""Fetching a file over HTTP: it goes on where it broke off, is checked, and appears only when it is whole.

While a download is under way there are two files beside the target: NAME.part, the bytes so far, and NAME.part.tag, what
the server calls this version of the file (its ETag or date). The rest is asked for only of the same version.
"""

import hashlib
import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError

from topnrank.errors import DataError, OutputError

_BLOCK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 30.0
_MAX_BREAKS = 10
"""How often a connection may break in one call; each time some bytes must have come through."""
_LARGEST_MD5_FILE = 4096

Report = Callable[[int, int | None], None]
"""Told of the bytes so far and of all, where that is known."""


@dataclass(frozen=True)
class _Answer:
    """What a server sends of a file."""

    body: HTTPResponse
    start: int
    """Position of its first byte in the file."""
    total: int | None
    tag: str | None


def download(
    url: str, target: Path, *, progress: bool = False, md5: Callable[[], str | None] | None = None
) -> str | None:
    """Fetches `url` to `target` unless it is there; returns the checksum it was found to have, if `md5` tells one.

    `md5` is asked when all bytes have arrived. A file with another checksum is thrown away.
    """
    with _output_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if target.exists():  # another process has just fetched it
                return None
            part = _beside(target, ".part")
            with _bar(target.name, shown=progress) as report:
                _fetch_all(url, part, report)
            expected = None if md5 is None else md5()
            _check(part, url, expected)
            os.replace(part, target)
            _beside(part, ".tag").unlink(missing_ok=True)
            return expected


def published_md5(url: str) -> str | None:
    """The first checksum in a small text file such as "MD5 (ml-20m.zip) = cd24..."; None where there is none."""
    try:
        with _open(url, {}) as answer:
            found = re.search(rb"\b[0-9a-fA-F]{32}\b", answer.read(_LARGEST_MD5_FILE))
    except (OSError, HTTPException):
        return None
    return found.group().decode().lower() if found else None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _fetch_all(url: str, part: Path, report: Report) -> None:
    """Asks again for the rest as long as the connection breaks after some bytes."""
    for _ in range(_MAX_BREAKS):
        before = part.stat().st_size if part.exists() else 0
        answer = _ask(url, part)
        if answer is None:
            return
        with answer.body:
            whole = _receive(answer, part, report)
        if whole:
            return
        if part.stat().st_size <= before:
            break
    raise DataError(
        f"{url}: the connection broke off after {part.stat().st_size:,} bytes; run it again, it goes on from there"
    )


def _ask(url: str, part: Path) -> _Answer | None:
    """The rest of the file if part of it is here and has not changed, else all of it; None if nothing is missing."""
    have, tag = (part.stat().st_size, _beside(part, ".tag")) if part.exists() else (0, None)
    headers = {"Range": f"bytes={have}-", "If-Range": tag.read_text()} if have and tag and tag.exists() else {}
    try:
        body = _open(url, headers)
    except HTTPError as error:
        with error:
            if error.code == 416 and error.headers.get("Content-Range", "") == f"bytes */{have}":
                return None
            if error.code == 416:
                part.unlink()
                return _ask(url, part)
            raise DataError(f"{url}: the server answered {error.code} {error.reason}; {_remedy(error.code)}") from None
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise DataError(f"{url}: cannot be reached ({reason}); check the network") from None
    return _answer(url, body, have if headers else 0)


def _open(url: str, headers: dict[str, str]) -> HTTPResponse:
    request = urllib.request.Request(url, headers={"User-Agent": "topnrank", **headers})
    response: HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    return response


def _answer(url: str, body: HTTPResponse, asked_from: int) -> _Answer:
    length = body.headers.get("Content-Length")
    tag = body.headers.get("ETag")
    if tag is None or tag.startswith("W/"):  # a weak one does not promise the same bytes
        tag = body.headers.get("Last-Modified")
    if body.status == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", body.headers.get("Content-Range", ""))
        if span is None or int(span[1]) != asked_from:
            body.close()
            raise DataError(f"{url}: the server sent another part of the file than asked for; try again later")
        return _Answer(body, asked_from, int(span[2]), tag)
    return _Answer(body, 0, None if length is None else int(length), tag)


def _receive(answer: _Answer, part: Path, report: Report) -> bool:
    """Appends what comes to the part; False if the connection broke before the end."""
    tag = _beside(part, ".tag")
    if answer.start == 0:
        tag.unlink(missing_ok=True)  # first the old tag goes, then the old bytes: never a tag with foreign bytes
    done = answer.start
    with part.open("ab" if done else "wb") as file:
        if answer.tag is not None:
            tag.write_text(answer.tag)
        report(done, answer.total)
        while done != answer.total and (block := _block(answer.body)):
            file.write(block)
            done += len(block)
            report(done, answer.total)
        return done == answer.total or (answer.total is None and block is not None)


def _block(body: HTTPResponse) -> bytes | None:
    """The next bytes as soon as there are some, none at the end; None if the connection broke."""
    try:
        return body.read1(_BLOCK_BYTES)
    except (OSError, HTTPException):
        return None


def _remedy(code: int) -> str:
    if code in (404, 410):
        return "the file is no longer at that address"
    return "try again later" if code == 429 or code >= 500 else "it may ask for a login; fetch the file by hand"


def _check(part: Path, url: str, expected: str | None) -> None:
    if expected is None:
        return
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "md5").hexdigest()
    if found != expected:
        part.unlink()
        raise DataError(
            f"{url}: the file that arrived has the MD5 checksum {found}, the published one is {expected};"
            " it was thrown away, fetch it again"
        )


@contextmanager
def _output_errors(folder: Path) -> Iterator[None]:
    """What the operating system says about our own files; errors of the network never come here as such."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{error.filename or folder}: cannot be written ({error.strerror or error}); free some space, change the"
            " permissions, or name another cache folder with TOPNRANK_CACHE"
        ) from None


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Lets one process at a time fetch `target`; the others wait."""
    with _beside(target, ".lock").open("wb") as file:
        _lock(file)
        yield


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: there two processes that write one file get an error instead
        return
    fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def _bar(name: str, *, shown: bool) -> Iterator[Report]:
    """A progress bar on standard error; quiet when that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), DownloadColumn()]
    columns += [TransferSpeedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
