"""A sentence before work for which there cannot be enough memory, instead of a killed process in the middle of it."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from topnrank.errors import OutOfMemoryError

GROUPS = Path("/sys/fs/cgroup")
SMALL = 2**26
"""Bytes about which nobody asks: looking takes longer than a small request."""


def require_memory(needed: int, what: str, advice: str) -> None:
    """An OutOfMemoryError where `what` takes more bytes than this process can have; `advice` says what to do."""
    free = free_memory() if needed > SMALL else None
    if free is not None and needed > free:
        there = f"{free / 2**30:.1f} GiB more"
        raise OutOfMemoryError(
            f"{what} takes {needed / 2**30:.1f} GiB of memory, and this process can have {there}; {advice}"
        )


def free_memory() -> int | None:
    """Bytes that this process can still have: the least of what the machine has free, with its swap space, what is left of
    the limit of its container, and of its own (`ulimit -v`). None where the system does not say.
    """
    return min((max(0, free) for free in _limits()), default=None)


def _limits() -> Iterator[int]:
    with suppress(OSError, ValueError):
        known = dict(re.findall(r"^(\w+):\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE))
        yield 1024 * (int(known["MemAvailable"]) + int(known["SwapFree"]))
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with suppress(OSError, ValueError):
            if limit != resource.RLIM_INFINITY:
                yield limit - os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text().split()[0])
    with suppress(OSError, ValueError):
        yield from _limits_of_container()


def _limits_of_container() -> Iterator[int]:
    """What control groups leave: the process's own and those around it, of either version."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = GROUPS / kinds
        most, used, unused = (
            ("memory.max", "memory.current", "inactive_file")
            if not kinds
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        for group in (root / path.lstrip("/"), *(root / path.lstrip("/")).parents):
            if not group.is_relative_to(root):
                break
            with suppress(OSError, ValueError):  # "max": no limit
                limit = int((group / most).read_text())
                cache = re.search(rf"^{unused} (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
                yield limit - int((group / used).read_text()) + int(cache[1] if cache else 0)
