"""What a file system elsewhere must be able to do."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["file", "folder"]

CHUNK_BYTES = 4 << 20
"""Files travel in pieces of this size."""


class Listed(NamedTuple):
    """What stands in a folder."""

    path: str
    is_folder: bool


class System(Protocol):
    """One NameNode or one bucket; paths begin with "/". Whatever it cannot or will not do is a PlaceError."""

    def kind(self, path: str) -> Kind | None:
        """What stands at `path`; None if nothing."""

    def entries(self, folder: str) -> list[Listed]:
        """What stands in the folder itself."""

    def walk(self, folder: str, wanted: Callable[[str], bool]) -> list[str]:
        """The files below the folder, not looking into folders whose names are not `wanted`."""

    def open(self, path: str) -> "pa.NativeFile":
        """The file, to be read from any place in it, inside `errors`."""

    def put(self, source: Path, path: str) -> None:
        """Copies a file of this machine there at once: until all of it has come, what was there stays."""

    def make_folder(self, path: str) -> None:
        """Makes the folder and those above it."""

    def delete(self, path: str) -> None:
        """Removes a file."""

    def errors(self, path: str) -> AbstractContextManager[None]:
        """Turns what the system says into a PlaceError."""
