"""A training run that kills its own process at a chosen event: `python killed_run.py CASE FOLDER EVENT`.

Events are what a run does to the world: a step, a flush of a file, a file put in place, requests to HDFS and S3. Counting
them makes "killed at any moment" a test that can be repeated.
"""

import hashlib
import os
import sys
from unittest.mock import patch

from support.kill import FILES, dying
from topnrank import MODELS, synthetic
from topnrank.engines.cpu import CpuEngine
from topnrank.io.hdfs import NameNode
from topnrank.io.paths import RemotePath
from topnrank.io.s3 import Bucket
from topnrank.models.factor.model import FactorModel
from topnrank.training.checkpoint import Checkpoint

CASES = {
    "history": ({"task": "rated", "epochs": 5}, {}),
    "factors with tolerance": (
        {"task": "rated", "user_representation": "factors", "epochs": None, "iterations": 30, "tolerance": 0.01},
        {},
    ),
    "history with early stopping": (
        {"task": "rated", "epochs": 30, "learning_rate": 0.5},
        {"validation": 0.4, "patience": 3},
    ),
    "factors with early stopping": (
        {"task": "rated", "user_representation": "factors", "epochs": 30, "learning_rate": 1.0},
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


EVENTS = (*FILES, (CpuEngine, "step"), (RemotePath, "put"), (NameNode, "_call"), (Bucket, "_upload"))


if __name__ == "__main__":
    with dying(int(sys.argv[3]), *EVENTS):
        fit(sys.argv[1], sys.argv[2])
