"""A pytest plugin: tests outside the tiers `process` and `cluster` start no process, and a run leaves nothing behind."""

import os
import sys
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

_forbidden = False


def _watch(event: str, _: object) -> None:
    if _forbidden and event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        raise RuntimeError("this test starts a process: mark it with pytest.mark.process, which keeps `make test` fast")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def _processes_only_where_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    global _forbidden
    _forbidden = not any(request.node.get_closest_marker(tier) for tier in ("process", "cluster"))
    yield
    _forbidden = False


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
                found.append((stat.parent / "cmdline").read_text().replace("\0", " ").strip())
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No files in the repository, no processes, and the working folder and the environment as they were."""
    files, environment, folder, children = _files(), dict(os.environ), Path.cwd(), _children()
    yield
    left = {
        "files": sorted(_files() - files),
        "processes": sorted(set(_children()) - set(children)),
        "environment": sorted(dict(os.environ.items() ^ environment.items()).keys() - {"PYTEST_CURRENT_TEST"}),
        "folder": [] if Path.cwd() == folder else [str(Path.cwd())],
    }
    assert not any(left.values()), f"the tests left behind {left}"
