"""Synthetic ratings with planted preferences, shaped like MovieLens.

The rating of user u for item i is a step function of

    quality_i + <user_factors_u, item_factors_i> + leniency_u + noise,

cut so that the shares of the stars are those of MovieLens. List lengths and popularity are heavy-tailed; better items
are somewhat more popular, and users take items to their taste more often. The default proportions are such that
Random, Popularity, ItemMean and a factor model have the order and roughly the distances of those on MovieLens 1M.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TypedDict, Unpack, final

import numpy as np

from topnrank._checks import require_integer, require_number
from topnrank._csr import indptr_from_counts, row_owner
from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array, IntArray
from topnrank.data.datasets._synthetic_kernel import Market, affinities, choose_items, rating_times
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.rng import stream

_STARS = np.array([1, 2, 3, 4, 5], dtype=np.float32)
_STAR_SHARES = np.array([0.056, 0.108, 0.261, 0.349, 0.226])
_HALF_STARS = np.arange(0.5, 5.5, 0.5, dtype=np.float32)
_HALF_STAR_SHARES = np.array([0.012, 0.034, 0.014, 0.071, 0.044, 0.215, 0.110, 0.278, 0.077, 0.145])

# Spreads of the other planted parts, in stars. Fitted by hand to MovieLens 1M, as are the defaults of `Recipe`.
_QUALITY = 0.6  # of items nobody knows; the famous differ less
_FAME = 0.25  # what an item gains where its rank by popularity is divided by e
_LENIENCY = 0.4
_SEVERITY = 0.1  # lost per standard deviation of the list lengths: users with many ratings rate lower
_PULL = 1.5  # log-odds of taking an item, per star of affinity
_LENGTH_SHAPE = 0.7  # of the Weibull law of the list lengths
_GENRE_BLEND = 0.3  # the smaller, the more an item belongs to one factor alone

_EPOCH, _YEARS = 946_684_800, 3 * 365 * 86_400  # users join from January 2000 on, for three years


class Options(TypedDict, total=False):
    """The optional fields of `Recipe`."""

    factors: int
    taste: float
    noise: float
    min_list: int
    half_stars: bool
    seed: int


@final
@dataclass(frozen=True)
class Recipe:
    """What synthetic data to make; equal recipes give equal data, whatever the number of threads."""

    users: int = 1000
    items: int = 500
    """Sizes of the id maps; ids count from 1. With few ratings some items, or users, have none."""
    ratings: int | None = None
    """Exact number of rows; None for 50 for each user, or half the catalog where that is less."""
    _: KW_ONLY
    factors: int = 8
    """Rank of the planted tastes."""
    taste: float = 0.65
    """Standard deviation, in stars, of what a user's taste adds to the item's quality."""
    noise: float = 0.85
    """Standard deviation, in stars, of what no model can know."""
    min_list: int = 20
    """Length of the shortest list; lowered to half the mean length where ratings are few."""
    half_stars: bool = False
    """Ratings 0.5, 1, ..., 5 instead of 1, 2, ..., 5."""
    seed: int = 0
    """Number that names the data set."""

    def __post_init__(self) -> None:
        for name, least in (("users", 1), ("items", 1), ("factors", 1), ("min_list", 0), ("seed", 0)):
            require_integer(name, getattr(self, name), least)
        require_integer("ratings", self.rows, 1)
        if self.rows > self.users * self.items:
            most = self.users * self.items
            raise ParameterError(f"ratings must be at most users x items = {most}, got {self.rows}; ask for fewer")
        require_number("taste", self.taste, at_least=0)
        require_number("noise", self.noise, at_least=0)

    @property
    def rows(self) -> int:
        """Number of ratings to make."""
        return self.users * min(50, (self.items + 1) // 2) if self.ratings is None else self.ratings

    def stream(self, purpose: str) -> np.random.Generator:
        """The random numbers of one step."""
        return stream(self.seed, f"synthetic {purpose}")

    def normal(self, purpose: str, shape: int | tuple[int, ...], spread: float) -> Float32Array:
        """Normal numbers around zero."""
        drawn = self.stream(purpose).standard_normal(shape, dtype=np.float32)
        drawn *= np.float32(spread)
        return drawn


@final
@dataclass(frozen=True, eq=False)
class Planted:
    """Synthetic interactions together with the preferences they were drawn from."""

    interactions: Interactions
    item_quality: Float32Array
    """(n_items,) what everybody thinks of the item."""
    user_factors: Float32Array
    """(n_users, factors) tastes."""
    item_factors: Float32Array
    """(n_items, factors) rows of length one, without negative entries: how much the item belongs to each genre."""

    def score(self, users: IntArray, items: IntArray) -> Float64Array:
        """The planted preference of each pair of user and item numbers: the best possible ranking of unseen ratings."""
        liking = (self.user_factors[users] * self.item_factors[items]).sum(axis=1, dtype=np.float64)
        return np.asarray(liking + self.item_quality[items])


def synthetic(
    users: int = 1000, items: int = 500, ratings: int | None = None, **options: Unpack[Options]
) -> Interactions:
    """Ratings with planted preferences; `options` are the other fields of `Recipe`, which explains them all."""
    return plant(Recipe(users, items, ratings, **options)).interactions


def plant(recipe: Recipe) -> Planted:
    """The data of `recipe` with the preferences behind it."""
    lengths = _list_lengths(recipe)
    indptr = indptr_from_counts(lengths)
    rank = _ranks(recipe)
    quality = _quality(rank, recipe)
    market = _market(rank, recipe)
    indices = _sorted_rows(indptr, choose_items(indptr, market, recipe.stream("items")), recipe.items)
    opinion = quality[indices] + affinities(indptr, indices, market)
    opinion += np.repeat(_leniency(lengths, recipe), lengths)
    opinion += recipe.normal("noise", recipe.rows, recipe.noise)
    joined = recipe.stream("joining").integers(_EPOCH, _EPOCH + _YEARS, recipe.users)
    data = Interactions(
        users=IdMap(np.arange(1, recipe.users + 1)),
        items=IdMap(np.arange(1, recipe.items + 1)),
        indptr=indptr,
        indices=indices,
        ratings=_stars(opinion, recipe.half_stars),
        timestamps=rating_times(indptr, joined, recipe.stream("times")),
    )
    return Planted(data, quality, market.user_factors, market.item_factors)


def _list_lengths(recipe: Recipe) -> Int64Array:
    """Length of each user's list, (users,), summing to the number of ratings.

    A minimum plus a Weibull part, which fits MovieLens closely; the longest lists bend below the size of the catalog.
    """
    least = min(recipe.min_list, (recipe.rows // recipe.users + 1) // 2)
    room = recipe.items - least
    activity = recipe.stream("lengths").weibull(_LENGTH_SHAPE, recipe.users)

    def lengths(scale: float) -> Float64Array:
        return np.asarray(least - room * np.expm1(-scale / max(room, 1) * activity))

    low, high = 0.0, 1.0
    while lengths(high).sum() < recipe.rows:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if lengths(middle).sum() < recipe.rows else (low, middle)
    return _rounded(lengths(high), recipe.rows)


def _rounded(lengths: Float64Array, total: int) -> Int64Array:
    """Integers next to `lengths` whose sum is `total`: the largest fractions are rounded up."""
    whole = np.floor(lengths).astype(np.int64)
    up = np.argsort(whole - lengths, kind="stable")[: total - whole.sum()]
    whole[up] += 1
    return whole


def _ranks(recipe: Recipe) -> Float64Array:
    """Rank of each item by popularity, (items,), in (0, 1); the lead of the first few is limited."""
    position = recipe.stream("ranks").permutation(recipe.items) + 0.5
    head = min(40.0, 0.01 * recipe.items)
    return np.asarray((position + head) / (recipe.items + head))


def _quality(rank: Float64Array, recipe: Recipe) -> Float32Array:
    own = recipe.normal("quality", recipe.items, _QUALITY)
    return np.asarray(rank**0.15 * own - _FAME * np.log(rank), dtype=np.float32)


def _market(rank: Float64Array, recipe: Recipe) -> Market:
    """Popularity after Zipf with a tail that thins out; normal tastes; items that belong mostly to one genre."""
    cumulative = np.cumsum(rank**-0.8 * (1 - rank) ** 1.4)
    cumulative /= cumulative[-1]  # exactly 1 at the end, above every draw
    first = np.searchsorted(cumulative, np.arange(recipe.items) / recipe.items, side="right").astype(np.int32)
    genres = recipe.stream("genres").standard_gamma(_GENRE_BLEND, (recipe.items, recipe.factors)) + 1e-9
    genres /= np.linalg.norm(genres, axis=1, keepdims=True)
    tastes = recipe.normal("tastes", (recipe.users, recipe.factors), recipe.taste)
    return Market(cumulative, first, tastes, genres.astype(np.float32), _PULL)


def _leniency(lengths: Int64Array, recipe: Recipe) -> Float32Array:
    """What each user adds to all ratings, (users,)."""
    activity = np.log(lengths + 1.0)
    activity = (activity - activity.mean()) / max(activity.std(), 1e-9)
    own = recipe.normal("leniency", recipe.users, _LENIENCY)
    return np.asarray(own - _SEVERITY * activity, dtype=np.float32)


def _sorted_rows(indptr: Int64Array, indices: Int32Array, items: int) -> Int32Array:
    """`indices` ascending within each user."""
    key = row_owner(indptr) * items
    key += indices
    key.sort()
    key %= items
    return key.astype(np.int32)


def _stars(opinion: Float32Array, half_stars: bool) -> Float32Array:
    """Opinions cut into stars at the quantiles that give the shares of MovieLens."""
    values, shares = (_HALF_STARS, _HALF_STAR_SHARES) if half_stars else (_STARS, _STAR_SHARES)
    cuts = np.quantile(opinion, np.cumsum(shares)[:-1])
    return values[np.searchsorted(cuts, opinion)]
