"""The controls that stand in every comparison: Random, Popularity, ItemMean, BiasedMF."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, IntArray
from topnrank.data.interactions import Interactions, check_interactions
from topnrank.errors import DataError
from topnrank.losses.base import Objective
from topnrank.losses.squared import Squared
from topnrank.models.base import FitInfo, Fitted, Model
from topnrank.models.factor.model import PENALTIES, START_VALUES, USER_REPRESENTATIONS, FactorModel
from topnrank.models.parameters import (
    BATCH_SIZE,
    NOT_NEGATIVE,
    POSITIVE,
    Range,
    Space,
    by,
    integer,
    one_word,
    param,
)
from topnrank.rng import mix, stream
from topnrank.training import Optimizer, make_optimizer

# ----------------------------------------------------------------------------------------------------
# The controls that stand in every comparison: Random, Popularity, ItemMean.


class ItemScoreModel(Model):
    """A model that gives every user the same scores, one number per item."""

    @abstractmethod
    def item_scores(self, data: Interactions) -> Float64Array:
        """(n_items,) the scores learned from `data`."""

    def fit(self, data: Interactions) -> Self:
        """Counts or averages once over the rows."""
        self.check()
        check_interactions(data)
        pairs = data.take(data.pair_starts)
        scores = {"item_bias": self.item_scores(data).astype(np.float32)}
        self._fitted = Fitted.of(pairs, dict(scores), FitInfo(fingerprint=data.fingerprint()))
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
        check_interactions(data)
        self._fitted = Fitted.of(data.take(data.pair_starts), {}, FitInfo(fingerprint=data.fingerprint()))
        return self

    def score_block(self, users: IntArray) -> Float32Array:
        """A hash of (seed, user, item) in [0, 1)."""
        return self._draw(np.asarray(users)[:, None], np.arange(len(self.item_map))[None, :])

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """A hash of (seed, user, item) in [0, 1)."""
        return self._draw(np.asarray(users), np.asarray(items))

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """A draw for the user after the last."""
        return np.asarray(self.score_block(np.array([len(self.user_map)]))[0])

    def _draw(self, users: IntArray, items: IntArray) -> Float32Array:
        """The top 24 bits of a hash of seed, user and item."""
        salt = stream(self.seed, "random model").integers(0, 2**64, dtype=np.uint64)
        pair = mix(users.astype(np.uint64) ^ salt) + items.astype(np.uint64)
        return ((mix(pair) >> np.uint64(40)).astype(np.float64) / 2.0**24).astype(np.float32)


# ----------------------------------------------------------------------------------------------------
# BiasedMF: the point-wise control.


@final
@dataclass(eq=False, kw_only=True)
class BiasedMF(FactorModel):
    """Matrix factorization with biases under squared loss (Koren, Bell, Volinsky 2009): strong where ratings are ranked.

    f = b_i + <u, v_i>; the user's bias is solved for in closed form inside the loss, so it needs no parameter and plays no
    part in the ranking. A control: a list-wise model should beat it before anything is claimed for its objective.
    """

    user_representation: str = param("factors", one_word(*USER_REPRESENTATIONS))
    factors: int = param(100, integer())
    init: float | str = param(0.003, START_VALUES)
    optimizer: str | Optimizer = param("sgd", by(make_optimizer))
    learning_rate: float = param(0.01, POSITIVE)
    regularization: float | Mapping[str, float] = param(0.0425, PENALTIES)
    batch_size: int | float | str = param(50, BATCH_SIZE)
    epochs: int | None = param(36, integer().unless(None))

    own_space: ClassVar[Space] = {
        "init": Range(0.001, 0.1, log=True),
        "learning_rate": Range(0.002, 0.05, log=True),
        "regularization": Range(0.01, 0.2, log=True),
    }

    name: ClassVar[str] = "biased-mf"
    summary: ClassVar[str] = "control: matrix factorization with biases under squared loss (point-wise)"

    def objective(self) -> Objective:
        """Squared error of centered scores."""
        return Squared()
