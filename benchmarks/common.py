"""What every benchmark prints about where it ran."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def environment() -> str:
    """Hardware and versions in one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("topnrank", "numpy", "numba", "pyarrow"))
    return f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}"
