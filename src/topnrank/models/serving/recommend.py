"""Recommending: for known users, for users the model does not know, and for histories; in blocks of bounded memory."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from topnrank._memory import require_memory
from topnrank._typing import Float32Array, IdArray, Int64Array
from topnrank.data.ids import as_array
from topnrank.errors import ParameterError, TopNRankWarning
from topnrank.io.tables import table_format, write_tables
from topnrank.kernels.jit import threads_for
from topnrank.kernels.top_items import mask_seen
from topnrank.models.base import Model, numbers_of
from topnrank.models.serving.filters import RecommendOptions, Request
from topnrank.models.serving.histories import Histories, many_histories, one_history, score_all
from topnrank.models.serving.tables import IdColumn, id_column, ranked_table

Part = TypeVar("Part", Int64Array, Histories)

BLOCK_BYTES = 24 * 2**20
"""Scores held at a time: larger blocks do not fit the cache, and their memory is fetched from the system each time."""


BYTES_OF_A_ROW = 24
"""Of a table of lists: ids, score and rank."""


class Lists(NamedTuple):
    """Recommendations to come."""

    ids: IdArray
    """Ids of the kind that the column user has"""
    tables: Iterator[pa.Table]


def recommend_table(model: Model, users: Any, history: Any, n: int, options: RecommendOptions) -> pa.Table:
    """All recommendations in one table."""
    if model.fitted.info.task == "rated":
        warn_of_other_task(model)
    if history is None:
        lists = _lists(model, users, n, options)
        if users is None and options.get("histories") is None:
            rows = len(lists.ids) * min(n, len(model.fitted.items.ids))
            advice = "write them to a file by recommend_to, or ask for fewer users"
            require_memory(BYTES_OF_A_ROW * rows, f"a table of {rows:,} recommendations", advice)
        tables = list(lists.tables)
        if len(tables) == 1:
            return tables[0]
        return pa.concat_tables(tables) if tables else _empty(model, lists.ids)
    if users is not None or options.get("histories") is not None:
        raise ParameterError("recommend: give users or a history, not both; many histories go to histories=...")
    for name in ("items", "exclude"):
        if isinstance(options.get(name), Mapping):
            raise ParameterError(f"recommend: {name} by user needs users or histories; give a list for one history")
    request = Request.of(model, n, options)
    one = one_history(model, history, options.get("unknown_items", "error"))
    return _table(model, history_scores, one, None, request)


def write_lists(model: Model, path: str | os.PathLike[str], users: Any, n: int, options: RecommendOptions) -> int:
    """Writes the recommendations block by block, as Parquet, CSV or JSON lines; returns the number of rows."""
    table_format(path)
    warn_of_other_task(model)
    return write_tables(path, recommend_blocks(model, users, n, options))


def warn_of_other_task(model: Model) -> None:
    """Says that a model which could have been trained for the whole catalog was not."""
    if model.name == "top-n-rank" and model.fitted.info.task == "rated":
        warnings.warn(
            "this model learned to rank the items that a user has rated (task='rated'); its lists of all items may "
            "be worse than popularity; train with task='catalog' to recommend",
            TopNRankWarning,
            stacklevel=4,
        )


def recommend_blocks(model: Model, users: Any, n: int, options: RecommendOptions) -> Iterator[pa.Table]:
    """The recommendations in tables of bounded size, at least one, the first perhaps without rows; checked at once."""
    return _at_least_one(model, _lists(model, users, n, options))


def _at_least_one(model: Model, lists: Lists) -> Iterator[pa.Table]:
    first = next(lists.tables, None)
    yield _empty(model, lists.ids) if first is None else first  # a table without rows is false, too
    yield from lists.tables


def _lists(model: Model, users: Any, n: int, options: RecommendOptions) -> Lists:
    """The tables of users or histories, in the order asked for, block by block."""
    size = max(1, BLOCK_BYTES // (4 * model.fitted.items.ids.size))
    if (given := options.get("histories")) is not None:
        if users is not None:
            raise ParameterError("recommend: give users or histories, not both")
        histories = many_histories(model, given, options.get("unknown_items", "error"))
        names = histories.names
        assert names is not None
        request = Request.of(model, n, options, names)
        starts = range(0, len(histories), size)
        parts = (histories.part(slice(first, first + size)) for first in starts)
        return Lists(names, (_table(model, history_scores, part, part.names, request) for part in parts))
    request, known = Request.of(model, n, options), model.fitted.users
    if request.unknown == "error":
        numbers = np.arange(known.ids.size) if users is None else numbers_of(known, users, "user")
        ids = known.ids[numbers]
    else:
        ids, numbers = _users_or_unknown(model, known.ids if users is None else users, request.unknown)
    blocks = (slice(first, first + size) for first in range(0, numbers.size, size))
    return Lists(known.ids, (_table(model, user_scores, numbers[b], ids[b], request) for b in blocks))


def _users_or_unknown(model: Model, users: Any, unknown: str) -> tuple[IdArray, Int64Array]:
    """Ids and numbers of the users asked for, where unknown ones are no error; -1 marks one who gets popular items.

    Users whose id is known without a single training row count as unknown, too.
    """
    known = model.fitted.users
    numbers = known.index(users)
    numbers = np.where((numbers >= 0) & (np.diff(model.fitted.indptr)[numbers] == 0), -1, numbers)
    if unknown == "skip":
        numbers = numbers[numbers >= 0]
        return known.ids[numbers], numbers
    given = as_array(users)
    integer = known.is_integer and given.dtype.kind in "iu"
    return (given if integer else given.astype(str).astype(object)), numbers


def user_scores(model: Model, numbers: Int64Array, request: Request) -> Float32Array:
    """(len(numbers), n_items) scores, NaN for items that are left out as seen."""
    fitted, known = model.fitted, numbers >= 0
    if known.all():
        scores = np.require(model.score_block(numbers), np.float32, ["C", "W", "O"])
    else:  # unknown users get the number of training rows of each item
        scores = np.empty((numbers.size, len(fitted.items)), np.float32)
        if known.any():
            scores[known] = model.score_block(numbers[known])
        scores[~known] = np.bincount(fitted.indices, minlength=scores.shape[1])
    if request.exclude_seen and numbers.size == 1:
        if known[0]:
            scores[0, fitted.indices[fitted.indptr[numbers[0]] : fitted.indptr[numbers[0] + 1]]] = np.nan
    elif request.exclude_seen:
        mask_seen(scores, fitted.indptr, fitted.indices, numbers)
    return scores


def history_scores(model: Model, histories: Histories, request: Request) -> Float32Array:
    """(len(histories), n_items) scores, NaN for items that are left out as seen."""
    scores = score_all(model, histories)
    if request.exclude_seen and len(histories) == 1:
        scores[0, histories.items] = np.nan
    elif request.exclude_seen:
        mask_seen(scores, histories.indptr, histories.items.astype(np.int32), np.arange(len(histories)))
    return scores


def _table(
    model: Model,
    score: Callable[[Model, Part, Request], Float32Array],
    part: Part,
    names: IdArray | None,
    request: Request,
) -> pa.Table:
    """The lists of a block of users or histories, whose column user has these names."""
    with threads_for(len(part)):
        scores = score(model, part, request)
        if request.banned is not None:
            np.copyto(scores, np.float32(np.nan), where=request.banned)
        if names is not None and request.allowed is not None:
            request.allowed.keep(scores, names)
        if names is not None and request.excluded is not None:
            request.excluded.forbid(scores, names)
        owners = None if names is None else IdColumn("user", names)
        items = IdColumn("item", model.fitted.items.ids)
        return ranked_table(request.best(scores), scores, items, owners, request.min_score)


def _empty(model: Model, users: IdArray) -> pa.Table:
    """The table of recommendations without rows."""
    ids = {"user": id_column(users[:0]), "item": id_column(model.item_ids_[:0])}
    return pa.table({**ids, "score": pa.array([], pa.float32()), "rank": pa.array([], pa.int32())})
