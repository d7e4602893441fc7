"""Downloading a file over HTTP by pooch: checked by its MD5 checksum, and in place only when it is whole."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from topnrank._progress import ProgressBar, progress_bar
from topnrank.errors import DataError, OutputError
from topnrank.io.atomic import output_error, write_atomically

_TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 18
_ATTEMPTS = 5
"""How often a download is begun whose connection breaks."""
_HEADERS = {"User-Agent": "topnrank"}


def download(url: str, target: Path, *, md5: str | None = None, progress: bool = False) -> None:
    """Fetches `url` to `target` unless it is there; a file with another checksum than `md5` is thrown away."""
    try:
        with _locked(target), progress_bar(target.name, unit="bytes", shown=progress) as bar:
            for _ in range(_ATTEMPTS):
                if target.exists():  # perhaps another process has just fetched it
                    return
                bar.update(0)
                with suppress(_BrokenOffError):
                    write_atomically(target, lambda temporary: _fetch(url, temporary, md5, bar))
                    return
    except OutputError as error:
        raise type(error)(f"{error}, or name another cache folder with TOPNRANK_CACHE") from None
    except OSError as error:
        sentence = (
            f"{error.filename or target.parent}: cannot be written ({error.strerror or error}); free some space, change"
            " the permissions, or name another cache folder with TOPNRANK_CACHE"
        )
        raise output_error(sentence, error, has_begun=False) from None
    raise DataError(f"{url}: the connection broke off {_ATTEMPTS} times; check the network, try again later")


class _BrokenOffError(Exception):
    """The connection ended before the file."""


def _fetch(url: str, temporary: Path, md5: str | None, bar: ProgressBar) -> None:
    """Fetches `url` to `temporary`; DataError where the server fails, or the file has not the checksum."""
    import pooch
    from requests.exceptions import ChunkedEncodingError, HTTPError, RequestException

    downloader = pooch.HTTPDownloader(_PoochBar(bar), _CHUNK_BYTES, timeout=_TIMEOUT_SECONDS, headers=_HEADERS)
    try:
        downloader(url, str(temporary), None)
    except ChunkedEncodingError as error:
        raise _BrokenOffError from error
    except HTTPError as error:
        answer = error.response
        remedy = _remedy(answer.status_code)
        raise DataError(f"{url}: the server answered {answer.status_code} {answer.reason}; {remedy}") from None
    except RequestException as error:
        raise DataError(f"{url}: cannot be reached ({_reason(error)}); check the network") from None
    except ValueError as error:
        raise DataError(f"{url}: the server's answer cannot be understood ({error}); try again later") from None
    if md5 is not None and pooch.file_hash(str(temporary), alg="md5") != md5:
        raise DataError(
            f"{url}: the MD5 checksum of the file that arrived is not the published one, {md5}; it was thrown away,"
            " fetch it again"
        )


def published_md5(url: str) -> str | None:
    """The first checksum in a small text file such as "MD5 (ml-20m.zip) = cd24..."; None where there is none."""
    import requests

    try:
        answer = requests.get(url, timeout=_TIMEOUT_SECONDS, headers=_HEADERS)
    except requests.RequestException:
        return None
    found = re.search(r"\b[0-9a-fA-F]{32}\b", answer.text) if answer.ok else None
    return found.group().lower() if found else None


class _PoochBar:
    """A progress bar as pooch calls it."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self.total = 0

    def update(self, count: int) -> None:
        """So many bytes more."""
        self._bar.update(advance=count, total=self.total or None)

    def reset(self) -> None:
        """No bytes yet."""
        self._bar.update(0)

    def close(self) -> None:
        """The bar is closed by its own context."""


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lets one process at a time fetch `target`; others wait. Not on Windows: there the second to finish gets an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # a link that somebody planted is not followed
    with os.fdopen(os.open(target.with_name(f"{target.name}.lock"), flags, 0o600), "rb+") as file:
        with suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remedy(status: int) -> str:
    if status in (404, 410):
        return "the file is no longer at that address"
    return "try again later" if status == 429 or status >= 500 else "it may ask for a login; fetch the file by hand"


def _reason(error: Exception) -> str:
    """The innermost cause, which says most: requests and urllib3 wrap it several times."""
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    return str(cause) or type(cause).__name__
