"""What every model is to its user: parameters, fit, recommend, score, explain, similar items and users, save."""

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Unpack, overload

import numpy as np
import pyarrow as pa

from topnrank._checks import one_of
from topnrank._typing import Float32Array, FloatArray, IdArray, Int32Array, Int64Array, IntArray
from topnrank.data.feedback.liked import LikedRule, remembered_rule
from topnrank.data.feedback.policies import Unary
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DivergenceError, NotFittedError, ParameterError, UnknownIdError
from topnrank.kernels.jit import threads_for
from topnrank.models.habits import takes_rows
from topnrank.models.parameter_docs import LongDoc
from topnrank.models.parameters import Space
from topnrank.models.serving.filters import RecommendOptions
from topnrank.scorers.neighbors import SCALE

T = TypeVar("T")

if TYPE_CHECKING:
    from topnrank.models.serving.explain import Contributions, OneHistory
    from topnrank.models.serving.export import ExportedFactors


@dataclass(frozen=True)
class FitInfo:
    """What a fitted model knows besides its arrays; saved with it as JSON."""

    rows: int = 0
    """Training rows"""
    fingerprint: str = ""
    """Of the training data"""
    task: Literal["rated", "catalog"] | None = None
    """What it was trained for; None for models without training"""
    value: Literal["ratings", "weights"] | None = None
    """What the number of a row of a history is"""
    feedback: dict[str, Any] | None = None
    """The feedback policy with what it took from the training rows, where other rows need that"""
    liked: LikedRule | None = None
    """Which ratings are liked; None where the training rows had no ratings"""
    residual_mean: float | None = None
    """Mean of the ratings' offsets, for histories that know how an item was rated"""
    rating_unit: float | None = None
    """What these residuals take for one star of five; None for 1"""
    type_weights: list[float] | None = None
    """Weights of the feedback types that have history vectors of their own"""
    penalties: list[float] | None = None
    """EASE: lambda of likes and of dislikes"""
    dislikes: bool = False
    """EASE: whether dislikes are predictors"""
    chosen: dict[str, Any] | None = None
    """Settings that were chosen on held-out rows: what "auto" became, by name"""
    following: dict[str, Any] | None = None
    """TopNRank: the settings of the scores of what comes next"""
    half_life_days: float | str | None = None
    """RecentPopularity: after how many days a row counts half, or "never" """
    history: list[dict[str, float]] = field(default_factory=list)
    """One record per round of training"""
    rounds: int | None = None
    best_round: int | None = None
    validation: dict[str, float] | None = None
    """The validation metric of the round that is kept"""
    events: dict[str, int] | None = None
    """By the identity of an event store, the last event that was trained on (`topnrank refresh`)"""

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from their defaults, for a file."""
        facts = {name: value for name, value in vars(self).items() if value != getattr(_NO_INFO, name)}
        return facts if self.liked is None else {**facts, "liked": dataclasses.asdict(self.liked)}


_NO_INFO = FitInfo()


def rows_belong_to(name: str) -> Literal["user", "item", "seen", "link", "network", "scalar"]:
    """What the rows of a fitted array are, by its name: users, items, training rows (`seen_`), links, something inside a
    network, or a single number."""
    if name == SCALE:
        return "scalar"
    first = name.partition("_")[0]
    return first if first in ("user", "seen", "link", "network") else "item"  # type: ignore[return-value]


@dataclass(frozen=True)
class Fitted:
    """What a model holds after `fit`: enough to stand alone, without the training data."""

    users: IdMap
    items: IdMap
    indptr: Int64Array
    """(n_users + 1,) CSR of the items each user was trained on"""
    indices: Int32Array
    arrays: dict[str, FloatArray]
    """Fitted arrays by name; `rows_belong_to` says what a row is"""
    info: FitInfo = field(default_factory=FitInfo)
    _cache: dict[type, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, data: Interactions, arrays: dict[str, FloatArray], info: FitInfo, *made: object) -> "Fitted":
        """The fitted state of a model trained on `data`, whose (user, item) pairs are unique; all numbers are finite.

        `made` are objects that `cached` need not make.
        """
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise DivergenceError(
                    f"training gave numbers in {name} that are not finite; take less extreme parameters or data"
                )
        if {"user_factors", "item_factors"} <= arrays.keys() and len(arrays["user_factors"]):
            users, items = arrays["user_factors"], arrays["item_factors"]
            largest = users.shape[1] * float(np.abs(users).max()) * float(np.abs(items).max())
            if largest > np.finfo(np.float32).max:
                raise DivergenceError(
                    "training gave vectors so long that their scores are not finite; take less extreme parameters or data"
                )
        info = replace(info, rows=len(data), liked=info.liked or remembered_rule(Unary(), data.rating_counts))
        cache = {type(one): one for one in made}
        return cls(data.users, data.items, data.indptr, data.indices, arrays, info, cache)

    def cached(self, kind: type[T], make: Callable[[], T]) -> T:
        """The one object of this kind that is made from the fitted state when first needed, and never saved."""
        if kind not in self._cache:
            self._cache[kind] = make()
        made: T = self._cache[kind]
        return made


class Model(ABC):
    """Base of all models. Subclasses are dataclasses whose fields are the hyper-parameters.

    scikit-learn's conventions hold: the constructor only stores and checks parameters, `fit` returns the model, what it
    learns ends in an underscore, `get_params`, `set_params` and `sklearn.base.clone` work, and so do `Pipeline` and
    `GridSearchCV` with frames as X, no y, and `topnrank.UserFolds` as cv. There is no `predict` and no `transform`: a model
    has lists (`recommend`) and scores of pairs (`score`). Weights of rows are part of the data, not a `sample_weight`.
    """

    name: ClassVar[str]
    """Name on the command line and in tables"""
    summary: ClassVar[str]
    """One line for `topnrank models`"""

    own_space: ClassVar[Space] = {}
    """Values worth trying of the model's own hyper-parameters, or instead of the shared ones"""

    _fitted: Fitted | None = None

    @abstractmethod
    def fit(self, data: Interactions) -> Self:
        """Learns from `data`; returns the model."""

    @abstractmethod
    def score_block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) scores of all items for users given by number."""

    @abstractmethod
    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """(len(users),) scores of pairs given by number."""

    @abstractmethod
    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """(n_items,) scores for a user never seen, with these items (by number) and their ratings or weights."""

    def score_histories(self, indptr: IntArray, items: IntArray, values: FloatArray | None) -> Float32Array:
        """(n, n_items) scores for n users never seen, whose histories are a CSR: one by one, unless a model knows better."""
        ends = [slice(first, last) for first, last in pairwise(indptr.tolist())]
        rows = [self.score_history(items[own], None if values is None else values[own]) for own in ends]
        return np.stack(rows).astype(np.float32, copy=False)

    def contributions(self, history: "OneHistory", targets: IntArray) -> "Contributions":
        """What each item of a history gives to the scores of the items `targets`."""
        raise ParameterError(
            f"explain: {type(self).__name__} does not build scores from the items of a history; factor models with "
            "user_representation='history' do, such as TopNRank"
        )

    def item_similarity(self, items: Int64Array) -> Float32Array | None:
        """(n, n_items) how much all items speak for `items`; None where the cosine of item vectors says it."""
        return None

    def check(self) -> None:
        """Holds every field that has a rule against it; ParameterError names the first that breaks its rule."""
        for one in dataclasses.fields(self):  # type: ignore[arg-type]
            rule, value = one.metadata.get("rule"), getattr(self, one.name)
            if rule is None or any(value is other or (type(value) is str and value == other) for other in rule.also):
                continue
            if rule.holds(value):
                continue
            if rule.words:
                one_of(one.name, value, rule.words)
            raise ParameterError(f"{type(self).__name__}.{one.name} must be {rule.sentence}, got {value!r}")

    def __post_init__(self) -> None:
        self.check()

    def __init_subclass__(cls, **options: Any) -> None:
        """A short repr instead of one of all fields, hyper-parameters in `help()`, frames for `fit`."""
        super().__init_subclass__(**options)
        own = vars(cls)
        if "__repr__" not in own:
            cls.__repr__ = Model.__repr__  # type: ignore[method-assign]
        if own.get("__doc__"):
            setattr(cls, "__doc__", LongDoc(own["__doc__"]))  # noqa: B010 (mypy takes __doc__ for text)
        for method in ("fit", "partial_fit"):
            if method in own:
                setattr(cls, method, takes_rows(own[method]))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.changed_params().items())})"
        )

    def _repr_html_(self) -> str:
        from topnrank.models.presentation import html_of_model

        return html_of_model(self)

    @classmethod
    def search_space(cls) -> Space:
        """Values worth trying when the model is tuned, by the name of the hyper-parameter; empty where nothing is."""
        return cls.own_space

    def space(self) -> Space:
        """The search space of this very model: that of its class, unless it depends on the task."""
        return self.search_space()

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """The model with what it would choose by `data` spelled out, so that each value can be changed on its own."""
        return self

    # -- parameters ---------------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Hyper-parameters by name; `deep` is scikit-learn's and changes nothing here."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def changed_params(self) -> dict[str, Any]:
        """The hyper-parameters that differ from the defaults."""
        defaults = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        params = self.get_params()
        return {n: value for n, value in params.items() if type(value) is not type(defaults[n]) or value != defaults[n]}

    def set_params(self, **params: Any) -> Self:
        """Changes hyper-parameters; a fitted model stays fitted with the old ones until `fit`."""
        known = self.get_params()
        for name in params:
            if name not in known:
                names = ", ".join(known) or "none"
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; its parameters: {names}")
        type(self)(**(known | params))  # checks all of them before anything changes
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """For scikit-learn: neither a classifier nor a regressor, and no y is needed."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        """For scikit-learn."""
        return self._fitted is not None

    # -- what was learned ----------------------------------------------------------------------------------------------

    @property
    def fitted(self) -> Fitted:
        """The fitted state; NotFittedError before `fit`."""
        if self._fitted is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(data) first")
        return self._fitted

    @property
    def user_map(self) -> IdMap:
        """Original user ids and their numbers."""
        return self.fitted.users

    @property
    def item_map(self) -> IdMap:
        """Original item ids and their numbers."""
        return self.fitted.items

    @property
    def user_ids_(self) -> IdArray:
        """(n_users,) original user ids; row k of `user_factors_` belongs to id k."""
        return self.fitted.users.ids

    @property
    def item_ids_(self) -> IdArray:
        """(n_items,) original item ids; row k of `item_factors_` belongs to id k."""
        return self.fitted.items.ids

    @property
    def seen_indptr(self) -> Int64Array:
        """With `seen_indices`: CSR of the items each user was trained on."""
        return self.fitted.indptr

    @property
    def seen_indices(self) -> Int32Array:
        """See `seen_indptr`."""
        return self.fitted.indices

    @property
    def task_(self) -> Literal["rated", "catalog"]:
        """What the model was fitted for: "rated" (a user's rated items) or "catalog" (all items)."""
        return self.fitted.info.task or "catalog"

    @property
    def liked_rule_(self) -> LikedRule | None:
        """Which ratings count as liked, by the training rows or as they were given; None where there were no ratings."""
        return self.fitted.info.liked

    def weigh(self, data: Interactions) -> Interactions:
        """Other rows, weighted as the training rows were; what has no feedback types stays as it is."""
        return data

    # -- use ----------------------------------------------------------------------------------------------------------

    def partial_fit(self, data: Interactions) -> Self:
        """Takes in new rows without training anew, in models that can; `data` is what `fit` takes."""
        raise ParameterError(
            f"{type(self).__name__} cannot take in new rows; fit it again on all rows, or use a model trained in rounds, "
            "such as TopNRank"
        )

    @overload
    def score(self, users: Any, items: None = None) -> float: ...

    @overload
    def score(self, users: Any, items: Any) -> Float32Array: ...

    def score(self, users: Any, items: Any = None) -> Any:
        """Scores of pairs of original ids, comparable within a user; one user or item may be paired with many.

        With held-out rows alone, `score(test)`: their NDCG@10 in the task of the model, as scikit-learn's searches want it.
        """
        if items is None:
            from topnrank.evaluation import evaluate

            return evaluate(self, self.weigh(as_interactions(users, "score")), metrics="ndcg@10")["ndcg@10"]
        pairs = self.pair_numbers("score", users, items)
        with threads_for(len(pairs[0])):
            return self.score_pairs(*pairs)

    def recommend(
        self, users: Any = None, *, n: int = 10, history: Any = None, **options: Unpack[RecommendOptions]
    ) -> pa.Table:
        """The n best items for some users (ids), for all users (None), or for users never seen.

        Parameters
        ----------
        users : one id, or a list or array of ids; None for all users the model knows.
        history : instead of users: items, (item, rating) pairs or a dict of ratings.
        histories : instead of users: a mapping {name: history}, or `Interactions` of new users.
        unknown_items : items of a history that the model does not know: "error" (default), or "skip" them; a history of
            nothing else is an error.
        exclude_seen : leave out the items the user was trained on (default True), or those of the history.
        items : only these items are allowed; a mapping {user: items} for some users only.
        exclude : these items are never recommended; a mapping {user: items} for some users only.
        min_score : items with a lower score are left out.
        groups, max_per_group : at most so many items of a group in each list, taken from the best down; {item: group} or a
            frame with the columns item and group. Items without a group are not counted.
        unknown : what to do with users the model does not know: "error" (default), "skip" them, or "popular": give the
            items with most training rows, whose number is the score. The last two hold for known users without a row, too.

        Returns
        -------
        Arrow table with the columns user, item, score, rank (1 = best), without `user` for a history; users in the order
        asked for. `.to_pandas()` or `polars.from_arrow` turn it into a frame. Fewer than n rows for a user with fewer
        candidates.
        """
        from topnrank.models.serving.recommend import recommend_table

        return recommend_table(self, users, history, n, options)

    def recommend_to(
        self, path: str | os.PathLike[str], users: Any = None, *, n: int = 10, **options: Unpack[RecommendOptions]
    ) -> int:
        """As `recommend`, streamed to a file in bounded memory; returns the number of rows written.

        The name ends in .parquet, .csv or .jsonl, which gives the format.
        """
        from topnrank.models.serving.recommend import write_lists

        return write_lists(self, path, users, n, options)

    def explain(self, user: Any = None, item: Any = None, *, history: Any = None) -> pa.Table:
        """Which items of a user's history, or of a `history` never seen, pulled an item up or down, and by how much.

        One user and one item, or pairs of them as `score` takes them. The parts of a pair add up to its score.

        Returns
        -------
        Arrow table with the columns user, item, what ("history", "bias", ...), because (the item of the history; null for
        a bias) and part, the largest parts first, without `user` for a history.
        """
        from topnrank.models.serving.explain import explain_history, explain_users

        if history is None:
            return explain_users(self, user, item)
        if user is not None:
            raise ParameterError("explain: give a user or a history, not both")
        return explain_history(self, history, item)

    def similar_items(self, item: Any, *, n: int = 10) -> pa.Table:
        """The n items whose vectors point most nearly the same way (cosine): a table item, score, rank. Of models with
        neighbors: the cosine and the neighbor weights, each as a share of its largest value, added up. Of linear models: the
        items whose likes speak most for `item`.

        A list of items gives their lists in one table, with the item asked for in a first column `of`.
        """
        from topnrank.models.serving.similar import similar

        return similar(self, "item", item, n)

    def similar_users(self, user: Any, *, n: int = 10) -> pa.Table:
        """The n users whose vectors point most nearly the same way: as `similar_items`, with a column user."""
        from topnrank.models.serving.similar import similar

        return similar(self, "user", user, n)

    def export_factors(self, path: str | os.PathLike[str] | None = None) -> "ExportedFactors":
        """Vectors whose inner products are the scores, for an index such as faiss or hnswlib; `path` also writes a .npz."""
        from topnrank.models.serving.export import export_factors

        return export_factors(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one safetensors file that stands alone, atomically; `topnrank.load` reads it."""
        from topnrank.models.persistence import save

        save(self, path)

    def pair_numbers(self, method: str, users: Any, items: Any) -> tuple[Int64Array, Int64Array]:
        """Numbers of pairs of ids, equally many, or one of one kind with each of the other."""
        user_numbers, item_numbers = self.user_numbers(users), self.item_numbers(items)
        if user_numbers.size != item_numbers.size and 1 not in (user_numbers.size, item_numbers.size):
            raise ParameterError(
                f"{method}: {user_numbers.size} users and {item_numbers.size} items make no pairs; give equally many, or one"
            )
        user_numbers, item_numbers = np.broadcast_arrays(user_numbers, item_numbers)
        return user_numbers, item_numbers

    def user_numbers(self, ids: Any) -> Int64Array:
        """Numbers of user ids; UnknownIdError names those the model does not know."""
        return numbers_of(self.fitted.users, ids, "user")

    def item_numbers(self, ids: Any) -> Int64Array:
        """Numbers of item ids; UnknownIdError names those the model does not know."""
        return numbers_of(self.fitted.items, ids, "item")


def numbers_of(known: IdMap, ids: Any, what: str) -> Int64Array:
    """Numbers of the ids of users or items; UnknownIdError names those that are not `known`."""
    numbers = known.index(ids)
    if (numbers < 0).any():
        wanted = np.atleast_1d(np.asarray(ids, dtype=object))
        missing = [repr(value) for value in wanted[numbers < 0][:5]]
        more = f" and {int((numbers < 0).sum()) - 5} more" if (numbers < 0).sum() > 5 else ""
        raise UnknownIdError(
            f"the model does not know {what} {', '.join(missing)}{more}; it was trained on {len(known)} {what}s, "
            f"for example {known.ids.item(0)!r}"
        )
    return numbers
