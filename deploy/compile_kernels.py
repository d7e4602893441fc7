"""Fills the cache of compiled kernels with what serving and refreshing need: run while an image is built.

It trains models on a few made-up rows, asks each of them for lists as the server does, and updates one with new rows.
"""

import tempfile
from pathlib import Path

import topnrank as tnr
from topnrank.serve.catalog import Facts
from topnrank.serve.models import Served

MODELS = {
    "top-n-rank": tnr.TopNRank(epochs=1, num_threads=1),
    "neighbor-ridge": tnr.NeighborRidge(),
    "ease": tnr.EASE(),
    "popularity": tnr.Popularity(),
}
data = tnr.synthetic(60, 40, 900, seed=1)
with tempfile.TemporaryDirectory() as folder:
    for name, model in MODELS.items():
        path = str(Path(folder) / f"{name}.safetensors")
        model.fit(data).save(path)
        served = Served.load(name, path, Facts())  # answers for a history and for a known user
        served.scores_of_user(-1, seen_too=False)
        print(f"{name}: ready", flush=True)
    tnr.load(Path(folder) / "top-n-rank.safetensors").partial_fit(tnr.synthetic(5, 40, 60, seed=2))
