"""The session's checkpoint directory, through which the Spark engine cuts lineage."""

import os
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from topnrank.errors import ParameterError
from topnrank.spark.session.job_names import named

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

ASKED = 4
"""Times that every place where a task can run is asked, on average, whether it sees the directory."""


def lasting() -> Any:
    """How what is used again is kept."""
    from pyspark import StorageLevel

    return StorageLevel.MEMORY_AND_DISK


def one_by_one(rdd: "RDD[Any]") -> "RDD[Any]":
    """The same elements, each pickled by itself: `zip` would read and write all of them again to make it so."""
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    return rdd._reserialize(BatchedSerializer(CPickleSerializer(), 1))


def checkpointed(rdd: "RDD[Any]") -> "RDD[Any] | None":
    """The RDD read from the checkpoint directory, without a past; None where there is no such directory."""
    if rdd.context.getCheckpointDir() is None:
        return None
    fresh = one_by_one(rdd.map(_itself)).persist(lasting())  # Spark checkpoints only what no job has computed yet
    fresh.checkpoint()
    fresh.foreachPartition(_nothing)
    return fresh


def require_shared(context: "SparkContext") -> None:
    """An error where executors do not see the checkpoint directory: with Spark alone training fails in the middle.

    Asked of folders in a cluster only: what has another scheme than `file:` is not of one machine.
    """
    directory = context.getCheckpointDir()
    path = urlsplit(directory or "")
    if directory is None or path.scheme not in ("", "file") or context.master.startswith("local"):
        return
    places = max(int(context.defaultParallelism), 1) * ASKED
    with named(context, "is the checkpoint directory shared?"):
        blind = context.parallelize(range(places), places).flatMap(lambda _: _host_if_missing(path.path)).collect()
    if blind:
        raise ParameterError(
            f"the checkpoint directory must be storage that all nodes share, but {directory} of the driver is not to be "
            f"seen on {', '.join(sorted(set(blind)))}; give sparkContext.setCheckpointDir one on hdfs:// or a mounted "
            "folder, or none"
        )


def _host_if_missing(path: str) -> list[str]:
    return [] if os.path.isdir(path) else [socket.gethostname()]


def _nothing(elements: Iterable[Any]) -> None:
    for _ in elements:  # a worker that leaves its input unread is not used again
        pass


def _itself(element: Any) -> Any:
    return element
