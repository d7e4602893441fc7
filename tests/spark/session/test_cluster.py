"""The cluster of the tests is a real one: two machines' worth of processes that can be lost."""

import os
import time

from support.processes import commands


def both_executors(spark):
    def where(_):  # inside, so that it travels by value: executors cannot import this module
        """The executor's process: the parent of the daemon that this Python worker was forked from."""
        time.sleep(0.5)  # long enough for both executors to get a task
        return commands()[os.getppid()][0]

    return set(spark.sparkContext.parallelize(range(4), 4).map(where).collect())


def test_a_job_runs_on_both_workers(spark, cluster):
    pids = both_executors(spark)
    assert pids == set(cluster.executor_pids(spark.sparkContext.applicationId))
    assert len(pids) == 2


def test_the_cluster_replaces_a_killed_executor_and_the_job_ends_right(spark, cluster):
    application = spark.sparkContext.applicationId
    both_executors(spark)
    lost = cluster.kill_executor(application)
    numbers = spark.sparkContext.parallelize(range(100), 4)
    assert numbers.map(lambda x: (x % 3, x)).reduceByKey(lambda a, b: a + b).collectAsMap() == {
        0: 1683,
        1: 1617,
        2: 1650,
    }
    assert lost not in cluster.executor_pids(application)


OWN_DRIVER = """
from pyspark.sql import SparkSession
import sys
session = SparkSession.builder.master(sys.argv[1]).getOrCreate()
print(session.sparkContext.applicationId, session.sparkContext.parallelize(range(10), 2).sum())
session.stop()
"""


def test_a_driver_of_its_own_runs_beside_the_shared_session(spark, cluster, tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(OWN_DRIVER)
    driver = cluster.driver([script, cluster.master])
    out, err = driver.communicate(timeout=600)
    assert driver.returncode == 0, err
    application, total = out.split()
    assert total == "45"
    assert application != spark.sparkContext.applicationId
