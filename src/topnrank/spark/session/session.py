"""The Spark session: the one that is active, or a new one on a Java that works; classic ones only.

    session = get_session("spark://host:7077")

Training keeps state in RDDs and broadcasts, which exist in classic sessions only; a session of Spark Connect is refused.
What can go wrong before the first job (no pyspark, an old one, no Java, no such master) is an error of one sentence.
"""

import os
import re
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import ParameterError
from topnrank.spark.session.java import use_java

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

OLDEST_SPARK = (3, 5)
NEWEST_JAVA_OF_OLD_HADOOP = 22
"""Hadoop's client asks for a security manager before 3.4.3, which newer Java refuses."""
MAX_CONNECT_SECONDS = 10.0
"""Seconds that a master is given to answer."""
QUIET = {"spark.ui.showConsoleProgress": "false"}
"""Settings of a session made here, unless the caller sets them: progress is topnrank's own."""
CLASSIC_NEEDED = (
    "topnrank needs a classic Spark session, and this one is Spark Connect's, which has no RDDs; "
    'start Python without SPARK_REMOTE and make it with SparkSession.builder.master("local[*]" or "spark://...").getOrCreate()'
)


def get_session(
    master: str | None = None, app_name: str = "topnrank", conf: Mapping[str, str] | None = None
) -> "SparkSession":
    """The active session as it is, or a new one.

    `master` None takes what spark-submit or spark-defaults.conf say, else all cores of this machine (`local[*]`). A `master`
    other than the active session's is an error: one process has one. `conf` holds settings of a new session.
    """
    require_pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return _active(SparkSession.getActiveSession() or SparkSession.builder.getOrCreate(), master)
    if master is not None:
        _check_master(master)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has started Java already
        use_java(_newest_java())
    with _start_settings(master):
        return _start(master, {"spark.app.name": app_name, **QUIET, **(conf or {})})


def _active(session: "SparkSession", master: str | None) -> "SparkSession":
    running = session.sparkContext.master
    if master is not None and master != running:
        raise ParameterError(
            f"master is {master!r}, but a Spark session with master {running!r} is active; stop it or leave master out"
        )
    return session


def _start(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    settings = dict(conf) if master is None else {**conf, "spark.master": master}
    try:
        return SparkSession.builder.config(map=settings).getOrCreate()
    except Exception as error:  # what Spark raises depends on how far it came
        place = "" if master is None else f" with master {master!r}"
        raise ParameterError(
            f"Spark cannot be started{place}: {_first_reason(error)}; see what it printed above"
        ) from error


def _check_master(master: str) -> None:
    """Refuses what is not a master, and a cluster that does not answer: Spark itself would try for a minute."""
    if not re.match(r"local($|\[|-cluster\[)|spark://|yarn$|k8s://", master):
        raise ParameterError(f"master must be local[N], spark://HOST:PORT, yarn or k8s://..., got {master!r}")
    hosts = master.removeprefix("spark://").split(",") if master.startswith("spark://") else []
    if hosts and not any(map(_answers, hosts)):
        raise ParameterError(
            f"no Spark master answers at {master}; start it, or give the address that its web page shows at the top"
        )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=MAX_CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def _first_reason(error: Exception) -> str:
    """The first line of an error, Java's own where there is one, without the class of the exception."""
    text = str(getattr(error, "java_exception", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ", "", lines[0]) if lines else type(error).__name__


def is_local(context: "SparkContext") -> bool:
    """Whether tasks run in the driver's own process tree, not on executors."""
    master = str(context.master)
    return master == "local" or master.startswith("local[")


@contextmanager
def described(context: "SparkContext", what: str) -> Iterator[None]:
    """Jobs inside, and their stages, are listed in Spark's pages as "topnrank: `what`"; afterwards as before."""
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"topnrank: {what}")
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # None unsets it


def require_classic(session: Any) -> "SparkSession":
    """`session`, if it is a classic one; else an error that says what to do."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise ParameterError(CLASSIC_NEEDED)
    require_pyspark()
    from pyspark.sql import SparkSession

    if not isinstance(session, SparkSession):
        raise ParameterError(f"session must be a SparkSession, got {type(session).__name__}")
    return session


def require_pyspark() -> None:
    """Raises a clear error unless a pyspark from 3.5 on with classic sessions is there."""
    if find_spec("pyspark") is None:
        raise ParameterError("pyspark is not installed; pip install 'topnrank[spark]'")
    import pyspark
    from pyspark.sql.utils import is_remote

    version = pyspark.__version__
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_SPARK:
        raise ParameterError(
            f"topnrank needs Spark 3.5 or newer, found pyspark {version}; pip install 'topnrank[spark]'"
        )
    if is_remote():
        raise ParameterError(CLASSIC_NEEDED)


def _newest_java() -> int | None:
    """The newest Java that Spark's Hadoop runs on; None if no limit is known."""
    versions = [file.stem.rpartition("-")[2] for file in _spark_home().glob("jars/hadoop-client-api-*.jar")]
    old = any(tuple(int(number) for number in re.findall(r"\d+", version)[:3]) < (3, 4, 3) for version in versions)
    return NEWEST_JAVA_OF_OLD_HADOOP if old else None


def _spark_home() -> Path:
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


@contextmanager
def _start_settings(master: str | None) -> Iterator[None]:
    """Variables that Spark reads only while it starts; afterwards the environment is as it was."""
    before = dict(os.environ)
    if "PYSPARK_GATEWAY_PORT" not in before and (master is None or master.startswith("local")):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever "python3" is
    if not _own_logging():
        quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
        os.environ["SPARK_SUBMIT_OPTS"] = f"{before.get('SPARK_SUBMIT_OPTS', '')} {quiet}".strip()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    finally:
        for name in ("PYSPARK_PYTHON", "SPARK_SUBMIT_OPTS"):
            os.environ.pop(name, None)
            os.environ.update({name: before[name]} if name in before else {})


def _own_logging() -> bool:
    """Whether the user has said what Spark prints."""
    folders = (os.environ.get("SPARK_CONF_DIR"), _spark_home() / "conf")
    said = "log4j" in os.environ.get("SPARK_SUBMIT_OPTS", "")
    return said or any((Path(folder) / "log4j2.properties").is_file() for folder in folders if folder)
