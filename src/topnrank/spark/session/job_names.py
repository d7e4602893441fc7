"""Names for what runs, as they stand in Spark's own pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


@contextmanager
def named(context: "SparkContext", what: str) -> Iterator[None]:
    """Jobs inside, and their stages, are listed as "topnrank: `what`"; afterwards as before."""
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"topnrank: {what}")
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # None unsets it
