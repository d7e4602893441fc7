"""What can be evaluated besides the models of this library: objects with two methods, and lists made elsewhere.

    class Mine:
        def fit(self, train): ...                 # topnrank.Interactions
        def score(self, users, items): ...        # arrays of original ids, pair by pair; one number for each

A table of lists has the columns user and item, and a rank (1 is best) or a score; else its rows stand best first.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Float32Array, IdArray, Int64Array, IntArray
from topnrank.data.columns import Column, numbers, rows_of
from topnrank.data.frames import ArrowStream, as_table, resolve_columns
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.labels import Labels, Ranker

_PAIRS = 2**20
"""Pairs that a competitor is asked for at a time."""


@runtime_checkable
class Competitor(Protocol):
    """The methods that a model of another library needs; an attribute `name` names its row in a comparison."""

    def fit(self, train: Interactions) -> Any:
        """Learns from the training rows; what it returns is not used."""

    def score(self, users: IdArray, items: IdArray) -> Any:
        """One number for each pair (users[k], items[k]) of original ids; the higher, the better."""


@runtime_checkable
class FullScorer(Protocol):
    """A competitor that scores all items at once, which is faster than pair by pair."""

    def score_all(self, users: IdArray, items: IdArray) -> Any:
        """(len(users), len(items)) scores of all items for each user."""


def name_of(model: Any) -> str:
    """The name of a model's row, unless a dict gives it one."""
    return str(getattr(model, "name", None) or type(model).__name__)


