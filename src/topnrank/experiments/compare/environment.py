"""Versions and hardware of this machine, for the settings of a comparison."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "numba", "pyarrow", "scipy", "implicit", "lightfm", "lightfm-next")


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
    """Processor, cores, system and memory, as far as they are known; starts no process, as `platform.platform` would."""
    cpuinfo, uname = Path("/proc/cpuinfo"), platform.uname()
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    system = (uname.system, uname.release, uname.machine, "".join(platform.libc_ver()))
    facts: dict[str, Any] = {
        "processor": models[0] if models else uname.machine,
        "cores": os.cpu_count(),
        "system": "-".join(part for part in system if part),
    }
    if hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        facts["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return facts
