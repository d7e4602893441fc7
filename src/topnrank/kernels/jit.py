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

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numba
from numba import prange
from numba.core import config

from topnrank.kernels._compile_lock import one_at_a_time
from topnrank.kernels._kernel_cache import KernelCache, kernel_folder
from topnrank.kernels._parallel_for import guard

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
    "threads_for",
]

Kernel = Callable[..., Any]
"""A compiled function; its arguments are checked by Numba, not by the type checker."""


_FOLDER = kernel_folder()


def must_compile() -> bool:
    """Whether the cache folder holds no compiled kernels yet, so that the first training takes longer."""
    return _FOLDER is None or next(_FOLDER.rglob("*.nbi"), None) is None


def _compile(function: Kernel, **flags: Any) -> Kernel:
    """`numba.njit` with a cache in our folder; the cache of other packages stays where it is."""
    cached = flags.pop("cache", True) and _FOLDER is not None
    compiled: Kernel = numba.njit(**({"error_model": "numpy"} | flags))(function)
    if cached:
        assert _FOLDER is not None
        before, config.CACHE_DIR = config.CACHE_DIR, str(_FOLDER)
        try:
            compiled._cache = KernelCache(function)  # type: ignore[attr-defined]
        finally:
            config.CACHE_DIR = before
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
    compiled = _compile(function, parallel=True)
    compiled.compile = _guarded(compiled.compile)  # type: ignore[attr-defined]
    return compiled


def _guarded(compile_kernel: Kernel) -> Kernel:
    @wraps(compile_kernel)
    def guarded(*arguments: Any) -> Any:
        guard()
        return compile_kernel(*arguments)

    return guarded


def thread_count(num_threads: int) -> int:
    """The number of threads that `threads(num_threads)` uses."""
    most: int = numba.config.NUMBA_NUM_THREADS
    return min(num_threads or most, most)


@dataclass
class threads:  # noqa: N801 (called like a function)
    """A context in which parallel kernels use `num_threads` threads, at most as many as there are; 0 for all of them.

    A class, and not a generator with `contextmanager`, because it is entered for every batch.
    """

    num_threads: int

    def __enter__(self) -> None:
        self._before = numba.get_num_threads()
        if self._before != (wanted := thread_count(self.num_threads)):
            numba.set_num_threads(wanted)

    def __exit__(self, *_: object) -> None:
        if self._before != numba.get_num_threads():
            numba.set_num_threads(self._before)


def threads_for(requests: int) -> AbstractContextManager[None]:
    """One thread for one request, which else waits at a barrier for threads that a busy machine may not run; the threads
    of before for more."""
    return threads(1) if requests == 1 else nullcontext()
