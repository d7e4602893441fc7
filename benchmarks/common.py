"""What every benchmark prints about where it ran."""

import os

from topnrank.experiments.compare.environment import hardware, versions


def environment() -> str:
    """Hardware and versions in one line."""
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"{hardware()['processor']}, {os.cpu_count()} cores; {packages}"
