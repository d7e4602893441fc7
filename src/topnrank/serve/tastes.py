"""From what is known of a user to a history that a model scores: training rows, stored events, and what a request gives.

Of an item that comes twice the last word counts, and it stands where the last word was said. An entry without rating and
type is the plain item; where other entries of the history have values, it is a like. Stored events of a type that the
model does not know are passed over; in a request such a type is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.data.feedback.by_name import feedback_from_dict
from topnrank.data.feedback.policies import EventWeights
from topnrank.data.feedback.recency import Recency
from topnrank.errors import ParameterError
from topnrank.models.base import Model
from topnrank.models.factor.fitted import TIMES, VALUES
from topnrank.models.linear.neighbors import RECENCY_WEIGHTS
from topnrank.models.sequence.links import PAST
from topnrank.serve.store.base import Event
from topnrank.serve.wire import Entry

LIKE, DISLIKE, REMOVE = "like", "dislike", "remove"
_ROWS = 1_000_000
"""Training rows that are looked at for the usual ratings of likes and dislikes."""


@dataclass(frozen=True)
class Values:
    """What numbers and words about an item mean to a model."""

    kind: str | None
    """"ratings", "weights", or None for models that know only which items"""
    like: float
    dislike: float
    types: Mapping[str, float]
    """Weights of the feedback types of training"""

    @classmethod
    def of(cls, model: Model) -> "Values":
        """By what the model remembers of its training rows."""
        info = model.fitted.info
        kind, types = info.value, _types(info.feedback)
        if kind != "ratings":
            return cls(kind, max(types.values(), default=1.0), min([-1.0, *types.values()]), types)
        rule = info.liked
        if rule is None or rule.at is None:
            return cls(kind, 1.0, -1.0, types)
        ratings = model.fitted.arrays.get(VALUES)
        if ratings is None:
            return cls(kind, rule.at, rule.at - 1.0, types)
        some = np.asarray(ratings[:_ROWS])
        liked = rule.flags(some)
        like = float(np.median(some[liked])) if liked.any() else rule.at
        # said by a word, a dislike is no middling rating: it must not speak for anything
        dislike = float(some.min()) if not liked.all() else rule.at - 1.0
        return cls(kind, like, dislike, types)

    def plain(self, size: int) -> Float64Array | None:
        """Values of that many likes; None where the model takes none."""
        return None if self.kind is None else np.full(size, self.like)

    def of_entry(self, rating: float | None, kind: str | None) -> float | None:
        """The number of an entry; None for a plain item. A type the model does not know is a LookupError."""
        if rating is not None:
            return rating
        if kind is None or kind == "rating":
            return None
        if kind in self.types:
            return self.types[kind]
        if kind == LIKE:
            return self.like
        if kind == DISLIKE:
            return self.dislike
        raise LookupError(kind)


def _types(feedback: Mapping[str, object] | None) -> Mapping[str, float]:
    if feedback is None:
        return {}
    policy = feedback_from_dict(feedback)
    while isinstance(policy, Recency):
        policy = policy.base
    return policy.weights if isinstance(policy, EventWeights) else {}


class History(NamedTuple):
    """Items by number, from the oldest to the latest, and their values."""

    items: Int64Array
    values: Float64Array | None

    def without(self, place: int) -> "History":
        """The history less one item."""
        values = None if self.values is None else np.delete(self.values, place)
        return History(np.delete(self.items, place), values)


class Words(NamedTuple):
    """What was said of items in a row of entries, the last word of each: a value, or None for the plain item."""

    said: dict[int, float | None]
    unknown: list[int | str]


def words_of_request(model: Model, values: Values, entries: Sequence[int | str | Entry]) -> Words:
    """The entries of a request; a type that the model does not know is a ParameterError."""
    ids = [entry.item if isinstance(entry, Entry) else entry for entry in entries]
    numbers = numbers_of(model, ids)
    said: dict[int, float | None] = {}
    unknown: list[int | str] = []
    for item, number, entry in zip(ids, numbers, entries, strict=True):
        value = None
        if isinstance(entry, Entry) and entry.type != REMOVE:
            try:
                value = values.of_entry(entry.rating, entry.type)
            except LookupError:
                known = ", ".join(map(repr, dict.fromkeys([LIKE, DISLIKE, REMOVE, *values.types])))
                raise ParameterError(
                    f"history: the model knows no type {entry.type!r}; the types it knows: {known}"
                ) from None
        if number < 0:
            unknown.append(item)
            continue
        said.pop(number, None)
        if not (isinstance(entry, Entry) and entry.type == REMOVE):
            said[number] = value
    return Words(said, unknown)


def add_events(said: dict[int, float | None], model: Model, values: Values, events: Sequence[Event]) -> list[int | str]:
    """Adds stored events, oldest first, to what was said; returns the items that the model does not know."""
    unknown: dict[int | str, None] = {}
    for event, number in zip(events, numbers_of(model, [event.item for event in events]), strict=True):
        if number < 0:
            unknown[event.item] = None
            continue
        if event.type == REMOVE:
            said.pop(number, None)
            continue
        try:
            value = values.of_entry(event.value, event.type)
        except LookupError:
            continue
        said.pop(number, None)
        said[number] = value
    return list(unknown)


def words_of_user(model: Model, values: Values, user: int) -> dict[int, float | None]:
    """The training rows of a known user, from the oldest to the latest where the model knows their order."""
    rows = slice(int(model.seen_indptr[user]), int(model.seen_indptr[user + 1]))
    items, arrays = model.seen_indices[rows], model.fitted.arrays
    numbers = _numbers_of_rows(model, values, rows)
    for name in (TIMES, RECENCY_WEIGHTS, PAST):
        if name in arrays:
            past = arrays[name][rows]
            order = np.argsort(past if past.ndim == 1 else past[:, 0], kind="stable")
            items, numbers = items[order], None if numbers is None else numbers[order]
            break
    known: Iterable[float | None] = [None] * len(items) if numbers is None else numbers.tolist()
    return dict(zip(items.tolist(), known, strict=True))


def _numbers_of_rows(model: Model, values: Values, rows: slice) -> Float64Array | None:
    """What the training rows were rated or weighed; None where the model does not hold that."""
    arrays = model.fitted.arrays
    if values.kind is None:
        return None
    if VALUES in arrays:
        return arrays[VALUES][rows].astype(np.float64)
    weights = arrays.get("seen_weights")
    if weights is None:
        return None
    if values.kind == "weights":
        return weights[rows].astype(np.float64)
    return np.where(weights[rows] > 0, values.like, values.dislike)


def history_of(said: Mapping[int, float | None], values: Values) -> History:
    """What was said as arrays."""
    items, numbers = np.array(list(said), np.int64), list(said.values())
    if values.kind is None or all(number is None for number in numbers):
        return History(items, None)
    return History(items, np.array([values.like if number is None else number for number in numbers], np.float64))


def numbers_of(model: Model, ids: Sequence[int | str]) -> list[int]:
    """Numbers of item ids, -1 for those the model does not know; ids of both kinds may be mixed."""
    if not ids:
        return []
    if len({type(one) for one in ids}) > 1:
        ids = [str(one) for one in ids]
    return list(model.item_map.index(ids).tolist())


def user_number(model: Model, user: int | str) -> int:
    """The number of a user with training rows; -1 for others."""
    number = int(model.user_map.index([user])[0])
    if number >= 0 and model.seen_indptr[number] == model.seen_indptr[number + 1]:
        return -1
    return number
