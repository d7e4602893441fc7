"""The one place with Numba's flags, and the home of the compiled code.

Compiled kernels are kept on disk across processes. Numba's own cache does not notice edits in a file that a kernel
imports, so ours lies in a folder named after the text of all kernel files: any edit or upgrade starts a fresh one.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core import config

Kernel = Callable[..., Any]
"""A compiled function; its arguments are checked by Numba, not by the type checker."""

# Sums may be reordered by the compiler (SIMD), always in the same way, so bits do not depend on threads; NaN and
# infinity keep their meaning because divergence must be seen.
_MATH = {"reassoc", "contract", "nsz", "arcp"}


def cache_folder() -> Path:
    """Folder of the compiled kernels of exactly this version of their sources."""
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    root = os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank")
    return Path(root) / "kernels" / digest.hexdigest()[:16]


_CACHE = str(cache_folder())


def _compile(function: Kernel, **flags: Any) -> Kernel:
    """`numba.njit` with the cache in our folder; other packages' caches are left where they are."""
    before, config.CACHE_DIR = config.CACHE_DIR, _CACHE
    try:
        compiled: Kernel = numba.njit(cache=True, error_model="numpy", fastmath=_MATH, **flags)(function)
        return compiled
    finally:
        config.CACHE_DIR = before


def kernel(function: Kernel) -> Kernel:
    """A compiled function on plain arrays, run by one thread."""
    return _compile(function, nogil=True)


def parallel_kernel(function: Kernel) -> Kernel:
    """A compiled function whose `prange` loops run on all threads; each turn writes only its own rows."""
    return _compile(function, parallel=True)


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """Runs the parallel kernels inside on `num_threads` threads, at most as many as there are; 0 for all of them."""
    before, most = numba.get_num_threads(), numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(min(num_threads or most, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)
