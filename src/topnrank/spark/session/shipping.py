"""The same package on every executor: an archive of exactly the driver's files, sent once for each application.

Executors need the dependencies of topnrank (numpy, numba, pyarrow, ...), which the cluster's administrator installs;
topnrank itself need not be installed there, and if another version is, the driver's is used all the same.

The setting `spark.topnrank.ship` says when to send it: "auto" (unless the master is local), "always" or "never". However the
package gets there, the first training or job of an application on a cluster asks the executors whether it is the driver's.
"""

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from topnrank._checks import one_of
from topnrank.errors import OutputError, ParameterError
from topnrank.io.atomic import write_atomically
from topnrank.spark.session import shipped
from topnrank.spark.session.session import described, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.topnrank.ship"
WHEN = ("auto", "always", "never")
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every entry of the archive, so that the same files make the same archive."""
_checked: set[str] = set()
"""Applications whose executors were asked."""


def prepare_executors(session: "SparkSession") -> None:
    """Sends the package to the executors where that is needed, and checks once that they have the driver's."""
    ship_package(session)
    context = session.sparkContext
    if not is_local(context) and context.applicationId not in _checked:
        with described(context, "do the executors have the same package?"):
            check_executors(session)
        _checked.add(context.applicationId)


def ship_package(session: "SparkSession") -> str | None:
    """Sends the package to all executors, present and future ones; the archive's name, None where none is needed."""
    context = session.sparkContext
    when = one_of(SETTING, session.conf.get(SETTING, "auto"), WHEN)
    if when == "never" or (when == "auto" and is_local(context)):
        return None
    archive = package_archive()
    if not any(file.endswith(f"/{archive.name}") for file in context.listFiles):
        before = list(sys.path)
        context.addPyFile(str(archive))
        sys.path[:] = before  # addPyFile puts it there for the driver, which has the package already
    return archive.name


def package_archive() -> Path:
    """The archive of this package in the cache, made if it is not there; its name tells its content."""
    name = f"topnrank-{package_digest()}.zip"
    try:
        return _archive_in(_cache() / "archives", name)
    except (OSError, OutputError):  # no cache can be written
        folder = Path(tempfile.mkdtemp(prefix="topnrank-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that come later ask for it as well
        return _archive_in(folder, name)


def _cache() -> Path:
    return Path(os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank")).absolute()


def _archive_in(folder: Path, name: str) -> Path:
    archive = folder / name
    if not archive.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(archive, _write_archive)
    return archive


def _write_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        _add(archive, "topnrank/__init__.py", (files("topnrank.spark.session") / "shipped.py").read_bytes())
        for name, file in _package_files():
            _add(archive, f"{shipped.INSIDE}/{name}", file.read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, OLDEST_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def package_digest() -> str:
    """What tells this package's files from any other's."""
    digest = hashlib.sha256()
    for name, file in _package_files():
        content = file.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _package_files() -> Iterator[tuple[str, Traversable]]:
    """Name and file of all that belongs to the package, sorted; it may itself lie in an archive."""
    return _files_in("topnrank", files("topnrank"))


def _files_in(place: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{place}/{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files_in(name, entry)
        elif entry.is_file():
            yield name, entry


def check_executors(session: "SparkSession") -> None:
    """A ParameterError with machine and reason where executors cannot import topnrank, or have another version; one job."""
    slots = max(session.sparkContext.defaultParallelism, 1)
    answers = session.sparkContext.parallelize(range(slots), slots).mapPartitions(_package_question()).collect()
    wanted = package_digest()
    for host, digest, reason in answers:
        if digest is None:
            raise ParameterError(
                f"topnrank cannot be imported on the executor at {host}: {reason}; "
                f"install its dependencies there for the Python that PYSPARK_PYTHON names, or set {SETTING} to always"
            )
        if digest != wanted:
            raise ParameterError(
                f"the executor at {host} has another topnrank than the driver ({reason}); "
                f"install the same version there or set {SETTING} to always"
            )


def _package_question() -> Callable[[Iterator[int]], list[tuple[str, str | None, str]]]:
    """What each executor is asked: its machine, the digest of its package, and version and place of that.

    Where it cannot be imported, None and the reason. An inner function, because those are pickled by value.
    """

    def answer(rows: Iterator[int]) -> list[tuple[str, str | None, str]]:
        import socket

        list(rows)  # a worker whose input is not read to its end is thrown away
        try:
            import topnrank
            from topnrank.spark.engine import tasks  # noqa: F401  (with all that tasks need)
            from topnrank.spark.session.shipping import package_digest
        except ImportError as error:
            return [(socket.gethostname(), None, str(error))]
        return [(socket.gethostname(), package_digest(), f"version {topnrank.__version__} in {topnrank.__path__[0]}")]

    return answer
