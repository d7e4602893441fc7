"""`topnrank train --engine spark`, where Spark reads the data too."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from topnrank.cli.commands.train import TrafficWatch, log_training_notes
from topnrank.cli.options import ReadOptions
from topnrank.cli.output import Output

if TYPE_CHECKING:
    from topnrank import Model
    from topnrank.spark.data.interactions import SparkInteractions


def rows_in_cluster(path: str, reading: ReadOptions, reason: str | None, output: Output) -> "SparkInteractions | None":
    """The rows as blocks in the cluster; None, and a note, for a `reason` that needs them on the driver or for one found."""
    from topnrank.data.datasets.registry import DATASETS
    from topnrank.spark.data.files import UnsupportedBySparkError

    if reason is None and path in DATASETS and not Path(path).exists():
        reason = "a public data set"
    try:
        if reason is not None:
            raise UnsupportedBySparkError(reason)
        data = _read(path, reading)
    except UnsupportedBySparkError as found:
        output.note(f"{found}: rows are read on the driver")
        return None
    output.note(f"{path}: rows are read by the executors")
    reading.note_merged(path, data.merged_rows, output)
    return data


def _read(path: str, reading: ReadOptions) -> "SparkInteractions":
    from topnrank._checks import one_of
    from topnrank.data.readers.files import FORMATS
    from topnrank.data.readers.request import Request
    from topnrank.spark.data.files import SparkFiles
    from topnrank.spark.session.session import get_session

    if reading.format is not None:
        one_of("format", reading.format, FORMATS)
    names = ("user", "item", "rating", "type", "weight", "timestamp")
    roles = {name: getattr(reading, name) for name in names}
    request = Request(roles, separator=reading.separator, header=reading.header)
    return SparkFiles.find(path, request, reading.format).interactions(get_session(), reading.duplicates)


def fit_in_cluster(
    model: "Model", data: "SparkInteractions", checkpoint: str | None, output: Output
) -> "tuple[Model, float]":
    """The fitted model on the driver, and the seconds that training took."""
    from topnrank.spark.jobs.train import train_on_blocks

    if checkpoint is not None:
        output.note(f"after an interruption the same command goes on from {checkpoint}")
    watch, started = TrafficWatch(), time.perf_counter()
    distributed = train_on_blocks(model, data, checkpoint, progress=not output.quiet, callbacks=[watch])
    seconds = time.perf_counter() - started
    fitted = distributed.to_local()
    distributed.unpersist()
    data.unpersist()
    log_training_notes(fitted, fitted.fitted.indptr, output)
    watch.log(output)
    return fitted, seconds
