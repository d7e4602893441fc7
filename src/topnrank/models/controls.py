"""The controls that stand in every comparison: Random, Popularity, RecentPopularity, ItemMean."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError
from topnrank.models.base import FitInfo, Fitted, Model
from topnrank.models.parameters import AUTO, NOT_NEGATIVE, POSITIVE, integer, param
from topnrank.models.recent_popularity import TimedPairs, choose_half_life, recent_counts
from topnrank.rng import mix, stream


class ItemScoreModel(Model):
    """A model that gives every user the same scores, one number per item."""

    @abstractmethod
    def item_scores(self, data: Interactions) -> Float64Array:
        """(n_items,) the scores learned from `data`."""

    def fit(self, data: Interactions) -> Self:
        """Counts or averages once over the rows; chooses by them what is "auto"."""
        self.check()
        explicit = self.with_explicit_defaults(data)
        arrays = {"item_bias": explicit.item_scores(data).astype(np.float32)}
        info = FitInfo(fingerprint=data.fingerprint(), half_life_days=getattr(explicit, "half_life", None))
        self._fitted = Fitted.of(data.take(data.pair_starts), arrays, info)
        return self

    def score_block(self, users: IntArray) -> Float32Array:
        """The same row for each user."""
        return np.tile(self.item_bias_, (len(users), 1))

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The items' scores."""
        return self.item_bias_[items]

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """The items' scores: a history changes nothing."""
        return self.item_bias_.copy()

    @property
    def item_bias_(self) -> Float32Array:
        """(n_items,) the items' scores."""
        return self.fitted.arrays["item_bias"].astype(np.float32, copy=False)


@final
@dataclass(eq=False, kw_only=True)
class Popularity(ItemScoreModel):
    """Ranks items by the number of users who rated, saw or bought them in training."""

    name: ClassVar[str] = "popularity"
    summary: ClassVar[str] = "control: items by number of training rows"

    def item_scores(self, data: Interactions) -> Float64Array:
        """Users per item."""
        return np.bincount(data.indices[data.pair_starts], minlength=data.n_items).astype(np.float64)


NEVER = "never"
"""The half-life of rows that do not fade."""


@final
@dataclass(eq=False, kw_only=True)
class RecentPopularity(ItemScoreModel):
    """Ranks items by the number of users who had them lately: a row counts 2^(-age / half_life).

    The age is in days, from a row to the latest training row; timestamps must be seconds. A user and item with several
    rows count once, by the latest.
    """

    half_life: float | str = param(AUTO, POSITIVE.unless(AUTO, NEVER))
    """Days after which a row counts half. "never": all count fully, as in `Popularity`. "auto": chosen on the latest
    training rows, from fractions of the time that the rows span; then all rows are counted with it."""

    name: ClassVar[str] = "recent-popularity"
    summary: ClassVar[str] = "control: items by number of training rows, older rows counting less"

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """With the half-life chosen by `data` in the place of "auto"."""
        if self.half_life != AUTO:
            return self
        days = choose_half_life(TimedPairs.of(data, type(self).__name__), data.n_items)
        return replace(self, half_life=NEVER if days == math.inf else days)

    def item_scores(self, data: Interactions) -> Float64Array:
        """Recent users per item."""
        pairs = TimedPairs.of(data, type(self).__name__)
        return recent_counts(pairs, data.n_items, _days(self.half_life))

    @property
    def half_life_(self) -> float:
        """Days after which a row counts half; `math.inf` for never."""
        days = self.fitted.info.half_life_days
        assert days is not None
        return _days(days)


def _days(half_life: float | str) -> float:
    """`math.inf` for "never"."""
    return math.inf if half_life == NEVER else float(half_life)


@final
@dataclass(eq=False, kw_only=True)
class ItemMean(ItemScoreModel):
    """Ranks items by their damped mean rating: (sum of ratings + damping * overall mean) / (count + damping)."""

    damping: float = param(5.0, NOT_NEGATIVE)
    """Pseudo-ratings at the overall mean: keeps items with few ratings near it."""

    name: ClassVar[str] = "item-mean"
    summary: ClassVar[str] = "control: items by damped mean rating (or weight); hard to beat on rated items"

    def item_scores(self, data: Interactions) -> Float64Array:
        """Damped means of the ratings, or of the weights where there are no ratings."""
        values = data.ratings if data.ratings is not None else data.weights
        if values is None:
            raise DataError("ItemMean needs ratings or weights, the data have neither; use Popularity for such data")
        counts = np.bincount(data.indices, minlength=data.n_items)
        sums = np.bincount(data.indices, weights=values, minlength=data.n_items)
        overall = float(values.mean(dtype=np.float64))
        return np.asarray((sums + self.damping * overall) / np.maximum(counts + self.damping, 1e-12))


@final
@dataclass(eq=False, kw_only=True)
class Random(Model):
    """Ranks items at random, the same way each time for the same seed, user and item."""

    seed: int = param(0, integer(0))
    """Other seeds, other orders."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "control: items in random order"

    def fit(self, data: Interactions) -> Self:
        """Learns the ids only."""
        self.check()
        self._fitted = Fitted.of(data.take(data.pair_starts), {}, FitInfo(fingerprint=data.fingerprint()))
        return self

    def score_block(self, users: IntArray) -> Float32Array:
        """A hash of (seed, user, item) in [0, 1)."""
        return self.score_pairs(np.asarray(users)[:, None], np.arange(len(self.item_map))[None, :])

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The top 24 bits of a hash of seed, user and item, in [0, 1)."""
        salt = stream(self.seed, "random model").integers(0, 2**64, dtype=np.uint64)
        pair = mix(np.asarray(users).astype(np.uint64) ^ salt) + np.asarray(items).astype(np.uint64)
        return ((mix(pair) >> np.uint64(40)).astype(np.float64) / 2.0**24).astype(np.float32)

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """A draw for the user after the last."""
        return np.asarray(self.score_block(np.array([len(self.user_map)]))[0])
