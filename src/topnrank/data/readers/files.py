"""Finding data files, on this machine and remote, detecting what they are, and opening them as streams of plain bytes."""

import glob
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

FORMATS = ("csv", "tsv", "dat", "jsonl", "parquet")
"""Formats of files; the first three are text in columns, with different separators that are tried first."""

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
_HEAD_BYTES = 1 << 16
_LONGEST_LINE = 1 << 26
"""The first line of a text is read as a whole, up to so many bytes: it may name thousands of columns."""
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
    """Columns given by names of folders, as in "type=buy/part-0.csv"."""
    copy: Path | None = None
    """Local copy of a remote text file, which is read several times."""

    @property
    def name(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @property
    def is_whole_head(self) -> bool:
        """Whether `head` is the whole file."""
        return len(self.head) < _HEAD_BYTES

    def open(self) -> pa.NativeFile:
        """A stream of the unpacked bytes; to be used inside `io_errors`."""
        return pa.input_stream(str(self.copy or self.path), compression=self.compression)


@contextmanager
def io_errors(name: str, compression: str | None = None) -> Iterator[None]:
    """Turns errors of the operating system or a decompressor about file `name` into a DataError."""
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
    """The data files of `path`, sorted: a file, all visible files below a folder, or the matches of a glob.

    Empty files are left out. Remote text is copied to this machine until `copies` is closed; with None nothing is copied
    and only the heads are read, for callers that let others read the files.
    """
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(
            f"path must be text or a pathlib.Path, got {type(path).__name__}; use Interactions.from_frame for a frame"
        )
    if path == "":
        raise ParameterError("path is empty; give a file, a folder or a glob ('.' is the current folder)")
    given = parse_path(path)
    with io_errors(str(given)):
        root, paths = list_files(given)
        files = [_inspect(part, root, format, copies) for part in paths]
    filled = [file for file in files if not file.is_whole_head or file.head.removeprefix(b"\xef\xbb\xbf").strip()]
    if not filled:
        raise DataError(f"{given}: is empty; give a file with at least one row")
    return filled


def list_files(given: AnyPath) -> tuple[AnyPath, Sequence[AnyPath]]:
    """The folder that was searched and the files found, sorted.

    Files and folders whose names begin with "." or "_" are skipped: tools write them, and they are not data.
    """
    files: Sequence[AnyPath]
    if given.is_dir():
        root, files, why = given, _files_below(given), "the folder holds no data files; give another folder"
    elif given.exists():
        return given.parent, [given]
    elif _is_pattern(given):
        root = next(folder for folder in given.parents if not _is_pattern(folder))
        files, why = _glob(given, root), "no data file matches; check the pattern"
    else:
        near = get_close_matches(given.name, _names(given.parent), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "check the path"
        root, files, why = given, [], f"there is no such file; {hint}"
    if not files:
        raise DataError(f"{given}: {why}")
    return root, files


def _is_pattern(path: AnyPath) -> bool:
    return any(mark in str(path) for mark in "*?[")


def _names(folder: AnyPath) -> list[str]:
    if not folder.is_dir():
        return []
    if isinstance(folder, RemotePath):
        return [path.name for path, _ in folder.entries()]
    return [file.name for file in folder.iterdir()]


def _glob(pattern: AnyPath, root: AnyPath) -> Sequence[AnyPath]:
    """Visible files that match `pattern`, or are below a folder that does; `root` is the part without wildcards."""
    if isinstance(root, RemotePath):
        return sorted(_remote_glob(root, pattern.relative_to(root).parts)) if root.is_dir() else []  # type: ignore[arg-type]
    found = [Path(match) for match in glob.glob(str(pattern), recursive=True)]
    files = {file for match in found for file in (_files_below(match) if match.is_dir() else [match])}
    return sorted(file for file in files if _is_visible(file.relative_to(root)))  # type: ignore[arg-type]


def _remote_glob(folder: RemotePath, pattern: Sequence[str]) -> set[RemotePath]:
    """As `glob` would find them: visible files below `folder` whose path, or that of a folder above, matches."""
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


def _files_below(folder: AnyPath) -> Sequence[AnyPath]:
    """All visible files below `folder`, sorted."""
    if isinstance(folder, RemotePath):
        return [file for file in folder.walk(_is_name_visible) if _is_visible(file.relative_to(folder))]
    files = []
    above: dict[str, set[tuple[int, int]]] = {}
    """Device and inode of each folder above: a link back to one of them would lead round and round"""
    for root, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
        found = os.stat(root)
        place, chain = (found.st_dev, found.st_ino), above.pop(root, set())
        if place in chain:
            raise DataError(f"{root}: is a link to a folder that it lies in; remove the link or choose files by a glob")
        folders[:] = filter(_is_name_visible, folders)
        above |= {os.path.join(root, name): chain | {place} for name in folders}
        files += [Path(root, name) for name in filter(_is_name_visible, names)]
    return sorted(files)


def _raise(problem: OSError) -> None:
    # By default os.walk skips a folder that may not be read, and its rows would be missing without a word.
    raise DataError(f"{problem.filename}: the folder cannot be read ({problem.strerror}); change its permissions")


def _is_visible(relative: PurePath) -> bool:
    return all(map(_is_name_visible, relative.parts))


def _is_name_visible(name: str) -> bool:
    return not name.startswith((".", "_"))


def _inspect(path: AnyPath, root: AnyPath, format: str | None, copies: ExitStack | None) -> DataFile:
    """What the file is: by `format`, else by its first bytes, else by its name."""
    relative: PurePath = path.relative_to(root)  # type: ignore[arg-type]  # both are on the same machine
    pairs = [part.split("=", 1) for part in relative.parts[:-1] if "=" in part]
    partitions = {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, value in pairs}

    copy = None
    if isinstance(path, RemotePath):
        with io_errors(str(path)), path.errors(), path.open() as remote:
            start = bytes(remote.read(16))
        if start.startswith(_PARQUET_MAGIC) and format in (None, "parquet"):
            return DataFile(
                path, "parquet", None, start, partitions
            )  # not copied: only the columns used are transferred
        if copies is not None:
            copy = Path(copies.enter_context(tempfile.TemporaryDirectory(prefix="topnrank-")), path.name)
            with io_errors(str(path)):
                path.fetch(copy)
    elif path.is_file():
        with io_errors(str(path)), path.open("rb") as local:
            start = local.read(16)
    else:
        raise DataError(f"{path}: is not a regular file but a pipe, a device or a broken link; save the data to a file")

    compression = next((name for magic, name in _COMPRESSION_OF_MAGIC.items() if start.startswith(magic)), None)
    promised = _COMPRESSION_OF_SUFFIX.get(path.suffix.lower())
    if start and promised is not None and compression != promised:
        raise DataError(f"{path}: is named as a {promised} file but is not one; rename it or fetch it again")
    with io_errors(str(path), compression):
        source = path.open() if copy is None and isinstance(path, RemotePath) else str(copy or path)
        with pa.input_stream(source, compression=compression) as unpacked:
            head = unpacked.read(_HEAD_BYTES)
            while len(head) % _HEAD_BYTES == 0 and 0 < len(head) < _LONGEST_LINE and _is_part_of_a_line(head):
                if not (more := unpacked.read(_HEAD_BYTES)):
                    break
                head += more

    if format is None and head.startswith(_PARQUET_MAGIC):
        format = "parquet"
    if format is None:
        suffix = Path(path.name.removesuffix(path.suffix) if promised else path.name).suffix.lower()
        guess = "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv"
        format = _FORMAT_OF_SUFFIX.get(suffix, guess)
    if format != "parquet":
        _check_text(path, head)
    elif compression is not None:
        raise DataError(f"{path}: a Parquet file packed once more with {compression} cannot be read; unpack it first")
    return DataFile(path, format, compression, head, partitions, copy)


def _check_text(path: AnyPath, head: bytes) -> None:
    for magic, kind in _FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"{path}: is {kind}, which is not read; save the data as UTF-8 CSV or as Parquet")
    if is_safetensors(head):
        raise DataError(f"{path}: is a model file (safetensors), not interactions; open it with topnrank.load")
    if b"\0" in head:
        raise DataError(f"{path}: is a binary file of an unknown kind; save the data as UTF-8 CSV or as Parquet")


def _is_part_of_a_line(head: bytes) -> bool:
    return not any(mark in head for mark in (b"\n", b"\r", b"\0")) and not head.startswith(_PARQUET_MAGIC)


def is_safetensors(head: bytes) -> bool:
    """Whether a file that begins with `head` is a model file: the length of a JSON header, then the header."""
    return head[8:9] == b"{" and b"\0" in head[:8]


def first_line(problem: BaseException) -> str:
    """The message of Arrow or the operating system, without its further lines."""
    return str(problem).partition("\n")[0].rstrip(".")
