"""The folder for everything that topnrank keeps on this machine: compiled kernels, data sets, Spark's files."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The folder named by the environment variable TOPNRANK_CACHE, else the user's cache folder; it may not exist yet."""
    return Path(os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank"))