@final
@dataclass(frozen=True, eq=False)
class CompetitorRanker:
    """A fitted competitor as `topnrank.evaluation.evaluate` wants it: users and items are those of the training data."""

    competitor: Any
    fitted: Interactions
    """The training rows, each pair once"""

    @classmethod
    def fit(cls, competitor: Competitor, train: Interactions) -> Self:
        """Fits the competitor."""
        competitor.fit(train)
        return cls.of(competitor, train)

    @classmethod
    def of(cls, fitted: Any, train: Interactions) -> Self:
        """A competitor that was fitted on `train`."""
        return cls(fitted, train.take(train.pair_starts))

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Scores of pairs given by number, as 32-bit numbers."""
        ids = self.fitted.users.ids[users], self.fitted.items.ids[items]
        scores = np.asarray(self.competitor.score(*ids))
        return self._checked(scores, (len(users),), *ids)

    def score_block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) scores of all items."""
        n_items = len(self.fitted.items)
        if isinstance(self.competitor, FullScorer):
            ids = self.fitted.users.ids[users], self.fitted.items.ids
            return self._checked(np.asarray(self.competitor.score_all(*ids)), (len(users), n_items), *ids)
        block = np.empty((len(users), n_items), np.float32)
        size = max(1, _PAIRS // n_items)
        for first in range(0, len(users), size):
            some = users[first : first + size]
            pairs = np.repeat(some, n_items), np.tile(np.arange(n_items), len(some))
            block[first : first + size] = self.score_pairs(*pairs).reshape(len(some), n_items)
        return block

    def _checked(self, scores: Any, shape: tuple[int, ...], users: IdArray, items: IdArray) -> Float32Array:
        """32-bit scores; an error where they are not one number for each pair."""
        name = name_of(self.competitor)
        if scores.shape != shape or scores.dtype.kind not in "fiub":
            raise DataError(
                f"{name}: score must return numbers of shape {shape}, got {scores.dtype} of shape {scores.shape}; fix it"
            )
        largest = np.finfo(np.float32).max
        narrow: Float32Array = np.clip(scores, -largest, largest).astype(np.float32)  # infinities stay first and last
        if np.isnan(narrow).any():
            place = np.argwhere(np.isnan(narrow))[0]
            raise DataError(
                f"{name}: the score of user {users.item(place[0])!r} and item {items.item(place[-1])!r} is NaN; "
                "return the lowest number for what it does not know"
            )
        return narrow


@final
@dataclass(frozen=True, eq=False)
class RankedLists:
    """Lists made elsewhere; an item that is not in a user's list is not found."""

    fitted: Interactions
    """The training rows of these users; none where none were given"""
    indptr: Int64Array
    """With `items` and `scores`: CSR of the lists"""
    items: Int64Array
    scores: Float32Array

    @classmethod
    def of(cls, frame: Any, train: Interactions | None) -> Self:
        """From a frame with the columns user, item and, if it has them, rank or score."""
        table = as_table(frame)
        if not table.num_rows:
            raise DataError("the frame of lists has no rows; give a user and an item in each row")
        columns = resolve_columns(table.column_names, {})
        locate = rows_of("the frame of lists")
        lists, user_codes = IdMap.encode_column(Column(columns.user, table[columns.user], locate))
        listed, item_codes = IdMap.encode_column(Column(columns.item, table[columns.item], locate))
        bare = {name.lower(): name for name in table.column_names}
        if "rank" in bare:
            scores = -numbers(Column("rank", table[bare["rank"]], locate))
        elif "score" in bare:
            scores = numbers(Column("score", table[bare["score"]], locate))
        else:
            scores = -np.arange(table.num_rows, dtype=np.float32)
        pairs = user_codes.astype(np.int64) * len(listed) + item_codes
        if len(np.unique(pairs)) < len(pairs):
            raise DataError("the frame of lists has an item twice in the list of a user; leave one of them out")
        order = np.argsort(user_codes, kind="stable")
        indptr = indptr_from_counts(np.bincount(user_codes, minlength=len(lists)))
        if train is None:
            nothing = Interactions(lists, listed, np.zeros(len(lists) + 1, np.int64), np.empty(0, np.int32))
            return cls(nothing, indptr, item_codes[order].astype(np.int64), scores[order])
        catalog, numbers_of_items = IdMap.encode(np.concatenate([train.items.ids, listed.ids]))
        mine = train.users.index(lists.ids)
        rows = train.take(train.pair_starts)
        kept = [
            rows.indices[rows.indptr[u] : rows.indptr[u + 1]] if u >= 0 else rows.indices[:0] for u in mine.tolist()
        ]
        seen = np.concatenate(kept) if kept else rows.indices[:0]
        seen_indptr = indptr_from_counts(np.array([len(one) for one in kept], np.int64))
        in_train, in_lists = numbers_of_items[: train.n_items], numbers_of_items[train.n_items :]
        items = in_lists[item_codes[order]].astype(np.int64)
        known = Interactions(lists, catalog, seen_indptr, in_train[seen].astype(np.int32))
        return cls(known, indptr, items, scores[order])

    def score_block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) scores; the lowest for what is not in a list."""
        block = np.full((len(users), len(self.fitted.items)), -np.inf, np.float32)
        for row, user in enumerate(np.asarray(users).tolist()):
            mine = slice(self.indptr[user], self.indptr[user + 1])
            block[row, self.items[mine]] = self.scores[mine]
        return block

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Scores of pairs."""
        found = [self.score_block(users[k : k + 1])[0, items[k]] for k in range(len(users))]
        return np.array(found, np.float32)

    def only_listed(self, labels: Labels) -> Labels:
        """The labels with -1 for items that are not in the list of their user."""
        width = len(self.fitted.items)
        listed = np.repeat(np.arange(len(self.fitted.users)), np.diff(self.indptr)) * width + self.items
        found = np.isin(labels.users[labels.owner] * width + labels.items, listed)
        return replace(labels, items=np.where(found, labels.items, -1))


def as_ranker(model: Any, train: Any) -> Ranker:
    """What `evaluate` ranks with: a model of this library, a fitted competitor, or lists made elsewhere."""
    rows = None if train is None else as_interactions(train, "evaluate: train")
    if hasattr(model, "score_block") and hasattr(model, "fitted"):
        ranker: Ranker = model
        return ranker
    if isinstance(model, ArrowStream):
        return RankedLists.of(model, rows)
    if not callable(getattr(model, "score", None)):
        raise ParameterError(
            "evaluate needs a fitted model, an object with the method score(users, items), or a frame of lists with the "
            f"columns user and item, got {type(model).__name__}"
        )
    if rows is None:
        raise ParameterError(
            f"evaluate: {name_of(model)} does not say what it was trained on; give train=..., the training rows: their "
            "items are ranked, and what a user has there is left out"
        )
    return CompetitorRanker.of(model, rows)
