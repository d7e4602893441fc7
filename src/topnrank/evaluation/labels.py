"""Labels: which test rows of a model's users are relevant, and how much."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Float64Array, IdArray, Int32Array, Int64Array, IntArray
from topnrank.data.feedback.liked import LikedRule, rule_for
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError


class TrainingRows(Protocol):
    """What a model was trained on: the fitted state of a model of this library, or `Interactions`."""

    @property
    def users(self) -> IdMap:
        """Ids of the users the model knows."""

    @property
    def items(self) -> IdMap:
        """Ids of the items the model knows: its catalog."""

    @property
    def indptr(self) -> Int64Array:
        """(n_users + 1,) where the training rows of each user start in `indices`."""

    @property
    def indices(self) -> Int32Array:
        """(n_rows,) items of the training rows."""


class Ranker(Protocol):
    """What evaluation needs of a fitted model; users and items are indices in the model's own maps."""

    @property
    def fitted(self) -> TrainingRows:
        """What it was trained on."""

    def score_block(self, users: IntArray) -> Float32Array:
        """Scores of all items, (len(users), n_items)."""

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """Scores of the pairs (users[k], items[k]), (len(users),)."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Distinct test items of the users a model knows (CSR), with the model's indices."""

    users: Int64Array
    """(n_users,) index of each user in the model."""
    indptr: Int64Array
    """(n_users + 1,)"""
    items: Int64Array
    """(n_rows,) index of each item in the model, -1 for an unknown one."""
    relevant: Float64Array
    """(n_rows,) 1.0 or 0.0."""
    gain: Float64Array
    """(n_rows,) 2^grade - 1; zeros when no graded metric is wanted."""
    stop: Float64Array
    """(n_rows,) gain / 2^(highest grade)."""

    @cached_property
    def owner(self) -> Int64Array:
        """(n_rows,) position in `users` of each row's user."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.indptr))

    def between(self, first: int, last: int) -> Self:
        """The labels of the users at the positions first, ..., last - 1."""
        indptr = self.indptr[first : last + 1]
        chosen = self.rows(np.arange(indptr[0], indptr[-1]))
        return replace(chosen, users=self.users[first:last], indptr=indptr - indptr[0])

    def where(self, kept: BoolArray) -> Self:
        """The rows of the mask `kept`, (n_rows,), of all users."""
        indptr = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        return replace(self.rows(np.flatnonzero(kept)), indptr=indptr)

    def of_users(self, positions: Int64Array) -> Self:
        """The labels of the users at these positions, which ascend."""
        left = self.where(np.isin(self.owner, positions))
        return replace(left, users=self.users[positions], indptr=np.append(left.indptr[positions], left.indptr[-1]))

    def rows(self, order: Int64Array) -> Self:
        """The rows in another order within their users."""
        columns = ("items", "relevant", "gain", "stop")
        return replace(self, **{name: getattr(self, name)[order] for name in columns})


@dataclass(frozen=True, eq=False)
class Matched:
    """Labels of the users that a model knows, and what could not be matched."""

    labels: Labels
    user_ids: IdArray
    """(n_users,) original ids of `labels.users`."""
    item_ids: IdArray
    """Original ids of the distinct items of these users."""
    n_unknown_users: int
    n_unknown_items: int
    """How many of `item_ids` the model does not know."""


def match(
    model: Ranker, test: Interactions, relevant: Float64Array, *, graded: bool, highest: float | None = None
) -> Matched:
    """Label the test rows of the users that `model` knows, matched by original id; there may be none.

    Several rows of one user and item (feedback types) become one: relevant if any is, with the highest grade.

    Parameters
    ----------
    model, test
        The model, and test rows: all of them, or a part.
    relevant
        (n_rows,) 1.0 for relevant rows, else 0.0.
    graded
        Whether a metric needs the height of ratings. Without ratings a relevant row has grade 1.
    highest
        The highest grade of all test rows, where `test` is a part of them.
    """
    gain, stop = _grades(test, relevant, highest) if graded else (np.zeros(len(test)), np.zeros(len(test)))
    has_rows = np.diff(test.indptr) > 0
    users = np.where(has_rows, model.fitted.users.index(test.users.ids), -1)
    known = users >= 0
    pairs = np.flatnonzero(test.pair_starts)
    chosen = known[test.user_index[pairs]]
    rows = pairs[chosen]
    used = np.flatnonzero(np.bincount(test.indices[rows], minlength=test.n_items))
    item_ids = test.items.ids[used]
    number = np.full(test.n_items, -1, np.int64)
    number[used] = model.fitted.items.index(item_ids)
    sizes = np.bincount(test.user_index[rows], minlength=test.n_users)[known]
    columns = (
        np.maximum.reduceat(values, pairs)[chosen] if len(pairs) else values for values in (relevant, gain, stop)
    )
    labels = Labels(users[known], np.concatenate(([0], np.cumsum(sizes))), number[test.indices[rows]], *columns)
    n_unknown = int((has_rows & ~known).sum()), int((number[used] < 0).sum())
    return Matched(labels, test.users.ids[known], item_ids, *n_unknown)


def _grades(test: Interactions, relevant: Float64Array, highest: float | None) -> tuple[Float64Array, Float64Array]:
    """(n_rows,) gain and ERR's stop chance of each row."""
    grades = relevant if test.ratings is None else test.ratings.astype(np.float64)
    highest = float(grades.max()) if highest is None else highest
    if grades.min(initial=0.0) < 0 or highest > 1000:
        raise DataError(
            f"ndcg_graded and err need ratings between 0 and 1000, got {grades.min():g} to {highest:g}; rescale them"
        )
    # Divided before the difference, so that neither overflows nor loses what a small rating is worth.
    return np.exp2(grades) - 1.0, np.exp2(grades - highest) - np.exp2(-highest)


