"""The first module of the archive that executors get: there, this file is `topnrank/__init__.py`.

Numba names its cache after the folder of the source, and Spark gives the archive another folder in every application, so
kernels would be compiled in each one anew. So the archive is unpacked once on each machine, to a folder named after its
content, and the package is imported from there:

    <application's folder>/topnrank-3f2a.zip        <cache>/packages/topnrank-3f2a/
        topnrank/__init__.py   (this file)   ──▶        topnrank/__init__.py, ...   (the package)
        package/topnrank/...   (the package)

The cache is TOPNRANK_CACHE or the user's own. Where it cannot be written, or others can write it, the package is
imported from inside the archive.
"""

import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import platformdirs

INSIDE = "package"
"""Folder of the archive that holds the package."""


def unpacked(archive: Path) -> Path:
    """The folder that holds the archive's package, unpacked if this is the first to ask; inside the archive if need be."""
    root = os.environ.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank")
    folder = Path(root).absolute() / "packages" / archive.stem
    try:
        Path(root).mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        if not all(map(_is_ours, folder.parents[:2])):
            return archive / INSIDE
        if not folder.is_dir():
            _unpack(archive, folder)
    except OSError:
        return archive / INSIDE
    return folder if _is_ours(folder) else archive / INSIDE


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can put files there: what lies in it is imported."""
    found = folder.stat()
    return not hasattr(os, "getuid") or (found.st_uid in (os.getuid(), 0) and not found.st_mode & 0o022)


def _unpack(archive: Path, folder: Path) -> None:
    """Puts the whole folder in place at once: several workers start together."""
    work = tempfile.mkdtemp(prefix=".unpacking-", dir=folder.parent)
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(work, [name for name in content.namelist() if name.startswith(f"{INSIDE}/")])
        (Path(work) / INSIDE).chmod(0o755)
        os.rename(Path(work) / INSIDE, folder)
    except OSError:
        if not folder.is_dir():  # else another worker was quicker
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "topnrank":  # only as the archive's own __init__.py; there, the package takes this module's place
    sys.path.insert(1, str(unpacked(Path(__file__).parents[1])))
    del sys.modules[__name__]
    importlib.import_module(__name__)
