"""The one place with Numba's flags, and the home of the compiled code.

Compiled kernels are kept on disk across processes. Numba's own cache does not notice edits in a file that a kernel
imports, so ours lies in a folder named after the text of all kernel files: any edit or upgrade starts a fresh one. Where no
folder can be written, or the package lies in a zip archive, kernels are compiled in each process anew. Without Numba they
run as the Python they are, slowly.

No fast-math flags: with them the compiler may reorder sums, and does it differently in a kernel just compiled and in the
same kernel read from the cache, so that bits would depend on which process compiled first. The one exception is
`summing_kernel`, for a leaf small enough to be always inlined.

Kernels fill arrays that Python made and return numbers or nothing, where Python calls them: to hand over an array or a tuple
Numba calls Python code and does not check how that ended, so that Ctrl-C at that moment, which is where one that arrived
during a long kernel is noticed, would end the process with a segmentation fault.
"""

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs

try:
    import numba
    from numba import prange
    from numba.core import config
except ImportError:
    warnings.warn("Numba is not installed: everything works, but many times slower", stacklevel=2)
    numba, prange = None, range

__all__ = [
    "cache_folder",
    "generator_kernel",
    "kernel",
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


def cache_folder() -> Path | None:
    """Folder of the compiled kernels of exactly this version of their sources; None where none can be written.

    None in a zip archive as well: Numba keeps what it compiles from there under the archive's path, in the user's home.
    """
    if not Path(__file__).is_file():
        return None
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    package = Path(__file__).parents[1]
    for file in sorted({*package.glob("kernels/*.py"), *package.rglob("kernel.py"), *package.rglob("_*_kernel*.py")}):
        digest.update(file.read_bytes())
    root = os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank")
    folder = Path(root) / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def must_compile() -> bool:
    """Whether the cache folder holds no compiled kernels yet, so that the first training takes longer."""
    folder = cache_folder()
    return folder is None or next(folder.rglob("*.nbi"), None) is None


_FOLDER = cache_folder() if numba is not None else None


def _compile(function: Kernel, **flags: Any) -> Kernel:
    """`numba.njit` with the cache in our folder; other packages' caches are left where they are."""
    if numba is None:
        return function
    flags = {"cache": _FOLDER is not None, "error_model": "numpy"} | flags
    before = config.CACHE_DIR
    if _FOLDER is not None:
        config.CACHE_DIR = str(_FOLDER)
    try:
        compiled: Kernel = numba.njit(**flags)(function)
        return compiled
    finally:
        config.CACHE_DIR = before


def kernel(function: Kernel) -> Kernel:
    """A compiled function on plain arrays, run by one thread."""
    return _compile(function, nogil=True)


def summing_kernel(function: Kernel) -> Kernel:
    """A kernel whose sums may be reordered for wide registers; only for small leaves (see above)."""
    return _compile(function, nogil=True, fastmath={"reassoc", "contract"})


def leaf_kernel(function: Kernel) -> Kernel:
    """A kernel that always becomes part of its caller, for innermost loops; only with plain arrays: tuples make it slow."""
    return _compile(function, nogil=True, forceinline=True)


def generator_kernel(function: Kernel) -> Kernel:
    """A compiled generator; not kept on disk by itself: Numba cannot compile a kernel with one that it read from there."""
    return _compile(function, nogil=True, cache=False)


def parallel_kernel(function: Kernel) -> Kernel:
    """A compiled function whose `prange` loops run on all threads; each turn writes only its own rows."""
    return _compile(function, parallel=True)


def thread_count(num_threads: int) -> int:
    """How many threads `threads(num_threads)` gives."""
    most = numba.config.NUMBA_NUM_THREADS if numba is not None else 1
    return min(num_threads or most, most)


class threads:  # noqa: N801 (called like a function)
    """Runs the parallel kernels inside on `num_threads` threads, at most as many as there are; 0 for all of them.

    A class, and nothing set where nothing changes, since every visit of a batch passes here.
    """

    def __init__(self, num_threads: int) -> None:
        self._wanted = thread_count(num_threads)

    def __enter__(self) -> None:
        self._before = self._wanted if numba is None else numba.get_num_threads()
        if self._before != self._wanted:
            numba.set_num_threads(self._wanted)

    def __exit__(self, *_: object) -> None:
        if self._before != self._wanted:
            numba.set_num_threads(self._before)
