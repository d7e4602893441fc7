"""Versions and hardware of this machine, for the settings of a comparison."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "numba", "pyarrow", "scipy", "implicit", "lightfm")


def versions() -> dict[str, str]:
    """Versions of this library, of Python and of the packages that numbers may depend on, where they are installed."""
    from topnrank import __version__

    found = {"topnrank": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores, system and memory, as far as they are known."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor() or platform.machine()  # `processor` starts a process
    facts: dict[str, Any] = {"processor": processor, "cores": os.cpu_count(), "system": platform.platform()}
    if hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        facts["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return facts
