"""Fixtures of the Spark tests: a real cluster, a session on it and a real HDFS, each made once for all tests."""

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'topnrank[spark]'")

from pyspark import SparkContext
from pyspark.sql import SparkSession

from support import cluster as standalone
from support import hadoop
from support.cluster import Cluster
from support.fetch_hadoop import MissingPartError, hadoop_folder
from support.hadoop import Hdfs
from topnrank.errors import ParameterError
from topnrank.spark.session.java import find_java


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster with two workers on loopback."""
    with standalone.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    """The session that all tests share, with one executor on each of the cluster's workers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        session = SparkSession.builder.master(cluster.master).appName("tests").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            gateway = session.sparkContext._gateway
            session.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()  # the driver's Java ends when nobody can write to it any more
            gateway.proc.wait(60)
            SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A NameNode and a DataNode on loopback; skips where their parts cannot be had."""
    try:
        java, parts = find_java(os.environ, hadoop.NEWEST_JAVA), hadoop_folder()
    except (MissingPartError, ParameterError) as error:
        pytest.skip(f"no HDFS here: {error}")
    with hadoop.running(parts, tmp_path_factory.mktemp("hdfs"), java) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Adds the servers' logs to the report of a test that failed with them."""
    report = yield
    if report.failed:
        for name in ("cluster", "hdfs"):
            server = getattr(item, "funcargs", {}).get(name)
            report.sections.extend(server.logs() if server is not None else ())
    return report
