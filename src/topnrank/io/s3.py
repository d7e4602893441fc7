"""S3 and compatible stores, by pyarrow."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

from topnrank.errors import StorageError
from topnrank.io._timeout import within
from topnrank.io.paths import Kind, Listed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_ATTEMPTS, _CONNECT_SECONDS, _SILENT_SECONDS = 3, 5, 10
"""A store that does not answer is given up after about half a minute."""
_NO_CONNECTION = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT")
_FORBIDDEN = (
    "ACCESS_DENIED",
    "INVALID_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_CLIENT_TOKEN_ID",
    "EXPIRED_TOKEN",
)


def bucket(name: str) -> "Bucket":
    """The bucket called `name`, at AWS or at the endpoint of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL."""
    environment = os.environ
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")
    return _bucket(name, endpoint, region, *map(environment.get, keys))


@lru_cache(maxsize=16)
def _bucket(name: str, endpoint: str | None, region: str | None, *keys: str | None) -> "Bucket":
    """A cached client; it reads `keys` from the environment when it is made."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    system = S3FileSystem(
        region=region or _region(name, endpoint),
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_SILENT_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
    return Bucket(name, system)


def _region(name: str, endpoint: str | None) -> str:
    """The AWS region of the bucket; other stores ignore it."""
    from pyarrow.fs import resolve_s3_region

    if endpoint:
        return "us-east-1"
    with store_errors(f"s3://{name}"):
        return str(resolve_s3_region(name))


@contextmanager
def store_errors(address: str) -> Iterator[None]:
    """Turns errors of the store into a StorageError; other errors pass."""
    try:
        yield
    except OSError as problem:
        text = str(problem).partition("\n")[0].partition(" (Request ID")[0]
        if "AWS Error" not in text:
            raise
        raise StorageError(f"{address}: {_sentence(text)}") from None


def _sentence(text: str) -> str:
    code, _, words = text.partition("AWS Error ")[2].partition(" during ")
    reason = words.partition(": ")[2] or code
    if code in _NO_CONNECTION:
        reason = reason.rpartition("Details: ")[2]
        return f"the store cannot be reached ({reason}); check the address, AWS_ENDPOINT_URL and the network"
    if code in _FORBIDDEN:
        return f"the store refuses access ({reason}); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and your rights"
    if code == "NO_SUCH_BUCKET":
        return "there is no such bucket; check its name, or create it first"
    return f"the store refuses ({code}: {reason})"


@final
class Bucket:
    """The files of one bucket."""

    def __init__(self, name: str, system: "pyarrow.fs.S3FileSystem") -> None:
        self.name = name
        self.system = system

    def kind(self, path: str) -> Kind | None:
        """Whether `path` is a file or a folder (a common prefix of keys); None if it does not exist."""
        from pyarrow.fs import FileType

        with self.errors(path):
            found = self.system.get_file_info(self._inside(path))
        return {FileType.File: "file", FileType.Directory: "folder"}.get(found.type)  # type: ignore[return-value]

    def entries(self, folder: str) -> list[Listed]:
        """The entries of the folder."""
        return self._listed(folder, recursive=False)

    def walk(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        """The files below the folder, by requests of a thousand keys each."""
        depth = len(folder.rstrip("/")) + 1
        files = [path for path, is_folder in self._listed(folder, recursive=True) if not is_folder]
        return [path for path in files if all(map(wanted, path[depth:].split("/")[:-1]))]

    def open(self, path: str) -> "pa.NativeFile":
        """The file as a seekable stream."""
        with self.errors(path):
            return self.system.open_input_file(self._inside(path))

    def put(self, source: Path, path: str) -> None:
        """Uploads the file; the object appears when all of its parts have arrived.

        Arrow completes the upload of an abandoned stream even after half of it, and its `copy_files` ignores a failure at
        the end. So everything is written in one call, in a thread that Ctrl-C does not interrupt, and closed explicitly.
        """
        with self.errors(path):
            within(None, lambda: self._upload(source, path))

    def make_folder(self, path: str) -> None:
        """Nothing to do, since folders are parts of keys; an error if the bucket does not exist."""
        if self.kind("/") is None:
            raise StorageError(f"s3://{self.name}{path}: there is no such bucket; check its name, or create it first")

    def delete(self, path: str) -> None:
        """Removes a file."""
        with self.errors(path):
            self.system.delete_file(self._inside(path))

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Turns errors of the store into a StorageError."""
        with store_errors(f"s3://{self.name}{path}"):
            yield

    def _upload(self, source: Path, path: str) -> None:
        import pyarrow as pa

        content = pa.memory_map(str(source)).read_buffer() if source.stat().st_size else pa.py_buffer(b"")
        stream = self.system.open_output_stream(self._inside(path))
        stream.write(content)
        stream.close()

    def _listed(self, folder: str, *, recursive: bool) -> list[Listed]:
        from pyarrow.fs import FileSelector, FileType

        with self.errors(folder):
            found = self.system.get_file_info(FileSelector(self._inside(folder), recursive=recursive))
        return [Listed(info.path[len(self.name) :], info.type == FileType.Directory) for info in found]

    def _inside(self, path: str) -> str:
        return f"{self.name}{path}".rstrip("/")
