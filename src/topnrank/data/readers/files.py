"""Finding data files, telling what they are, and opening them as streams of plain bytes."""

import glob
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from urllib.parse import unquote

import pyarrow as pa

from topnrank.errors import DataError, ParameterError
from topnrank.io.paths import AnyPath, RemotePath, parse_path

# ----------------------------------------------------------------------------------------------------
# Which files a path, a folder or a glob means, on this machine and elsewhere.


def matches(given: AnyPath) -> tuple[AnyPath, Sequence[AnyPath]]:
    """The folder that was searched and the files found there, sorted.

    Files and folders whose names start with "." or "_" are those of tools, not data.
    """
    if given.is_dir():
        root, files, why = given, _visible_files(given), "the folder holds no data files; give another folder"
    elif given.exists():
        return given.parent, [given]
    elif _is_pattern(given):
        root, files, why = _fixed_folder(given), _glob(given), "no data file matches; check the pattern"
    else:
        root, files, why = given, [], f"there is no such file; {_near_name(given)}"
    if not files:
        raise DataError(f"{given}: {why}")
    return root, files


def _is_pattern(path: AnyPath) -> bool:
    return any(mark in str(path) for mark in "*?[")


def _fixed_folder(pattern: AnyPath) -> AnyPath:
    """The part of a pattern before its first wildcard."""
    return next(folder for folder in pattern.parents if not _is_pattern(folder))


def _glob(pattern: AnyPath) -> Sequence[AnyPath]:
    if isinstance(pattern, RemotePath):
        root = _fixed_folder(pattern)
        assert isinstance(root, RemotePath)
        return sorted(_remote_glob(root, pattern.relative_to(root).parts)) if root.is_dir() else []
    return _local_glob(pattern)


def _local_glob(pattern: Path) -> list[Path]:
    root = _fixed_folder(pattern)
    assert isinstance(root, Path)
    found = [Path(match) for match in glob.glob(str(pattern), recursive=True)]
    files = {file for match in found for file in (_local_files(match) if match.is_dir() else [match])}
    return sorted(file for file in files if _is_visible(file.relative_to(root)))


def _remote_glob(folder: RemotePath, pattern: Sequence[str]) -> set[RemotePath]:
    """The visible files below `folder` whose way, or that of a folder above them, matches; as `glob` would find them."""
    if not pattern:
        return set(folder.walk(_is_name_visible)) if folder.is_dir() else set()
    first, rest = pattern[0], pattern[1:]
    found = _remote_glob(folder, rest) if first == "**" else set()
    for path, is_folder in folder.entries():
        if not _is_name_visible(path.name) or not (first == "**" or fnmatchcase(path.name, first)):
            continue
        if is_folder:
            found |= _remote_glob(path, pattern if first == "**" else rest)
        elif not rest:
            found.add(path)
    return {file for file in found if _is_visible(file.relative_to(folder))}


def _visible_files(folder: AnyPath) -> Sequence[AnyPath]:
    if isinstance(folder, Path):
        return _local_files(folder)
    return [file for file in folder.walk(_is_name_visible) if _is_visible(file.relative_to(folder))]


def _local_files(folder: Path) -> list[Path]:
    files = []
    for root, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
        folders[:] = [name for name in folders if _is_name_visible(name)]
        files += [Path(root, name) for name in names if _is_name_visible(name)]
    return sorted(files)


def _raise(problem: OSError) -> None:
    # By default a folder that may not be read is passed over, and its rows would be missing without a word.
    raise DataError(f"{problem.filename}: the folder cannot be read ({problem.strerror}); change its permissions")


def _is_visible(relative: PurePath) -> bool:
    return all(map(_is_name_visible, relative.parts))


def _is_name_visible(name: str) -> bool:
    return not name.startswith((".", "_"))


def _near_name(missing: AnyPath) -> str:
    near = get_close_matches(missing.name, _names(missing.parent), n=1)
    return f"did you mean {near[0]!r}?" if near else "check the path"


def _names(folder: AnyPath) -> list[str]:
    if not folder.is_dir():
        return []
    if isinstance(folder, RemotePath):
        return [path.name for path, _ in folder.entries()]
    return [file.name for file in folder.iterdir()]


FORMATS = ("csv", "tsv", "dat", "jsonl", "parquet")
"""What a file can be: the first three are text in columns and differ in the separator that is tried first."""

