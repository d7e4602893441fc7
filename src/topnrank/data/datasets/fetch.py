"""Public data sets by name: found on this machine or fetched, then read.

Looked for in this order: the folder given, or named by the environment variable TOPNRANK_DATA (the official archive, its
unpacked folder, or a Parquet file); the cache folder; the official address, or the mirror named by TOPNRANK_MIRROR.
"""

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import Any, Literal, TypedDict, Unpack

from topnrank._cache import cache_folder, make_cache_folder
from topnrank._checks import one_of
from topnrank.data.datasets.download import download, published_md5
from topnrank.data.datasets.registry import DATASETS, Dataset
from topnrank.data.datasets.titles import titles_of_parquet, titles_of_text
from topnrank.data.interactions import Interactions
from topnrank.data.readers.read import read
from topnrank.errors import DataError, ParameterError
from topnrank.io.atomic import output_error, write_atomically

_MOST_PACKED, _HARMLESS_BYTES = 50, 1 << 24
"""Text of ratings is packed to a fifth or so: an archive that unpacks to much more would fill the disk."""


class Fetching(TypedDict, total=False):
    """Where `load_dataset` and `load_titles` look, and whether they may fetch."""

    folder: str | os.PathLike[str] | None
    """Instead of the folder that TOPNRANK_DATA names."""
    fetch: bool
    """Whether to fetch what is not on this machine; True by default."""
    progress: bool
    """Whether to show a bar while fetching, in a terminal; True by default."""


@dataclass(frozen=True)
class LocalCopy:
    """A data set on this machine."""

    path: Path
    kind: Literal["archive", "folder", "parquet"]


@dataclass(frozen=True)
class Fetched:
    """What `fetch_dataset` found or downloaded."""

    source: LocalCopy
    is_new: bool
    md5: str | None
    """The published checksum of a new archive, which it has; None where none is published."""


def load_dataset(
    name: str, *, min_user_items: int | None = None, keep_order: bool = False, **fetching: Unpack[Fetching]
) -> Interactions:
    """A public data set as Interactions, fetched on first use.

    Parameters
    ----------
    name
        ml-100k, ml-1m, ml-10m, ml-20m, ml-25m, ml-latest-small, amazon-video-games or retail-rocket; each has terms of
        use of its own, see `topnrank data list`.
    min_user_items
        Leave out users with fewer items; by default what is usual for the set: 10 for amazon-video-games, as in the
        paper, else 0.
    keep_order
        Whether the order of the rows says which of a user's items of one moment came first, see `topnrank.read`.
    folder, fetch, progress
        Where to look first (by default where TOPNRANK_DATA says), whether to fetch what is not on this machine, and
        whether to show a bar then; see `Fetching`.
    """
    dataset = _dataset(name)
    data = _rows(dataset, _obtain(dataset, fetching).source, keep_order=keep_order)
    least = dataset.min_user_items if min_user_items is None else min_user_items
    return data.filter(min_user_items=least) if least else data


def load_titles(name: str, **fetching: Unpack[Fetching]) -> dict[int, str] | None:
    """Titles of a data set by item id, those never rated included; None where the set has none."""
    dataset = _dataset(name)
    if dataset.titles is None:
        return None
    for source in _sources(dataset, _folder(fetching)):
        if (file := _titles_file(dataset, source)) is not None:
            return titles_of_parquet(file) if source.kind == "parquet" else titles_of_text(file, dataset.titles)
    archive = _fetch(dataset, fetching).source
    return titles_of_text(_member(dataset, archive, dataset.titles.member), dataset.titles)


def fetch_dataset(name: str, **fetching: Unpack[Fetching]) -> Fetched:
    """Downloads a data set unless it is on this machine."""
    return _obtain(_dataset(name), fetching)


def find_dataset(name: str, folder: str | os.PathLike[str] | None = None) -> LocalCopy | None:
    """Where a data set is on this machine; None if it would have to be fetched."""
    return next(_sources(_dataset(name), _folder({"folder": folder})), None)


def data_folder() -> Path:
    """The cache folder for archives and what is extracted from them."""
    return cache_folder() / "data"


def _dataset(name: str) -> Dataset:
    return DATASETS[one_of("the data set", name, tuple(DATASETS))]


