"""The cache of compiled kernels on disk: Numba's, with a checksum, and never in a folder that others can write.

Numba unpickles these files and runs the machine code in them, whatever they hold. So they are read only from a folder that
belongs to this user (or to root) and that nobody else can write; and only after their checksum was found right, because a
power loss, a full disk or a bad sector can leave any bytes in them. A file that is damaged is named, removed and made again.
A disk that cannot be written costs time, no more: the kernel is compiled in every process.
"""

import hashlib
import logging
import os
import pickle
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from topnrank._cache import cache_folder

_log = logging.getLogger("topnrank")
_DIGEST_BYTES = 32


def kernel_folder() -> Path | None:
    """The cache folder of the kernels compiled from exactly these sources; None where it cannot be written or trusted.

    None in a zip archive as well: Numba caches kernels from there under the archive's path, in the user's home.
    """
    if not Path(__file__).is_file():
        return None
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    package = Path(__file__).parents[1]
    for file in sorted({*package.glob("kernels/*.py"), *package.rglob("kernel.py"), *package.rglob("_*_kernel*.py")}):
        digest.update(file.read_bytes())
    folder = cache_folder()
    try:
        for inside in (Path(), Path("kernels"), Path("kernels", digest.hexdigest()[:16])):
            (folder / inside).mkdir(mode=0o755 if inside == Path() else 0o700, parents=True, exist_ok=True)
            if (why := _why_untrusted(folder / inside)) is not None:
                _log.warning(
                    "topnrank: %s %s, so compiled kernels are not kept there and every process compiles its own; "
                    "change that (chown, chmod go-w), or name a folder of your own with TOPNRANK_CACHE",
                    folder / inside,
                    why,
                )
                return None
    except OSError:
        return None
    return folder / inside if os.access(folder / inside, os.W_OK) else None


def _why_untrusted(folder: Path) -> str | None:
    """Why others could put files into the folder; None where they cannot."""
    if not hasattr(os, "getuid"):
        return None  # Windows: the user's cache folder is the user's
    found = folder.stat()
    if found.st_uid not in (os.getuid(), 0):
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by others"
    return None


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one kernel, with files that are checked."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self.cache_path, self._impl.filename_base, stamp)

    def save_overload(self, signature: Any, data: Any) -> None:
        """Saves what was compiled; a disk that is full or cannot be written is no reason to stop."""
        with suppress(OSError):
            super().save_overload(signature, data)


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel, each behind the checksum of its content."""

    def _load_index(self) -> dict[Any, str]:
        content = self._content(Path(self._index_path))
        if content is None:
            return {}
        version, stamp, overloads = pickle.loads(content)
        fresh = version == self._version and stamp == self._source_stamp
        return dict(overloads) if fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(Path(self._index_path), self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        content = self._content(Path(self._data_path(name)))
        if content is None:
            raise FileNotFoundError(name)  # Numba then compiles
        return pickle.loads(content)

    def _save_data(self, name: str, data: Any) -> None:
        self._write(Path(self._data_path(name)), self._dump(data))

    def _content(self, file: Path) -> bytes | None:
        """What stands behind the checksum; None, and no file any more, where it is not right."""
        try:
            whole = file.read_bytes()
        except FileNotFoundError:
            return None
        content = whole[_DIGEST_BYTES:]
        if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() == whole[:_DIGEST_BYTES]:
            return content
        _log.warning("topnrank: %s is damaged; it is removed, and the kernel is compiled anew", file)
        with suppress(OSError):
            file.unlink()
        return None

    def _write(self, file: Path, content: bytes) -> None:
        with self._open_for_write(str(file)) as opened:
            opened.write(hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest())
            opened.write(content)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        """As Numba does, after removing what a killed process left; the caller holds the lock of the kernel."""
        file = Path(filepath)
        for left in file.parent.glob(f"{file.name}.tmp.*"):
            with suppress(OSError):
                left.unlink()
        with super()._open_for_write(filepath) as opened:
            yield opened