_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".dat": "dat",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSION_OF_SUFFIX = {".gz": "gzip", ".zst": "zstd"}
_COMPRESSION_OF_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PARQUET_MAGIC = b"PAR1"
_FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"ARROW1": "an Arrow or Feather file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"SQLite format 3": "an SQLite database",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_HEAD_BYTES = 1 << 16  # less than the longest field that the csv module takes
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """One file, known to exist."""

    path: AnyPath
    format: str
    compression: str | None
    head: bytes = field(repr=False)
    """The first bytes, unpacked; all of a small file."""
    partitions: Mapping[str, str | None]
    """Columns spelled in the names of folders, as in "type=buy/part-0.csv"."""
    copy: Path | None = None
    """Text that is elsewhere is read several times, and therefore fetched once."""

    @property
    def name(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing, or nothing but white space, in the file."""
        return self.is_whole_head and not self.head.removeprefix(b"\xef\xbb\xbf").strip()

    @property
    def is_whole_head(self) -> bool:
        """Whether `head` is the whole file."""
        return len(self.head) < _HEAD_BYTES

    def open(self) -> pa.NativeFile:
        """A stream of the unpacked bytes; to be used inside `io_errors`."""
        return pa.input_stream(str(self.copy or self.path), compression=self.compression)

    def open_lines(self) -> io.BufferedReader:
        """As `open`, for reading line by line, which Arrow's streams cannot."""
        return io.BufferedReader(self.open())


@contextmanager
def io_errors(name: str, compression: str | None = None) -> Iterator[None]:
    """Turns what the operating system or an unpacker says about file `name` into a DataError."""
    try:
        yield
    except PermissionError:
        raise DataError(f"{name}: may not be read; ask for permission or change it with chmod") from None
    except OSError as problem:
        if compression is None:
            raise DataError(f"{name}: cannot be read ({first_line(problem)}); check the file and the disk") from None
        raise DataError(
            f"{name}: the {compression} file is truncated or damaged ({first_line(problem)}); fetch or pack it again"
        ) from None


def find_files(path: str | os.PathLike[str], format: str | None, copies: ExitStack | None) -> list[DataFile]:
    """The data files that `path` means, in sorted order: a file, all visible files below a folder, or a glob's matches.

    Empty part files are left out. Copies of files that are elsewhere last until `copies` is closed; with None nothing is
    copied and no more than the heads is read, for those who let others read the files.
    """
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(
            f"path must be text or a pathlib.Path, got {type(path).__name__}; use Interactions.from_frame for a frame"
        )
    given = parse_path(path)
    with io_errors(str(given)):
        root, paths = matches(given)
        files = [_inspect(part, format, _partitions(part, root), copies) for part in paths]
    filled = [file for file in files if not file.is_empty]
    if not filled:
        raise DataError(f"{given}: is empty; give a file with at least one row")
    return filled


def _partitions(file: AnyPath, root: AnyPath) -> dict[str, str | None]:
    way: PurePath = file.relative_to(root)  # type: ignore[arg-type]  # both are on the same machine
    pairs = [part.split("=", 1) for part in way.parts[:-1] if "=" in part]
    return {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, value in pairs}


def _inspect(
    path: AnyPath, format: str | None, partitions: Mapping[str, str | None], copies: ExitStack | None
) -> DataFile:
    """What the file is: by `format`, else by its first bytes, else by its name."""
    copy, start = None, _start(path)
    if isinstance(path, RemotePath):
        if start.startswith(_PARQUET_MAGIC) and format in (
            None,
            "parquet",
        ):  # read where it is: only the columns that are used travel
            return DataFile(path, "parquet", None, start, partitions)
        copy = None if copies is None else _copy(path, copies)
    compression = _compression(path, start)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2:-1] if suffixes and suffixes[-1] in _COMPRESSION_OF_SUFFIX else suffixes[-1:]
    with io_errors(str(path), compression), _unpacked(path, copy, compression) as stream:
        head = stream.read(_HEAD_BYTES)
    kind = format or _format(suffix[0] if suffix else "", head)
    if kind == "parquet" and compression is not None:
        raise DataError(f"{path}: a Parquet file packed once more with {compression} cannot be read; unpack it first")
    if kind != "parquet":
        _check_text(path, head)
    return DataFile(path, kind, compression, head, partitions, copy)


def _start(path: AnyPath) -> bytes:
    """The first bytes, packed or not."""
    if isinstance(path, RemotePath):
        with io_errors(str(path)), path.errors(), path.open() as remote:
            return bytes(remote.read(16))
    if not path.is_file():
        raise DataError(f"{path}: is no regular file but a pipe, a device or a broken link; save the data to a file")
    with io_errors(str(path)), path.open("rb") as stream:
        return stream.read(16)


def _unpacked(path: AnyPath, copy: Path | None, compression: str | None) -> pa.NativeFile:
    if copy is None and isinstance(path, RemotePath):
        return pa.input_stream(path.open(), compression=compression)
    return pa.input_stream(str(copy or path), compression=compression)


def _copy(path: RemotePath, copies: ExitStack) -> Path:
    folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="topnrank-"))
    copy = Path(folder, path.name)
    with io_errors(str(path)):
        path.fetch(copy)
    return copy


def _compression(path: AnyPath, start: bytes) -> str | None:
    found = next((name for magic, name in _COMPRESSION_OF_MAGIC.items() if start.startswith(magic)), None)
    promised = _COMPRESSION_OF_SUFFIX.get(path.suffix.lower())
    if start and promised is not None and found != promised:
        raise DataError(f"{path}: is named as a {promised} file but is none; rename it or fetch it again")
    return found


def _format(suffix: str, head: bytes) -> str:
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    guess = "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv"
    return _FORMAT_OF_SUFFIX.get(suffix, guess)


def _check_text(path: AnyPath, head: bytes) -> None:
    for magic, kind in _FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"{path}: is {kind}, which is not read; save the data as UTF-8 CSV or as Parquet")
    if is_safetensors(head):
        raise DataError(f"{path}: is a model file (safetensors), not interactions; open it with topnrank.load")
    if b"\0" in head:
        raise DataError(f"{path}: is a binary file of an unknown kind; save the data as UTF-8 CSV or as Parquet")


def is_safetensors(head: bytes) -> bool:
    """Whether a file that begins with `head` is a model file: the length of a JSON header, then the header."""
    return head[8:9] == b"{" and b"\0" in head[:8]


def first_line(problem: BaseException) -> str:
    """What Arrow or the operating system says, without its further lines."""
    return str(problem).partition("\n")[0].rstrip(".")
