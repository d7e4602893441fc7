"""Writing files atomically: whole or not at all, local and remote."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from topnrank.errors import OutputError
from topnrank.io.paths import Location, RemotePath, parse_path


def write_text(path: Location, text: str) -> None:
    """Writes `text` as UTF-8, atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_atomically(path: Location, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary file beside `path`, then renames it to `path`; a failure leaves `path` as it was.

    A remote file is first written to the temporary folder of this machine, then uploaded.
    """
    target = parse_path(path)
    if isinstance(target, RemotePath):
        _write_remote(target, write)
        return
    if target.is_dir():
        raise OutputError(f"{path}: is a folder; give the name of a file")
    mask = os.umask(0)
    os.umask(mask)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except (OSError, SafetensorError) as error:
        raise OutputError(_why_unwritable(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _write_remote(target: RemotePath, write: Callable[[Path], object]) -> None:
    target.require_folder()  # before the work
    try:
        with tempfile.TemporaryDirectory(prefix="topnrank-") as folder:
            temporary = Path(folder, target.name)
            write(temporary)
            target.put(temporary)
    except (OSError, SafetensorError) as error:
        if "No space left" in str(error) or "os error 28" in str(error):
            where = tempfile.gettempdir()
            raise OutputError(
                f"{target}: cannot be prepared in {where}, where the disk is full; free some space or set TMPDIR "
                "(nothing was overwritten)"
            ) from error
        raise OutputError(_why_unwritable(target, error)) from error


def _why_unwritable(path: Location, error: Exception) -> str:
    code, text = getattr(error, "errno", None), str(error)
    if code == errno.ENOSPC or "No space left" in text or "os error 28" in text:
        return f"{path}: the disk is full; free some space or choose another place (nothing was overwritten)"
    if code == errno.ENOENT:
        return f"{path}: its folder does not exist; create it first"
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path}: no permission to write there; choose another place"
    return f"{path}: cannot be written ({error})"
