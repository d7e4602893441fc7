"""One process at a time compiles a kernel; others that need it meanwhile wait, and read it from the cache.

Without a lock, processes that start with an empty cache each compile the same kernels. Worse, Numba numbers the compiled
versions of a kernel (one for each combination of argument types) in an index file: two processes that save different ones
at the same time can give both the same number, and a later process would run machine code made for other types.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows: every process compiles its own kernels
    fcntl = None  # type: ignore[assignment]

_held: set[Path] = set()
"""The files locked by this process."""


def one_at_a_time(compile_kernel: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """The method `compile` of a kernel, run under a lock on `file`.

    No deadlock: a kernel waits only for kernels that it calls, and the threads of a process take turns before they wait.
    """

    @wraps(compile_kernel)
    def locked(*arguments: Any) -> Any:
        with global_compiler_lock, _locked(file):
            return compile_kernel(*arguments)

    return locked


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    if fcntl is None or file in _held:
        yield
        return
    with ExitStack() as opened:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(opened.enter_context(file.open("a")), fcntl.LOCK_EX)  # until it is closed, or the process dies
        _held.add(file)
        try:
            yield
        finally:
            _held.remove(file)
