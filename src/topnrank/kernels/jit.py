"""Compiling kernels with Numba: the flags of each kind of kernel, the cache on disk, and the number of threads.

Compiled kernels are cached on disk. Numba's own cache does not notice edits in a file that a kernel imports, so the cache is
a folder named after a digest of the text of all kernel files: any edit or upgrade starts a fresh one. Where no folder can
be written, or the package is in a zip archive, each process compiles its kernels again.

No fast-math flags: with them the compiler may reorder sums, and does it differently in a kernel just compiled and in the
same kernel read from the cache, so that bits would depend on which process compiled first. The one exception is
`summing_kernel`, for a leaf small enough to be always inlined.

Kernels called from Python fill arrays allocated in Python and return scalars or None: to box an array or a tuple Numba runs
Python code without checking for errors, and a pending Ctrl-C raised there crashes the process.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import prange
from numba.core import config

from topnrank._cache import cache_folder
from topnrank.kernels._compile_lock import one_at_a_time

__all__ = [
    "generator_kernel",
    "kernel",
    "kernel_folder",
    "leaf_kernel",
    "must_compile",
    "parallel_kernel",
    "prange",
    "summing_kernel",
    "thread_count",
    "threads",
]

Kernel = Callable[..., Any]
"""A compiled function; its arguments are checked by Numba, not by the type checker."""


def kernel_folder() -> Path | None:
    """The cache folder of the kernels compiled from exactly these sources; None where it cannot be written.

    None in a zip archive as well: Numba caches kernels from there under the archive's path, in the user's home.
    """
    if not Path(__file__).is_file():
        return None
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    package = Path(__file__).parents[1]
    for file in sorted({*package.glob("kernels/*.py"), *package.rglob("kernel.py"), *package.rglob("_*_kernel*.py")}):
        digest.update(file.read_bytes())
    folder = cache_folder() / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def must_compile() -> bool:
    """Whether the cache folder holds no compiled kernels yet, so that the first training takes longer."""
    folder = kernel_folder()
    return folder is None or next(folder.rglob("*.nbi"), None) is None


_FOLDER = kernel_folder()


def _compile(function: Kernel, **flags: Any) -> Kernel:
    """`numba.njit` with the cache in our folder; the cache of other packages stays where it is."""
    flags = {"cache": _FOLDER is not None, "error_model": "numpy"} | flags
    before = config.CACHE_DIR
    if _FOLDER is not None:
        config.CACHE_DIR = str(_FOLDER)
    try:
        compiled: Kernel = numba.njit(**flags)(function)
    finally:
        config.CACHE_DIR = before
    if _FOLDER is not None and flags["cache"]:
        lock = _FOLDER / f"{function.__module__}.{function.__qualname__}.lock"
        compiled.compile = one_at_a_time(compiled.compile, lock)  # type: ignore[attr-defined]
    return compiled


def kernel(function: Kernel) -> Kernel:
    """A compiled function on plain arrays, run by one thread."""
    return _compile(function, nogil=True)


def summing_kernel(function: Kernel) -> Kernel:
    """A kernel whose sums may be reordered for SIMD; only for small functions that are always inlined (see above)."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract"})


def leaf_kernel(function: Kernel) -> Kernel:
    """A kernel that is always inlined, for innermost loops; only with plain arrays: tuples make it slow."""
    return _compile(function, nogil=True, forceinline=True)


def generator_kernel(function: Kernel) -> Kernel:
    """A compiled generator; not cached by itself: Numba cannot compile a kernel that uses one from the cache."""
    return _compile(function, nogil=True, cache=False)


def parallel_kernel(function: Kernel) -> Kernel:
    """A compiled function whose `prange` loops run on all threads; each iteration writes only its own rows."""
    return _compile(function, parallel=True)


def thread_count(num_threads: int) -> int:
    """The number of threads that `threads(num_threads)` uses."""
    most: int = numba.config.NUMBA_NUM_THREADS
    return min(num_threads or most, most)


class threads:  # noqa: N801 (called like a function)
    """A context in which parallel kernels use `num_threads` threads, at most as many as there are; 0 for all of them.

    A class, and not a generator with `contextmanager`, because it is entered for every batch.
    """

    def __init__(self, num_threads: int) -> None:
        self._wanted = thread_count(num_threads)

    def __enter__(self) -> None:
        self._before = numba.get_num_threads()
        if self._before != self._wanted:
            numba.set_num_threads(self._wanted)

    def __exit__(self, *_: object) -> None:
        if self._before != self._wanted:
            numba.set_num_threads(self._before)
