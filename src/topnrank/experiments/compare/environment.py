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
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = models[0].partition(":")[2].strip() if models else processor
    facts: dict[str, Any] = {"processor": processor, "cores": os.cpu_count(), "system": platform.platform()}
    if hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        facts["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return facts
