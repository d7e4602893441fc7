"""What every benchmark prints about where it ran."""

import os
import platform
from importlib.metadata import version

from topnrank.experiments.compare.environment import hardware


def environment() -> str:
    """Hardware and versions in one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("topnrank", "numpy", "numba", "pyarrow"))
    return f"{hardware()['processor']}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}"
