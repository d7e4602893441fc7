"""Recommending: candidates, exclusions, unknown users, in blocks of bounded memory."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topnrank._typing import BoolArray, Float32Array, FloatArray, IdArray, Int64Array
from topnrank.data.ids import as_array
from topnrank.errors import ParameterError, one_of
from topnrank.models.base import Model, RecommendOptions, ranked_table
from topnrank.models.checks import check_n
from topnrank.storage import write_atomically

BLOCK_BYTES = 64 * 2**20
"""Scores held at a time."""
UNKNOWN = ("error", "popular", "skip")


@dataclass(frozen=True)
class Request:
    """What is asked of a model, checked."""

    n: int
    exclude_seen: bool
    unknown: str
    banned: BoolArray
    """(n_items,) items nobody gets"""

    @classmethod
    def of(cls, model: Model, n: int, options: RecommendOptions) -> "Request":
        """Checks the options of `Model.recommend`."""
        n = check_n("recommend", n)
        for name in options:
            one_of("recommend: an option", name, tuple(RecommendOptions.__annotations__))
        items, exclude = options.get("items"), options.get("exclude")
        banned = np.zeros(len(model.item_map), np.bool_)
        if items is not None:
            banned[:] = True
            banned[model.item_numbers(items)] = False
        if exclude is not None:
            banned[model.item_numbers(exclude)] = True
        if banned.all():
            raise ParameterError("recommend: no item is left after `items` and `exclude`; allow at least one")
        unknown = one_of("unknown", options.get("unknown", "error"), UNKNOWN)
        return cls(n, bool(options.get("exclude_seen", True)), unknown, banned)


def recommend_table(model: Model, users: Any, request: Request) -> pa.Table:
    """All recommendations in one table."""
    blocks = list(recommend_blocks(model, users, request))
    return pa.concat_tables(blocks) if blocks else _empty(model)


def recommend_parquet(model: Model, path: str | os.PathLike[str], users: Any, request: Request) -> int:
    """Writes the recommendations block by block; returns the number of rows."""
    rows = 0

    def write(temporary: Path) -> None:
        nonlocal rows
        blocks = recommend_blocks(model, users, request)
        first = next(blocks, _empty(model))
        with pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer:
            for block in chain([first], blocks):
                writer.write_table(block)
                rows += block.num_rows

    write_atomically(path, write)
    return rows


def recommend_blocks(model: Model, users: Any, request: Request) -> Iterator[pa.Table]:
    """Recommendations for `users`, a block of users at a time, in the order asked for."""
    ids, numbers = _wanted(model, users, request)
    size = max(1, BLOCK_BYTES // (4 * len(model.item_map)))
    for first in range(0, numbers.size, size):
        block = numbers[first : first + size]
        yield ranked_table(model, _scores(model, block, request), request.n, ids[first : first + size])


def recommend_history(model: Model, history: Any, request: Request) -> pa.Table:
    """Recommendations for a user never seen, known only by a history."""
    items, values = _parse_history(model, history)
    scores = model.score_history(items, values).astype(np.float32)
    scores[request.banned] = np.nan
    if request.exclude_seen:
        scores[items] = np.nan
    return ranked_table(model, scores[None, :], request.n)


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


def _scores(model: Model, numbers: Int64Array, request: Request) -> Float32Array:
    """(users, items) scores with NaN where an item must not be recommended."""
    known = numbers >= 0
    scores = np.empty((numbers.size, len(model.item_map)), np.float32)
    scores[known] = model.score_block(numbers[known])
    scores[~known] = np.bincount(model.seen_indices, minlength=scores.shape[1])
    scores[:, request.banned] = np.nan
    if request.exclude_seen:
        for row in np.flatnonzero(known):
            lo, hi = model.seen_indptr[numbers[row]], model.seen_indptr[numbers[row] + 1]
            scores[row, model.seen_indices[lo:hi]] = np.nan
    return scores


def _parse_history(model: Model, history: Any) -> tuple[Int64Array, FloatArray | None]:
    """Item numbers and ratings (None when only items are given) of a history."""
    if isinstance(history, str) or not isinstance(history, Iterable):
        raise ParameterError(
            f"recommend: a history is a list of items or (item, rating) pairs, or a dict, got {history!r}"
        )
    entries = list(history.items()) if isinstance(history, Mapping) else list(history)
    if not entries:
        raise ParameterError("recommend: the history is empty; give at least one item")
    pairs = [entry if isinstance(entry, tuple | list) else (entry, None) for entry in entries]
    if any(len(pair) != 2 for pair in pairs):
        raise ParameterError("recommend: a history holds items, or pairs (item, rating), or is a dict {item: rating}")
    items = model.item_numbers([item for item, _ in pairs])
    if np.unique(items).size < items.size:
        raise ParameterError("recommend: an item stands twice in the history; give each item once")
    ratings = [rating for _, rating in pairs]
    if all(rating is None for rating in ratings):
        return items, None
    try:
        values = np.array(ratings, np.float64)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise ParameterError(
            f"recommend: ratings in a history must be finite numbers, for all items or none, got {ratings}"
        )
    return items, values


def _empty(model: Model) -> pa.Table:
    """The table of recommendations without rows."""
    id_types = [pa.int64() if known.is_integer else pa.string() for known in (model.user_map, model.item_map)]
    types = [id_types[0], id_types[1], pa.float32(), pa.int32()]
    return pa.schema(list(zip(("user", "item", "score", "rank"), types, strict=True))).empty_table()
