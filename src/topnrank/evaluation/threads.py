"""The number of threads of a stretch of work."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba

from topnrank.errors import ParameterError


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """Run the parallel kernels inside on `num_threads` threads, at most as many as there are; 0 for all of them."""
    if num_threads < 0:
        raise ParameterError(f"num_threads must be 0 (all) or more, got {num_threads}")
    before, most = numba.get_num_threads(), numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(min(num_threads or most, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)
