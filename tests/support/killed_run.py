"""A training run that kills its own process at a chosen event: `python killed_run.py CASE FOLDER EVENT`.

Events are what a run does to the world: a step, a flush of a file, a file put in place, requests to HDFS and S3. Counting
them makes "killed at any moment" a test that can be repeated.
"""

import hashlib
import os
import signal
import sys
from collections.abc import Callable
from unittest.mock import patch

from topnrank import MODELS, synthetic
from topnrank.engines.cpu import CpuEngine
from topnrank.io.hdfs import NameNode
from topnrank.io.paths import RemotePath
from topnrank.io.s3 import Bucket
from topnrank.models.factor.model import FactorModel
from topnrank.training.checkpoint import Checkpoint

CASES = {
    "history": ({"epochs": 5}, {}),
    "factors with tolerance": (
        {"user_representation": "factors", "epochs": None, "iterations": 30, "tolerance": 0.01},
        {},
    ),
    "history with early stopping": ({"epochs": 30, "learning_rate": 0.5}, {"validation": 0.4, "patience": 3}),
    "factors with early stopping": (
        {"user_representation": "factors", "epochs": 30, "learning_rate": 1.0},
        {"validation": 0.4, "patience": 3},
    ),
    "sampled items": ({"model": "mf-adg", "negatives": 5, "epochs": 5}, {}),
    "annealed": ({"metric": "map", "truncate": True, "anneal_n": 0.8, "epochs": 5}, {}),
}
"""Hyper-parameters (of TopNRank unless they name a model) and options of fit."""


def fit(case: str, folder: str | os.PathLike[str] | None) -> FactorModel:
    """The run of a case, with a checkpoint after every round."""
    parameters, options = CASES[case]
    with patch.dict(Checkpoint.__init__.__kwdefaults__, seconds=0.0):
        settings = {"factors": 4, "batch_size": 15, "seed": 3} | parameters
        model = MODELS[settings.pop("model", "top-n-rank")](**settings)
        return model.fit(synthetic(40, 30, seed=3), checkpoint=folder, **options)


def digest(model: FactorModel) -> str:
    """All that a run leaves, as one word."""
    content = hashlib.sha256(repr((model.history_, model.best_round_, model.fitted.info.rounds)).encode())
    for name, array in sorted(model.fitted.arrays.items()):
        content.update(name.encode() + array.tobytes())
    return content.hexdigest()


def with_events(happened: Callable[[], None], run: Callable[[], FactorModel]) -> FactorModel:
    """`run`, with a call of `happened` at each event."""

    def watched(function):
        def call(*arguments, **options):
            happened()
            return function(*arguments, **options)

        return call

    with (
        patch.object(CpuEngine, "step", watched(CpuEngine.step)),
        patch.object(os, "fsync", watched(os.fsync)),
        patch.object(os, "replace", watched(os.replace)),
        patch.object(RemotePath, "put", watched(RemotePath.put)),
        patch.object(NameNode, "_call", watched(NameNode._call)),
        patch.object(Bucket, "_upload", watched(Bucket._upload)),
    ):
        return run()


def main(case: str, folder: str, event: int) -> None:
    """Runs and dies."""
    left = event

    def happened() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with_events(happened, lambda: fit(case, folder))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
