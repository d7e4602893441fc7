"""What a cluster loses it makes again: executors and drivers killed while they train, and the model is the same."""

import os
import random
import signal
import threading
import time

import pyarrow.parquet as pq
import pytest
from hdfs_native import Client
from numpy.testing import assert_array_equal

import topnrank as tnr
from support.settings import settings

DATA = tnr.synthetic(120, 40, seed=9)


def assert_same_bits(ours, theirs):
    for name, array in theirs.fitted.arrays.items():
        assert_array_equal(ours.fitted.arrays[name], array, err_msg=name)


class Killer(threading.Thread):
    """Kills an executor of the application at random moments, until it is told to stop."""

    def __init__(self, cluster, application, seed):
        super().__init__(daemon=True)
        self.cluster, self.application, self.draw = cluster, application, random.Random(seed)
        self.killed, self.done = 0, threading.Event()

    def run(self):
        while self.killed < 3 and not self.done.wait(self.draw.uniform(0.5, 2.5)):
            if (
                len(self.cluster.executor_pids(self.application)) == 2
            ):  # those that run; a new one starts for each that dies
                self.cluster.kill_executor(self.application, self.draw.randrange(2))
                self.killed += 1


@pytest.mark.parametrize("users", ["factors", "history"])
def test_executors_killed_at_random_moments_change_nothing(cluster, spark, users):
    model = tnr.TopNRank(task="rated", user_representation=users, factors=4, epochs=6, batch_size=30, engine="spark")
    with settings(spark, blocks=4, checkpointInterval=5):
        expected = type(model)(**model.get_params()).fit(DATA)
        killer = Killer(cluster, spark.sparkContext.applicationId, seed=len(users))
        killer.start()
        try:
            model.fit(DATA)
        finally:
            killer.done.set()
            killer.join()
    assert killer.killed >= 1
    assert_same_bits(model, expected)


def train_command(data, checkpoint, model, cluster):
    length = (
        "--set",
        "user_representation=factors",
        "--set",
        "factors=4",
        "--set",
        "epochs=6",
        "--set",
        "batch_size=30",
    )
    spark = ("--engine", "spark", "--master", cluster.master, "--checkpoint", checkpoint)
    return cluster.driver(["-m", "topnrank", "train", data, "-o", model, *length, *spark])


def finish(process):
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err


def listed(client, folder):
    try:
        return [status.path for status in client.list_status(folder)]
    except FileNotFoundError:
        return []


def test_a_killed_driver_resumes_from_its_checkpoint_on_hdfs(cluster, hdfs, tmp_path):
    data, client = tmp_path / "ratings.parquet", Client(hdfs.address)
    pq.write_table(DATA.to_arrow(), data)
    model = f"{hdfs.address}/killed.safetensors"
    process = train_command(data, f"{hdfs.address}/killed", model, cluster)
    while process.poll() is None and not any(
        name.endswith("/checkpoint.safetensors") for name in listed(client, "/killed")
    ):
        time.sleep(0.1)
    time.sleep(random.Random(1).uniform(0.0, 2.0))
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not any(name.endswith("/killed.safetensors") for name in listed(client, "/"))
    finish(train_command(data, f"{hdfs.address}/killed", model, cluster))
    finish(train_command(data, tmp_path / "whole", tmp_path / "whole.safetensors", cluster))
    assert_same_bits(tnr.load(model), tnr.load(tmp_path / "whole.safetensors"))
