"""Vectors for an index of nearest neighbors by inner product, with the bias folded in.

<(u, 1), (q_i, b_i)> = <u, q_i> + b_i
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, IdArray
from topnrank.errors import OutputError, ParameterError
from topnrank.io.atomic import write_atomically
from topnrank.models.base import Model
from topnrank.models.linear.neighbors import NEIGHBORS


class ExportedFactors(NamedTuple):
    """Vectors whose inner product is the score."""

    user_vectors: Float32Array
    """(n_users, k + 1), 1 in the last column"""
    item_vectors: Float32Array
    """(n_items, k + 1), the bias in the last column"""
    user_ids: IdArray
    """(n_users,) original ids"""
    item_ids: IdArray
    """(n_items,) original ids"""


def export_factors(model: Model, path: str | os.PathLike[str] | None = None) -> ExportedFactors:
    """The vectors of a factor model; with `path` also written as a .npz file that `numpy.load` reads without pickle."""
    arrays = model.fitted.arrays
    if "user_factors" not in arrays or "item_factors" not in arrays:
        raise ParameterError(f"export_factors: {type(model).__name__} has no vectors; use a factor model")
    if NEIGHBORS in arrays:
        raise ParameterError(
            "export_factors: the neighbors' part of these scores is no product of vectors; train with neighbors=0 for an "
            "index, or use recommend, which is exact"
        )
    users, items = (arrays[name].astype(np.float32, copy=False) for name in ("user_factors", "item_factors"))
    ones, bias = np.ones(len(users), np.float32), arrays["item_bias"].astype(np.float32, copy=False)
    vectors = (np.column_stack([users, ones]), np.column_stack([items, bias]))
    exported = ExportedFactors(*vectors, model.user_ids_, model.item_ids_)
    if path is not None:
        _write(path, exported)
    return exported


def _write(path: str | os.PathLike[str], exported: ExportedFactors) -> None:
    if Path(path).suffix.lower() != ".npz":
        raise OutputError(f"{path}: the name must end in .npz, the format of exported vectors; rename it")
    arrays = exported._asdict()
    for name in ("user_ids", "item_ids"):
        if arrays[name].dtype.kind == "O":
            arrays[name] = arrays[name].astype(str)  # objects would need pickle

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # given a name, NumPy would add an ending of its own
            np.savez(file, **arrays)

    write_atomically(path, write)
