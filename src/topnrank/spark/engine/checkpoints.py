"""RDDs that are used again: how they are persisted, and how their lineage is cut by the session's checkpoint directory."""

import os
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from topnrank.errors import ParameterError
from topnrank.spark.session.session import described, is_local

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

TASKS_PER_SLOT = 4
"""Tasks of the question whether executors see the directory, for each place where a task can run."""


def persisted(rdd: "RDD[Any]") -> "RDD[Any]":
    """The RDD, kept in memory and on disk, each element pickled by itself: else `zip` would read and write all again."""
    from pyspark import StorageLevel

    return one_by_one(rdd).persist(StorageLevel.MEMORY_AND_DISK)


def one_by_one(rdd: "RDD[Any]") -> "RDD[Any]":
    """The same elements, each pickled by itself."""
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    return rdd._reserialize(BatchedSerializer(CPickleSerializer(), 1))


def checkpointed(rdd: "RDD[Any]") -> "RDD[Any] | None":
    """The RDD read from the checkpoint directory, without lineage; None where there is no such directory."""
    if rdd.context.getCheckpointDir() is None:
        return None
    fresh = persisted(rdd.map(lambda element: element))  # Spark checkpoints only what no job has computed yet
    fresh.checkpoint()
    fresh.foreachPartition(_read_all)
    return fresh


def require_shared(context: "SparkContext") -> None:
    """An error where executors do not see the checkpoint directory: without it training would fail in the middle.

    Asked of folders in a cluster only: other schemes than `file:` do not belong to one machine.
    """
    directory = context.getCheckpointDir()
    path = urlsplit(directory or "")
    if directory is None or path.scheme not in ("", "file") or is_local(context):
        return
    tasks = max(int(context.defaultParallelism), 1) * TASKS_PER_SLOT
    with described(context, "is the checkpoint directory shared?"):
        missing = context.parallelize(range(tasks), tasks).flatMap(lambda _: _host_if_missing(path.path)).collect()
    if missing:
        raise ParameterError(
            f"the checkpoint directory must be storage that all nodes share, but {directory} of the driver is not to be "
            f"seen on {', '.join(sorted(set(missing)))}; give sparkContext.setCheckpointDir one on hdfs:// or a mounted "
            "folder, or none"
        )


def _host_if_missing(path: str) -> list[str]:
    return [] if os.path.isdir(path) else [socket.gethostname()]


def _read_all(elements: Iterable[Any]) -> None:
    for _ in elements:  # a worker that leaves its input unread is not used again
        pass
