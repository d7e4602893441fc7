"""Which Python functions of the package a call walks through."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path

from numba.core.dispatcher import Dispatcher

import topnrank

ROOT = Path(topnrank.__file__).parent


def walked(call: Callable[[], object]) -> dict[str, list[str]]:
    """The distinct functions that a second run of `call` enters, by file, in the order of their first call.

    The first run imports and compiles. Comprehensions and lambdas are not counted, and neither are compiled kernels.
    """
    call()
    found = {}

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            found.setdefault(code, None)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    # By type(): isinstance() asks objects of other packages for their class, some of which warn.
    kernels = {one.py_func.__code__ for one in gc.get_objects() if issubclass(type(one), Dispatcher)}
    by_file = {}
    for code in found:
        if code not in kernels:
            by_file.setdefault(str(Path(code.co_filename).relative_to(ROOT)), []).append(code.co_qualname)
    return by_file
