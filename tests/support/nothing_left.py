"""A pytest plugin: a run of the tests leaves nothing behind."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = {
    ".git",
    ".venv",
    ".venv-bench",
    "_build",
    "__pycache__",
    ".hypothesis",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
}
"""Folders of tools, which keep what they know between runs."""


def _files() -> set[str]:
    """All files of the repository except those of the tools."""
    found = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in TOOLS]
        found.update(str(Path(folder, file).relative_to(ROOT)) for file in files)
    return found


def _children() -> list[str]:
    """The commands of this process's children that still run; none where the system has no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                command = (stat.parent / "cmdline").read_text().replace("\0", " ").strip()
                if "resource_tracker" not in command:  # Python's own, which ends with this process
                    found.append(command)
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No files in the repository, no processes, and the working folder as it was."""
    files, folder, children = _files(), Path.cwd(), _children()
    yield
    left = {
        "files": sorted(_files() - files),
        "processes": sorted(set(_children()) - set(children)),
        "folder": [] if Path.cwd() == folder else [str(Path.cwd())],
    }
    assert not any(left.values()), f"the tests left behind {left}"
