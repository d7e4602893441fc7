"""Settings of the Spark engine, read from the configuration of the session."""

from dataclasses import dataclass, fields
from typing import Any

from topnrank.errors import ParameterError

PREFIX = "spark.topnrank."
ROWS_PER_BLOCK = 2_000_000
"""Rows of a block beyond which more blocks are made: a block must fit into a Python worker with room to spare."""


@dataclass(frozen=True)
class SparkSettings:
    """Given as `spark.topnrank.<name>` in the session's configuration, for example by `spark-submit --conf`."""

    blocks: int = 0
    """Blocks of users: the tasks of an iteration; 0 for as many as Spark runs at once, or more: 2 million rows each"""
    checkpointInterval: int = 10  # noqa: N815 Spark's own spelling
    """Iterations after which the lineage of the users' vectors is cut: a lost executor costs at most so many again"""
    broadcastLimit: int = 512 * 2**20  # noqa: N815
    """Bytes of item parameters above which they are not broadcast whole, but rows are sent where they are needed"""
    reduceLimit: int = 64 * 2**20  # noqa: N815
    """Bytes of item sums of all blocks above which they are added up by the executors, not by the driver"""

    @classmethod
    def of(cls, conf: Any) -> "SparkSettings":
        """The settings in a session's configuration `conf`."""
        given = {field.name: conf.get(PREFIX + field.name, None) for field in fields(cls)}
        return cls(**{name: _integer(name, text) for name, text in given.items() if text is not None})


def _integer(name: str, text: str) -> int:
    least = 0 if name == "blocks" else 1
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ParameterError(f"{PREFIX}{name} must be an integer of at least {least}, got {text!r}")
    return value


def default_blocks(context: Any, n_rows: int) -> int:
    """The number of blocks unless one is given: as many as Spark runs at once, or more for many rows."""
    return max(int(context.defaultParallelism), -(-n_rows // ROWS_PER_BLOCK))
