"""Items and users that are alike: the cosine of their vectors, what a linear model says of its items, and who has both."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from topnrank._checks import require_integer
from topnrank._typing import Float32Array, FloatArray, Int64Array
from topnrank.errors import ParameterError
from topnrank.kernels.jit import threads_for
from topnrank.kernels.top_items import top_items
from topnrank.models.base import Fitted, Model
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


def alike(fitted: Fitted, items: Int64Array, *parts: Float32Array) -> Float32Array:
    """(len(items), n_items) how much all items are like `items`, for models with neighbor weights:

        together_ij (1 + sum over parts of part_ij / max_j |part_ij|)

    `parts` are the neighbor weights, and the cosines of vectors where the model has some: alone they know little of rare
    items, or of any, where the other part carries the model (docs/results/similar.md).
    """
    total = np.ones((items.size, len(fitted.items)), np.float32)
    for part in parts:
        part[np.arange(items.size), items] = 0.0
        largest = np.abs(part).max(axis=1, keepdims=True)
        total += np.divide(part, largest, out=np.zeros_like(part), where=largest > 0)
    return total * together(fitted, items)


def together(fitted: Fitted, items: Int64Array) -> Float32Array:
    """(len(items), n_items) how many users two items share, n_ij / (n_i^.6 n_j^.4 + 10); NaN where none has both.

    A cosine that favors frequent items a little, and shrinks what few users say; n of users in the training rows.
    """
    n_items = len(fitted.items)
    sizes = np.bincount(fitted.indices, minlength=n_items).astype(np.float64)
    asked = np.zeros(n_items, np.bool_)
    asked[items] = True
    rows = np.flatnonzero(asked[fitted.indices])
    users, of_row = np.searchsorted(fitted.indptr, rows, side="right") - 1, fitted.indices[rows]
    counts = np.zeros((items.size, n_items), np.float64)
    for row, item in enumerate(items):
        own = users[of_row == item]
        lengths = fitted.indptr[own + 1] - fitted.indptr[own]
        starts = np.repeat(fitted.indptr[own] - (np.cumsum(lengths) - lengths), lengths)
        counts[row] = np.bincount(fitted.indices[starts + np.arange(starts.size)], minlength=n_items)
    counts[counts == 0] = np.nan
    return (counts / (sizes[items, None] ** 0.6 * sizes**0.4 + 10.0)).astype(np.float32)


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
