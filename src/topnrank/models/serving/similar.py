"""Items and users that are alike: the cosine of their vectors, or what a linear model says of its items."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from topnrank._checks import require_integer
from topnrank._typing import Float32Array, FloatArray, Int64Array
from topnrank.errors import ParameterError
from topnrank.kernels.jit import threads_for
from topnrank.kernels.top_items import top_items
from topnrank.models.base import Model
from topnrank.models.serving import recommend
from topnrank.models.serving.tables import IdColumn, ranked_table


def similar(model: Model, side: str, asked: Any, n: int) -> pa.Table:
    """The n nearest of one id, or of many in one table; `side` is "item" or "user"."""
    method = f"similar_{side}s"
    vectors = model.fitted.arrays.get(f"{side}_factors")
    probe = model.item_similarity(np.empty(0, np.int64)) if side == "item" else None
    if vectors is None and probe is None:
        raise ParameterError(f"{method}: {type(model).__name__} has no {side} vectors; use a factor model")
    require_integer(f"{method}: n", n, 1)
    numbers = model.item_numbers(asked) if side == "item" else model.user_numbers(asked)
    names = IdColumn(side, model.item_ids_ if side == "item" else model.user_ids_)
    one = np.ndim(np.asarray(asked, dtype=object)) == 0
    item_similarity = Cosine(vectors) if probe is None and vectors is not None else model.item_similarity
    return pa.concat_tables(list(_blocks(item_similarity, names, numbers, n, one)))


class Cosine:
    """Cosines between some rows and all rows of `vectors`."""

    def __init__(self, vectors: FloatArray) -> None:
        norms = np.linalg.norm(vectors, axis=1).astype(np.float64)  # products of the smallest are above 0 in 64 bits
        self.vectors, self.norms = vectors, np.maximum(norms, np.finfo(np.float32).tiny)

    def __call__(self, rows: Int64Array) -> Float32Array:
        """(len(rows), n) cosines."""
        cosine = (self.vectors[rows] @ self.vectors.T) / (self.norms[rows, None] * self.norms)
        return np.asarray(cosine, np.float32)


def beside_neighbors(cosines: Float32Array, weights: Float32Array, items: Int64Array) -> Float32Array:
    """Cosines of vectors plus what neighbor weights say, (len(items), n_items), each as a share of its largest value.

    Both are needed: the vectors know what weights of few neighbors do not, and where neighbors carry a model its vectors may
    hold next to nothing (docs/results/similar.md).
    """
    rows = np.arange(items.size)
    total = np.zeros_like(cosines)
    for part in (cosines, weights):
        part[rows, items] = 0.0
        largest = np.abs(part).max(axis=1, keepdims=True)
        total += np.divide(part, largest, out=np.zeros_like(part), where=largest > 0)
    return total


def _blocks(
    item_similarity: Callable[[Int64Array], Float32Array | None],
    names: IdColumn,
    numbers: Int64Array,
    n: int,
    one: bool,
) -> Iterator[pa.Table]:
    size = max(1, recommend.BLOCK_BYTES // (4 * len(names.ids)))
    for first in range(0, max(1, numbers.size), size):  # at least once: a table without rows has columns too
        rows = numbers[first : first + size]
        with threads_for(rows.size):
            scores = item_similarity(rows)
            assert scores is not None
            scores[np.arange(rows.size), rows] = np.nan
            best = top_items(scores, min(n, len(names.ids)))
        yield ranked_table(best, scores, names, None if one else IdColumn("of", names.ids[rows]))