def _folder(fetching: Fetching) -> Path | None:
    named = fetching.get("folder") or os.environ.get("TOPNRANK_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        origin = "the folder" if fetching.get("folder") else "TOPNRANK_DATA"
        raise ParameterError(f"{origin} must name a folder with data sets, got {str(named)!r}; create it or correct it")
    return folder


def _sources(dataset: Dataset, folder: Path | None) -> Iterator[LocalCopy]:
    """All copies on this machine, the best first."""
    if folder is not None:
        yield from _local_sources(dataset, folder)
    cached = data_folder() / dataset.archive
    if cached.is_file():
        yield LocalCopy(cached, "archive")


def _local_sources(dataset: Dataset, folder: Path) -> Iterator[LocalCopy]:
    if (folder / dataset.archive).is_file():
        yield LocalCopy(folder / dataset.archive, "archive")
    for name in dataset.folders:
        if (folder / name / PurePosixPath(dataset.rows.member).name).is_file():
            yield LocalCopy(folder / name, "folder")
    for name in dataset.parquet_files:
        if (folder / name).is_file():
            yield LocalCopy(folder / name, "parquet")


def _obtain(dataset: Dataset, fetching: Fetching) -> Fetched:
    source = next(_sources(dataset, _folder(fetching)), None)
    return _fetch(dataset, fetching) if source is None else Fetched(source, is_new=False, md5=None)


def _fetch(dataset: Dataset, fetching: Fetching) -> Fetched:
    if not fetching.get("fetch", True):
        raise DataError(f"{dataset.name} is not on this machine; {_where_to_put(dataset)}")
    url, target = _address(dataset), data_folder() / dataset.archive
    md5 = dataset.md5  # ours before that of a mirror, which may forge both the archive and its checksum
    if md5 is None and dataset.has_md5_beside:
        md5 = published_md5(f"{url}.md5")
    make_cache_folder()
    try:
        download(url, target, md5=md5, progress=fetching.get("progress", True))
    except DataError as error:
        raise DataError(f"{dataset.name} cannot be fetched: {error}; or {_where_to_put(dataset)}") from None
    return Fetched(LocalCopy(target, "archive"), is_new=True, md5=md5)


def _address(dataset: Dataset) -> str:
    mirror = os.environ.get("TOPNRANK_MIRROR")
    if not mirror:
        return dataset.address
    if not mirror.startswith(("http://", "https://")):
        raise ParameterError(
            f"TOPNRANK_MIRROR must be an address that begins with http:// or https://, got {mirror!r};"
            " for a folder on this machine use TOPNRANK_DATA"
        )
    return f"{mirror.rstrip('/')}/{dataset.archive}"


def _where_to_put(dataset: Dataset) -> str:
    parquet = " or ".join(dataset.parquet_files)
    return (
        f"get {dataset.archive} from {dataset.address} by another way and put it into {data_folder()}, or put it, its"
        f" unpacked folder or {parquet} into any folder and name that folder in the environment variable TOPNRANK_DATA"
    )


def _rows(dataset: Dataset, source: LocalCopy, *, keep_order: bool) -> Interactions:
    rows = dataset.rows
    if source.kind == "parquet":
        roles: dict[str, Any] = dict(dataset.parquet_files[source.path.name])
        return read(source.path, format="parquet", duplicates=rows.duplicates, keep_order=keep_order, **roles)
    columns: dict[str, Any] = dict(rows.columns)
    data = read(
        _member(dataset, source, rows.member),
        format="csv",
        separator=rows.separator,
        header=bool(columns),
        duplicates=rows.duplicates,
        keep_order=keep_order,
        **columns,
    )
    if rows.ticks_per_second == 1 or data.timestamps is None:
        return data
    return replace(data, timestamps=data.timestamps // rows.ticks_per_second)


def _titles_file(dataset: Dataset, source: LocalCopy) -> Path | None:
    """The file with the titles, if this copy has one."""
    if source.kind == "parquet":
        file = source.path.with_name(f"{dataset.name}.movies.parquet")
    else:
        file = _member(dataset, source, dataset.titles.member if dataset.titles else "")
    return file if file.is_file() else None


def _member(dataset: Dataset, source: LocalCopy, member: str) -> Path:
    """A file of the data set as a file on disk."""
    if source.kind == "folder":
        return source.path / PurePosixPath(member).name
    return _unpacked(source.path, member, data_folder() / dataset.name) if dataset.is_zip else source.path


def _unpacked(archive: Path, member: str, folder: Path) -> Path:
    """The member, extracted into `folder` unless it is there.

    Only members of our choice are extracted, under names of our own: whatever names the archive holds, nothing is written
    outside the folder. The checksum in the path keeps members of different archives apart.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            if member not in packed.namelist():
                found = ", ".join(packed.namelist()[:8]) or "nothing"
                raise DataError(
                    f"{archive}: has no file {member} in it, found {found}; it is not the official archive, fetch it again"
                )
            info = packed.getinfo(member)
            if info.file_size > _MOST_PACKED * info.compress_size + _HARMLESS_BYTES:
                raise DataError(
                    f"{archive}: {member} would unpack to {info.file_size:,} bytes, {_MOST_PACKED} times what it takes now "
                    "or more; it is not the official archive, fetch it again"
                )
            target = folder / f"{info.CRC:08x}" / PurePosixPath(member).name
            if not (target.is_file() and target.stat().st_size == info.file_size):
                _make_folder(target.parent)
                write_atomically(target, lambda temporary: _extract(packed, info, temporary))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(
            f"{archive}: is not a zip archive or a damaged one ({error}); remove it and fetch it again"
        ) from None
    except PermissionError:
        raise DataError(f"{archive}: may not be read; ask for permission or change it with chmod") from None
    return target


def _make_folder(folder: Path) -> None:
    make_cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sentence = f"{folder}: cannot be made ({error.strerror}); name another cache folder with TOPNRANK_CACHE"
        raise output_error(sentence, error, has_begun=False) from None


def _extract(packed: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    with packed.open(info) as content, target.open("wb") as file:
        copyfileobj(content, file, 1 << 20)
