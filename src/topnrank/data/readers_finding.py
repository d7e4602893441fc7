"""Which files a path, a folder or a glob means, on this machine and elsewhere."""

import glob
import os
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from topnrank.errors import DataError
from topnrank.places import AnyPath, RemotePath


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
