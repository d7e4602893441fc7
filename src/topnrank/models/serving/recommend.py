"""Recommending: for known users, for strangers, for histories; in blocks of bounded memory."""

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topnrank._typing import Float32Array, IdArray, Int64Array
from topnrank.data.ids import as_array
from topnrank.errors import ParameterError
from topnrank.io.atomic import write_atomically
from topnrank.kernels.top_items import mask_seen
from topnrank.models.base import Model
from topnrank.models.serving.filters import RecommendOptions, Request, check_names
from topnrank.models.serving.histories import Histories, many_histories, one_history, score_all
from topnrank.models.serving.tables import Named, id_column, ranked_table

BLOCK_BYTES = 24 * 2**20
"""Scores held at a time: larger blocks do not fit the cache, and their memory is fetched from the system each time."""


def recommend_table(model: Model, users: Any, history: Any, n: int, options: RecommendOptions) -> pa.Table:
    """All recommendations in one table."""
    if history is None:
        names, blocks = _plan(model, users, n, options)
        tables = list(blocks)
        return pa.concat_tables(tables) if tables else _empty(model, names)
    if users is not None or options.get("histories") is not None:
        raise ParameterError("recommend: give users or a history, not both; many histories go to histories=...")
    check_names(options)
    for name in ("items", "exclude"):
        if isinstance(options.get(name), Mapping):
            raise ParameterError(f"recommend: {name} by user needs users or histories; give a list for one history")
    request = Request.of(model, n, options)
    (table,) = _history_blocks(model, one_history(model, history, options.get("unknown_items", "error")), request)
    return table


def recommend_parquet(model: Model, path: str | os.PathLike[str], users: Any, n: int, options: RecommendOptions) -> int:
    """Writes the recommendations block by block; returns the number of rows."""
    rows = 0
    names, blocks = _plan(model, users, n, options)

    def write(temporary: Path) -> None:
        nonlocal rows
        first = next(blocks, None)
        first = _empty(model, names) if first is None else first  # a table without rows is false, too
        with pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer:
            for block in chain([first], blocks):
                writer.write_table(block)
                rows += block.num_rows

    write_atomically(path, write)
    return rows


def _plan(model: Model, users: Any, n: int, options: RecommendOptions) -> tuple[IdArray, Iterator[pa.Table]]:
    """Ids such as those of the users, and the tables of users or histories, in the order asked for."""
    check_names(options)
    given = options.get("histories")
    if given is None:
        request = Request.of(model, n, options)
        ids, numbers = _wanted(model, users, request)
        return model.user_ids_, _user_blocks(model, ids, numbers, request)
    if users is not None:
        raise ParameterError("recommend: give users or histories, not both")
    histories = many_histories(model, given, options.get("unknown_items", "error"))
    assert histories.names is not None
    request = Request.of(model, n, options, histories.names)
    return histories.names, _history_blocks(model, histories, request)


def _user_blocks(model: Model, ids: IdArray, numbers: Int64Array, request: Request) -> Iterator[pa.Table]:
    for part in _parts(model, numbers.size):
        block = numbers[part]
        scores = _scores(model, block)
        if request.exclude_seen:
            mask_seen(scores, model.seen_indptr, model.seen_indices, block)
        yield _table(model, scores, ids[part], request)


def _history_blocks(model: Model, histories: Histories, request: Request) -> Iterator[pa.Table]:
    for part in _parts(model, len(histories)):
        block = histories.part(part)
        scores = score_all(model, block)
        if request.exclude_seen:
            mask_seen(scores, block.indptr, block.items.astype(np.int32), np.arange(len(block)))
        yield _table(model, scores, block.names, request)


def _parts(model: Model, count: int) -> Iterator[slice]:
    """Slices of `count` users whose scores fit in a block."""
    size = max(1, BLOCK_BYTES // (4 * len(model.item_map)))
    return (slice(first, first + size) for first in range(0, count, size))


def _table(model: Model, scores: Float32Array, users: IdArray | None, request: Request) -> pa.Table:
    """The lists of a block of users, whose own items have no score."""
    request.restrict(scores, users)
    owners = None if users is None else Named("user", users)
    items = Named("item", model.item_ids_)
    return ranked_table(request.best(scores), scores, items, owners, request.min_score)


def _wanted(model: Model, users: Any, request: Request) -> tuple[IdArray, Int64Array]:
    """Ids and numbers of the users asked for; -1 marks an unknown user who gets popular items."""
    if users is None:
        return model.user_ids_, np.arange(len(model.user_map), dtype=np.int64)
    if request.unknown == "error":
        numbers = model.user_numbers(users)
        return model.user_ids_[numbers], numbers
    numbers = model.user_map.index(users)
    if request.unknown == "skip":
        numbers = numbers[numbers >= 0]
        return model.user_ids_[numbers], numbers
    given = as_array(users)
    integer = model.user_map.is_integer and given.dtype.kind in "iu"
    return (given if integer else given.astype(str).astype(object)), numbers


def _scores(model: Model, numbers: Int64Array) -> Float32Array:
    """(users, items) scores; strangers get the number of training rows of each item."""
    known = numbers >= 0
    if known.all():
        return np.require(model.score_block(numbers), np.float32, ["C", "W", "O"])
    scores = np.empty((numbers.size, len(model.item_map)), np.float32)
    scores[known] = model.score_block(numbers[known])
    scores[~known] = np.bincount(model.seen_indices, minlength=scores.shape[1])
    return scores


def _empty(model: Model, users: IdArray) -> pa.Table:
    """The table of recommendations without rows."""
    ids = {"user": id_column(users[:0]), "item": id_column(model.item_ids_[:0])}
    return pa.table({**ids, "score": pa.array([], pa.float32()), "rank": pa.array([], pa.int32())})