def check_overlap(model: Ranker, test: Interactions, matched: Matched) -> None:
    """Raise DataError if the model knows no test user, or no item of those it knows."""
    if not len(matched.user_ids):
        kind, example, known = "user", test.users.ids.item(int(test.user_index[0])), model.fitted.users.ids
    elif matched.n_unknown_items == len(matched.item_ids):
        kind, example, known = "item", matched.item_ids.item(0), model.fitted.items.ids
    else:
        return
    mine = repr(known.item(0)) if len(known) else "none at all"
    raise DataError(
        f"no {kind} of the test data is known to the model: the test data have {kind}s such as {example!r}, "
        f"the model {kind}s such as {mine}; use data with the ids the model was trained on"
    )


class RelevantRows(NamedTuple):
    """Which test rows are relevant, and by what."""

    flags: Float64Array
    """(n_rows,) 1.0 for relevant rows, else 0.0"""
    rule: str
    """In words"""
    values: Float32Array | None
    """What decides: ratings or weights; None where every row is relevant"""
    share: float
    """How much of the rows a chosen rating makes relevant; 0 where no rating was chosen"""

    def complaint(self, protocol: str) -> str | None:
        """Why numbers by these rows say little or nothing, and what to do; None where they do not."""
        if protocol == "rated" and self.says_nothing:
            return (
                f"every test row is relevant ({self.rule}), so that under the protocol 'rated' every order has the same "
                f"value and nothing is measured; set relevant higher, or rank all items with protocol='catalog'"
            )
        if self.share <= MOST_RELEVANT or self.values is None:
            return None
        seen = f"{self.values.min():g} to {self.values.max():g}"
        return (
            f"{self.share:.1%} of the test rows count as relevant ({self.rule}; their ratings are {seen}), so that these "
            "numbers tell models hardly apart; set relevant to the lowest rating that counts as liked"
        )

    @property
    def says_nothing(self) -> bool:
        """Whether all rows are relevant, so that no order of them is better than another."""
        return bool(self.flags.all())


MOST_RELEVANT = 0.9
"""Where more than this share of the rows is relevant, numbers hardly tell models apart."""


def relevance(test: Interactions, relevant: object, known: LikedRule | None = None) -> RelevantRows:
    """The relevant test rows by an argument `relevant` of `evaluate`; `known` is the rule of the model.

    Raises DataError if no row is relevant.
    """
    if len(test) == 0:
        raise DataError("the test data have no rows; split the data so that some are held out")
    rule = rule_for(relevant, known, test.rating_counts)
    if test.types is not None and test.ratings is None and test.weights is None and relevant is not None:
        raise DataError(
            "the test rows have feedback types but no weights, so that all of them, dislikes too, would count as relevant; "
            "give model.weigh(test), which weighs them as in training, or relevant=None if all are meant"
        )
    found = relevant_rows(test, rule)
    if found.values is not None and not found.flags.any():
        raise nothing_relevant(found.rule, float(found.values.min()), float(found.values.max()))
    return found


def relevant_rows(test: Interactions, rule: LikedRule | None) -> RelevantRows:
    """As `relevance` by a rule that is known, but there may be no relevant row."""
    if test.ratings is not None and rule is not None:
        flags = rule.flags(test.ratings).astype(np.float64)
        share = 0.0 if rule.at is None or not len(test) else float(flags.mean())
        return RelevantRows(flags, str(rule), test.ratings, share)
    if test.weights is not None:
        return RelevantRows((test.weights > 0).astype(np.float64), "weight > 0", test.weights, 0.0)
    return RelevantRows(np.ones(len(test)), "every test row", None, 0.0)


def nothing_relevant(rule: str, least: float, most: float) -> DataError:
    """The error of test data without a relevant row."""
    return DataError(
        f"no test row is relevant by the rule {rule}: values lie between {least:g} and {most:g}; "
        "set relevant to the lowest rating that counts as liked"
    )
