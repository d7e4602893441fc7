"""Local paths and remote ones such as "hdfs://namenode:8020/ratings.csv", which work alike."""

import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, final

from topnrank.errors import OutputError, ParameterError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa


Kind = Literal["file", "folder"]

CHUNK_BYTES = 4 << 20
"""Files are copied in pieces of this size."""


class Listed(NamedTuple):
    """An entry of a folder."""

    path: str
    is_folder: bool


class System(Protocol):
    """A NameNode or a bucket; paths begin with "/", failures are StorageErrors."""

    def kind(self, path: str) -> Kind | None:
        """Whether `path` is a file or a folder; None if it does not exist."""

    def entries(self, folder: str) -> list[Listed]:
        """The entries of the folder."""

    def walk(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        """The files below the folder, without those in folders whose names are not `wanted`."""

    def open(self, path: str) -> "pa.NativeFile":
        """The file as a seekable stream, to be read inside `errors`."""

    def put(self, source: Path, path: str) -> None:
        """Uploads a local file atomically: until all of it has arrived, an earlier one stays."""

    def make_folder(self, path: str) -> None:
        """Creates the folder and those above it."""

    def delete(self, path: str) -> None:
        """Removes a file."""

    def errors(self, path: str) -> AbstractContextManager[None]:
        """Turns errors of the system into a StorageError."""


_SCHEMES = {"file": "file", "hdfs": "hdfs", "s3": "s3", "s3a": "s3"}
"""Systems by scheme; Hadoop writes s3a for s3."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/[^/].*)", re.DOTALL)


@final
@dataclass(frozen=True, order=True)
class RemotePath:
    """A path on HDFS or S3, with those methods of pathlib.Path that are needed."""

    scheme: str
    host: str
    """NameNode with its port, or bucket."""
    path: PurePosixPath

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}"

    def __truediv__(self, name: str) -> "RemotePath":
        return self._at(self.path / name)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self.path.suffix

    @property
    def parent(self) -> "RemotePath":
        """The folder that contains it."""
        return self._at(self.path.parent)

    @property
    def parents(self) -> "list[RemotePath]":
        """The folders above it, nearest first."""
        return [self._at(folder) for folder in self.path.parents]

    def relative_to(self, folder: "RemotePath") -> PurePosixPath:
        """The path relative to `folder`."""
        return self.path.relative_to(folder.path)

    def with_suffix(self, suffix: str) -> "RemotePath":
        """With another ending."""
        return self._at(self.path.with_suffix(suffix))

    def exists(self) -> bool:
        """Whether it is a file or a folder."""
        return self._system.kind(str(self.path)) is not None

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._system.kind(str(self.path)) == "folder"

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self._system.kind(str(self.path)) == "file"

    def entries(self) -> "list[Entry]":
        """The entries of this folder, sorted."""
        listed = self._system.entries(str(self.path))
        return sorted(Entry(self._at(PurePosixPath(path)), is_folder) for path, is_folder in listed)

    def walk(self, wanted: Callable[[str], bool]) -> "list[RemotePath]":
        """The files below this folder, sorted, without those in folders whose names are not `wanted`."""
        return sorted(self._at(PurePosixPath(path)) for path in self._system.walk(str(self.path), wanted))

    def open(self) -> "pa.NativeFile":
        """The file as a seekable stream, to be read inside `errors`."""
        with self.errors():
            return self._system.open(str(self.path))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns errors of the remote system into a StorageError."""
        with self._system.errors(str(self.path)):
            yield

    def read_bytes(self) -> bytes:
        """The content of the file."""
        with self.errors(), self.open() as stream:
            return bytes(stream.read())

    def fetch(self, target: Path) -> None:
        """Downloads the file."""
        with self.errors(), self.open() as stream, target.open("wb") as file:
            while piece := stream.read(CHUNK_BYTES):
                file.write(piece)

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        """A local copy, deleted at the end of the context."""
        with tempfile.TemporaryDirectory(prefix="topnrank-") as folder:
            copy = Path(folder, self.name)
            self.fetch(copy)
            yield copy

    def put(self, source: Path) -> None:
        """Uploads a local file atomically; a failure leaves an earlier one as it was."""
        self._system.put(source, str(self.path))

    def require_writable(self) -> None:
        """An OutputError or StorageError if no file can be written here; tried with an empty file beside it."""
        self.require_folder()
        trial = str(self.path.with_name(temporary_name(self.name)))
        with tempfile.TemporaryDirectory(prefix="topnrank-") as folder:
            empty = Path(folder, "empty")
            empty.touch()
            self._system.put(empty, trial)
        with suppress(StorageError):  # the right to write may come without the right to delete
            self._system.delete(trial)

    def mkdir(self) -> None:
        """Creates this folder and those above it."""
        self._system.make_folder(str(self.path))

    def require_folder(self) -> None:
        """An OutputError if this is a folder, or on HDFS if its folder does not exist."""
        if not self.name or self.is_dir():
            raise OutputError(f"{self}: is a folder; give the name of a file")
        if self.scheme == "hdfs" and not self.parent.is_dir():
            raise OutputError(f"{self}: its folder does not exist; create it first")

    def _at(self, path: PurePosixPath) -> "RemotePath":
        return RemotePath(self.scheme, self.host, path)

    @property
    def _system(self) -> System:
        if self.scheme == "hdfs":
            from topnrank.io.hdfs import name_node

            return name_node(self.host)
        from topnrank.io.s3 import bucket

        return bucket(self.host)


class Entry(NamedTuple):
    """An entry of a remote folder."""

    path: RemotePath
    is_folder: bool


AnyPath = Path | RemotePath
Location = str | os.PathLike[str] | RemotePath
"""What callers give as a path."""


def parse_path(location: Location) -> AnyPath:
    """The local or remote path; "~" is expanded."""
    if isinstance(location, RemotePath):
        return location
    text = os.fspath(location)
    if (address := _ADDRESS.fullmatch(text)) is not None:
        return _parsed(text, *address.groups())
    slash = _ONE_SLASH.fullmatch(text)
    scheme = _SCHEMES.get(slash[1].lower()) if slash is not None else None
    if slash is None or scheme is None:
        return Path(text).expanduser()
    if scheme == "file":
        return Path(slash[2])  # as Java writes it
    raise ParameterError(
        f"{text}: an address has two slashes, {slash[1]}:/{slash[2]}; give it as text, because a pathlib.Path drops one"
    )


def local_path(location: Location, what: str) -> Path:
    """The local path; a ParameterError for a remote one, since `what` must be on this machine."""
    found = parse_path(location)
    if isinstance(found, RemotePath):
        raise ParameterError(f"{found}: {what} must lie on this machine; give a local path")
    return found


def temporary_name(name: str) -> str:
    """The name of a file that is still being written: hidden, so that readers of the folder skip it; never too long."""
    return f".{os.fsdecode(os.fsencode(name)[:200])}.{secrets.token_hex(6)}.part"


def _parsed(text: str, given: str, host: str, path: str) -> AnyPath:
    scheme = _SCHEMES.get(given.lower())
    if scheme is None:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise ParameterError(
            f"{text}: addresses that begin with {given}:// are not known; give a local path or one of {known}"
        )
    if scheme == "file":
        if host not in ("", "localhost"):
            raise ParameterError(f"{text}: has one slash too few, or names another machine; write file:///folder/name")
        return Path(path)
    if scheme == "s3" and not host:
        raise ParameterError(f"{text}: names no bucket; write s3://bucket/key")
    return RemotePath(scheme, host, PurePosixPath("/" + path.lstrip("/")))
