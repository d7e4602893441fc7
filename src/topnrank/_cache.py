"""The folder for everything that topnrank keeps on this machine: compiled kernels, data sets, Spark's files."""

import os
from contextlib import suppress
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The folder named by the environment variable TOPNRANK_CACHE, else the user's cache folder; it may not exist yet."""
    return Path(os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank"))


def make_cache_folder() -> None:
    """Makes it so that nobody else can write it, whatever the umask: else kernels would not be kept there."""
    with suppress(OSError):
        cache_folder().mkdir(mode=0o755, parents=True, exist_ok=True)
