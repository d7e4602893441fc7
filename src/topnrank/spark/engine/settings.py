"""Settings of the Spark engine, which live where Spark's own do: in the session's configuration."""

from dataclasses import dataclass, fields
from typing import Any

from topnrank.errors import ParameterError

PREFIX = "spark.topnrank."
ROWS_PER_BLOCK = 2_000_000
"""Rows of a block beyond which more blocks are made: it must fit into a Python worker with room to spare."""


@dataclass(frozen=True)
class SparkSettings:
    """Given as `spark.topnrank.<name>` in the session's configuration, for example by `spark-submit --conf`."""

    blocks: int = 0
    """Blocks of users, which are tasks of an iteration; 0 for as many as Spark runs at once, or more: 2 million rows each"""
    checkpointInterval: int = 10  # noqa: N815 Spark's own spelling
    """Iterations after which users' vectors are written down, so that a lost executor costs at most so many again"""
    broadcastLimit: int = 512 * 2**20  # noqa: N815
    """Bytes of item parameters above which they are not broadcast whole, but rows travel where they are needed"""
    localPasses: int = 1  # noqa: N815
    """Visits of a batch until the blocks exchange their items; above 1 another algorithm (`local_passes`)"""
    reduceLimit: int = 64 * 2**20  # noqa: N815
    """Bytes of item sums of all blocks above which they are added up by the executors, not by the driver"""

    @classmethod
    def of(cls, conf: Any) -> "SparkSettings":
        """The settings in a session's configuration `conf`."""
        given = {field.name: conf.get(PREFIX + field.name, None) for field in fields(cls)}
        return cls(**{name: _whole(name, text) for name, text in given.items() if text is not None})


def _whole(name: str, text: str) -> int:
    least = 0 if name == "blocks" else 1
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ParameterError(f"{PREFIX}{name} must be a whole number of at least {least}, got {text!r}")
    return value


def usual_blocks(context: Any, n_rows: int) -> int:
    """Blocks where nobody says how many: as many as Spark runs at once, or more for many rows."""
    return max(int(context.defaultParallelism), -(-n_rows // ROWS_PER_BLOCK))
