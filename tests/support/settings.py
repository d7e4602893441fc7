"""Settings of the Spark engine for the length of a block."""

from contextlib import contextmanager

from topnrank.spark.engine.settings import PREFIX


@contextmanager
def settings(spark, **given):
    """Sets `spark.topnrank.<name>` of the session, and unsets it again."""
    for name, value in given.items():
        spark.conf.set(PREFIX + name, str(value))
    try:
        yield
    finally:
        for name in given:
            spark.conf.unset(PREFIX + name)
