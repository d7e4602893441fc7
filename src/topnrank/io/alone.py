"""One process at a time: a lock that ends with the process, however that ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from topnrank.errors import OutputError
from topnrank.io.atomic import output_error

if sys.platform != "win32":
    import fcntl


@contextmanager
def alone(file: Path, what: str) -> Iterator[None]:
    """A context that one process at a time is in, by a lock on a folder, or on a `file` that is made; an OutputError says
    that another does `what`."""
    if sys.platform == "win32":  # nobody waits for anybody
        yield
        return
    flags = os.O_RDONLY if file.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        handle = os.open(file, flags, 0o600)
    except OSError as error:
        sentence = f"{file}: cannot be written ({error.strerror}); choose another place"
        raise output_error(sentence, error, has_begun=False) from None
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(f"{what}; wait until it ends, or give another place") from None
        yield
    finally:
        os.close(handle)
