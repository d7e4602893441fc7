"""Saving in Spark's way: a folder with `metadata`, and for models the library's own model file inside.

The file is the one that `topnrank.load` opens without Spark, on any file system that Spark's Hadoop knows.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter
from pyspark.sql import SparkSession

from topnrank.errors import ModelFileError, OutputError
from topnrank.models.base import Model
from topnrank.models.persistence import decode, encode, load

MODEL_FILE = "model.safetensors"


class ParamsWriter(MLWriter):  # type: ignore[misc]
    """Writes an Estimator, or a Model with its file."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802 (Spark's name)
        """Called by `save`, after an older folder was removed where that is asked for."""
        session = self.sparkSession
        if _exists(session, path):
            raise OutputError(f"{path}: is there already; choose another place, or write().overwrite().save(...)")
        if (model := self.instance.file_content()) is not None:
            save_model(session, model, f"{path}/{MODEL_FILE}")
        values = {param.name: encode(value) for param, value in self.instance._paramMap.items()}
        DefaultParamsWriter.saveMetadata(self.instance, path, session.sparkContext, paramMap=values)


class ParamsReader(MLReader):  # type: ignore[misc]
    """Reads what `ParamsWriter` wrote."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> Any:
        """An Estimator or Model of the reader's class."""
        session = self.sparkSession
        metadata = DefaultParamsReader.loadMetadata(path, session.sparkContext)
        wanted, found = f"{self.kind.__module__}.{self.kind.__name__}", metadata["class"]
        if found != wanted:
            raise ModelFileError(f"{path}: holds a {found}, not a {wanted}; load it with that class")
        instance = self.kind.opened(session, f"{path}/{MODEL_FILE}")
        instance._resetUid(metadata["uid"])
        instance._set(**{name: decode(value) for name, value in metadata["paramMap"].items()})
        return instance


def save_model(session: SparkSession, model: Model, path: str) -> None:
    """Writes a model file to any file system that Spark knows."""
    folder = Path(tempfile.mkdtemp())
    try:
        model.save(folder / MODEL_FILE)
        system, place = _place(session, path)
        jvm = session.sparkContext._jvm
        system.copyFromLocalFile(False, True, jvm.org.apache.hadoop.fs.Path((folder / MODEL_FILE).as_uri()), place)
    finally:
        shutil.rmtree(folder)


def open_model(session: SparkSession, path: str) -> Model:
    """The model in a file on any file system that Spark knows."""
    if not _exists(session, path):
        raise ModelFileError(f"{path}: there is no such model file")
    folder = Path(tempfile.mkdtemp())
    try:
        system, place = _place(session, path)
        jvm = session.sparkContext._jvm
        target = jvm.org.apache.hadoop.fs.Path((folder / MODEL_FILE).as_uri())
        system.copyToLocalFile(False, place, target, True)
        return load(folder / MODEL_FILE)  # mapped: the file may go, its pages stay
    finally:
        shutil.rmtree(folder)


def _place(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's file system and path of a path; without a scheme those of Spark's settings."""
    context = session.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(context._jsc.hadoopConfiguration()), place


def _exists(session: SparkSession, path: str) -> bool:
    system, place = _place(session, path)
    return bool(system.exists(place))
