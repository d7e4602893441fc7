"""Writing files atomically: whole or not at all, local and remote.

A local file is written under a name that nobody can guess, beside the target, readable by its owner alone, and locked while
its writer lives: what a killed process left has no lock, and is removed by the next one that writes the same file.
"""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from topnrank.errors import DiskError, OutputError
from topnrank.io.paths import Location, RemotePath, parse_path, temporary_name

try:
    import fcntl
except ImportError:  # Windows: what a killed process left stays
    fcntl = None  # type: ignore[assignment]

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_WRONG_PATH = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def write_text(path: Location, text: str) -> None:
    """Writes `text` as UTF-8, atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_atomically(path: Location, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary file beside `path`, then renames it to `path`; a failure leaves `path` as it was.

    A link is followed; a file that is replaced hands on its owner and permissions. A remote file is first written to the
    temporary folder of this machine, then uploaded.
    """
    target = parse_path(path)
    if isinstance(target, RemotePath):
        _write_remote(target, write)
        return
    try:
        target = require_file(target)
        _remove_left_behind(target)
        with _temporary(target) as temporary:
            write(temporary.path)
            with temporary.path.open("rb+") as file:
                os.fsync(file.fileno())
            _hand_on(target, temporary)
            os.replace(temporary.path, target)
        with suppress(OSError):  # makes the new name last through a loss of power, where the system can
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise output_error(_why_unwritable(path, error), error) from error


def output_error(sentence: str, cause: Exception, *, has_begun: bool = True) -> OutputError:
    """The error to raise where `cause` ended some writing: a DiskError unless it is the path that is wrong, as it is where
    nobody has been allowed to write since before the work has begun."""
    wrong = _WRONG_PATH if has_begun else _WRONG_PATH + _FORBIDDEN
    return (OutputError if getattr(cause, "errno", None) in wrong else DiskError)(sentence)


def require_file(path: Path) -> Path:
    """The path without links; an OutputError where something else than a file stands there, such as a device."""
    if "\0" in str(path):
        raise OutputError(f"{str(path)!r}: no name can hold a NUL character; give another name")
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is a device, a pipe or a socket, not a file; give the name of a file")
    return target


class _Temporary(NamedTuple):
    """A file that is being written."""

    path: Path
    usual_mode: int
    """The permissions that new files get by the umask; to ask for the umask itself is to change it for all threads"""


@contextmanager
def _temporary(target: Path) -> Iterator[_Temporary]:
    """A new, private, locked file beside `target`, removed at the end if it still has that name."""
    path = target.with_name(temporary_name(target.name))
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            usual_mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if fcntl is not None:
                os.fchmod(handle, 0o600)
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield _Temporary(path, usual_mode)
        finally:
            os.close(handle)
    finally:
        path.unlink(missing_ok=True)


def _hand_on(target: Path, temporary: _Temporary) -> None:
    """Gives the new file the permissions of the old one, and its owner where that is allowed."""
    try:
        old = target.stat()
    except FileNotFoundError:
        os.chmod(temporary.path, temporary.usual_mode)
        return
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(temporary.path, old.st_uid, old.st_gid)
    os.chmod(temporary.path, stat.S_IMODE(old.st_mode))


def _remove_left_behind(target: Path) -> None:
    """Removes temporary files of `target` whose writers are dead."""
    begin, _, _ = temporary_name(target.name).rsplit(".", 2)
    of_target = re.compile(rf"{re.escape(begin)}\.[0-9a-f]{{12}}\.part")
    with suppress(OSError):
        for file in target.parent.iterdir():
            if fcntl is not None and of_target.fullmatch(file.name):
                with suppress(OSError), file.open("rb") as opened:
                    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the writer lives
                    file.unlink()


def _write_remote(target: RemotePath, write: Callable[[Path], object]) -> None:
    target.require_folder()  # before the work
    try:
        with tempfile.TemporaryDirectory(prefix="topnrank-") as folder:
            temporary = Path(folder, target.name)
            write(temporary)
            target.put(temporary)
    except OSError as error:
        if "No space left" in str(error) or "os error 28" in str(error):
            where = tempfile.gettempdir()
            raise DiskError(
                f"{target}: cannot be prepared in {where}, where the disk is full; free some space or set TMPDIR "
                "(nothing was overwritten)"
            ) from error
        raise output_error(_why_unwritable(target, error), error) from error


def _why_unwritable(path: Location, error: Exception) -> str:
    code, text = getattr(error, "errno", None), str(error)
    if code in _FULL or "No space left" in text or re.search(r"os error (28|122)\b", text):
        return f"{path}: the disk is full; free some space or choose another place (nothing was overwritten)"
    if code == errno.ENOENT:
        return f"{path}: its folder does not exist; create it first"
    if code in _FORBIDDEN or "os error 13" in text:
        return f"{path}: no permission to write there; choose another place"
    return f"{path}: cannot be written ({error})"
