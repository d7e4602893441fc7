"""HDFS by hdfs-native, which needs neither Java nor Hadoop.

The client is used as it is and not through fsspec, whose `isfile` calls an unreachable file system an absent file and whose
paths end at "#", "?" and ";".
"""

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar, final

from topnrank.errors import ParameterError, StorageError
from topnrank.io._timeout import PATIENCE, within
from topnrank.io.paths import CHUNK_BYTES, Kind, Listed, temporary_name

if TYPE_CHECKING:
    import pyarrow as pa
    from hdfs_native import Client, FileReader

T = TypeVar("T")

_REFUSED = re.compile(r'RPCError\("(?P<kind>[\w.$]+)", "(?P<reason>.*?)(?:\.?\\n|\.?"\))', re.DOTALL)
"""An exception of the NameNode as the client prints it: class, and message with a Java stack trace."""

_SETTINGS = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "500",
    "dfs.client.failover.sleep.max.millis": "4000",
}
"""An absent NameNode is reported after about ten seconds; by the client's defaults after three minutes."""


def name_node(host: str) -> "NameNode":
    """The file system of the NameNode, or name service, called `host`; the configured one if it is empty."""
    return _name_node(host, os.environ.get("HADOOP_CONF_DIR"), os.environ.get("HADOOP_USER_NAME"))


@lru_cache(maxsize=16)
def _name_node(host: str, configuration: str | None, user: str | None) -> "NameNode":
    """A cached client; it reads `configuration` and `user` from the environment when it is made."""
    try:
        from hdfs_native import Client
    except ImportError:
        raise ParameterError(
            f"hdfs://{host}: HDFS needs the package hdfs-native; install it with: pip install 'topnrank[remote]'"
        ) from None
    try:
        return NameNode(f"hdfs://{host}", Client(f"hdfs://{host}", _SETTINGS))
    except (OSError, RuntimeError, ValueError) as problem:
        raise ParameterError(
            f"hdfs://{host}: this does not name a NameNode ({_short(problem)}); write hdfs://host:port/path, or let "
            "HADOOP_CONF_DIR name the folder with core-site.xml and hdfs-site.xml"
        ) from None


@final
class NameNode:
    """The file system of one NameNode; no call waits longer than PATIENCE."""

    def __init__(self, address: str, client: "Client") -> None:
        self.address = address
        self.client = client

    def kind(self, path: str) -> Kind | None:
        """Whether `path` is a file or a folder; None if it does not exist."""
        try:
            found = self._call(path, lambda: self.client.get_file_info(path))
        except FileNotFoundError:
            return None
        return "folder" if found.isdir else "file"

    def entries(self, folder: str) -> list[Listed]:
        """The entries of the folder."""
        found = self._call(folder, lambda: list(self.client.list_status(folder)))
        return [Listed(status.path, status.isdir) for status in found]

    def walk(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        """The files below the folder, folder by folder: skipped ones, as `_temporary` of a job, may hold thousands."""
        files, folders = [], [folder]
        while folders:
            for path, is_folder in self.entries(folders.pop()):
                if not is_folder:
                    files.append(path)
                elif wanted(PurePosixPath(path).name):
                    folders.append(path)
        return files

    def open(self, path: str) -> "pa.NativeFile":
        """The file as a seekable stream."""
        import pyarrow as pa

        return pa.PythonFile(_OpenFile(self, path, self._call(path, lambda: self.client.read(path))), mode="r")

    def put(self, source: Path, path: str) -> None:
        """Writes a temporary file beside `path` and renames it, which is atomic."""
        part = str(PurePosixPath(path).with_name(temporary_name(PurePosixPath(path).name)))
        try:
            self._write(source, part, path)
            self._call(path, lambda: self.client.rename(part, path, overwrite=True))
        except BaseException:
            with suppress(StorageError, OSError):
                self.delete(part)
            raise

    def make_folder(self, path: str) -> None:
        """Makes the folder and those above it."""
        self._call(path, lambda: self.client.mkdirs(path, create_parent=True))

    def delete(self, path: str) -> None:
        """Removes a file."""
        self._call(path, lambda: self.client.delete(path))

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Nothing to do: `_call` raises StorageErrors."""
        yield

    def _write(self, source: Path, part: str, path: str) -> None:
        from hdfs_native import WriteOptions

        options = WriteOptions(create_parent=False)
        writer = self._call(path, lambda: self.client.create(part, options))
        with source.open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                self._call(path, lambda piece=piece: writer.write(piece))  # type: ignore[misc]
        self._call(path, writer.close)

    def _call(self, path: str, call: Callable[[], T]) -> T:
        """The result of `call`; a missing file is a FileNotFoundError, any other failure a StorageError."""
        try:
            return within(PATIENCE, call)
        except FileNotFoundError as problem:
            raise FileNotFoundError(errno.ENOENT, _short(problem)) from None
        except (OSError, RuntimeError) as problem:
            raise StorageError(f"{self.address}{path}: {_sentence(problem)}") from None


def _sentence(problem: Exception) -> str:
    refused = _REFUSED.match(str(problem))
    if refused is None and isinstance(problem, OSError) and not isinstance(problem, FileExistsError):
        return f"HDFS cannot be reached ({_short(problem)}); check the address, and that its NameNode and DataNodes run"
    reason = refused["reason"].replace('\\"', '"') if refused is not None else _short(problem)
    remedy = "; ask for the right, or set HADOOP_USER_NAME" if "AccessControlException" in str(problem) else ""
    return f"HDFS refuses ({reason}){remedy}"


def _short(problem: Exception) -> str:
    """The first line of the message, without the Java stack trace."""
    return str(problem).partition("\n")[0].rstrip(".")


@final
class _OpenFile(io.RawIOBase):
    """An open file with the methods that Arrow calls: `read`, `seek` and `tell`."""

    def __init__(self, system: NameNode, path: str, reader: "FileReader") -> None:
        self._system, self._path, self._reader = system, path, reader

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """At most `size` bytes from the current position."""
        count = -1 if size is None else size
        return bytes(self._system._call(self._path, lambda: self._reader.read(count)))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Changes the position."""
        self._reader.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        """The position."""
        return int(self._reader.tell())
