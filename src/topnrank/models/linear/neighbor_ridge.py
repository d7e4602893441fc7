"""NeighborRidge: each item predicted from its nearest items."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np

from topnrank._csr import masked_indptr
from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.evaluation.held_out import FEWEST_USERS, JUDGED_BY, HeldOut
from topnrank.evaluation.splits import hold_out
from topnrank.kernels.jit import threads
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import VALUES
from topnrank.models.factor.prepare import like_sessions, recency_weights_by_time, recency_weights_in_order
from topnrank.models.linear.choice import SIZES, USUAL_PENALTY, USUAL_SIZE, choose_ridge
from topnrank.models.linear.likes import LikesModel
from topnrank.models.linear.neighbors import (
    RECENCY_WEIGHTS,
    CoOccurrences,
    LikedItems,
    NeighborTerm,
    Ridge,
    fit_neighbors,
    neighbor_arrays,
    neighbor_term,
)
from topnrank.models.parameters import (
    AUTO,
    NOT_NEGATIVE,
    POSITIVE,
    Choice,
    Range,
    Space,
    integer,
    param,
)
from topnrank.models.serving.explain import Contributions, OneHistory
from topnrank.models.serving.similar import alike


@final
@dataclass(eq=False, kw_only=True)
class NeighborRidge(LikesModel):
    """A ridge regression of each item on the T items nearest to it; a user's score is the sum over the items liked.

        W_i = (G[N, N] + lambda I)^-1 G[N, i],   score_ui = sum over liked j in N(i) of W_ji,   G = X' diag(n_u^-a) X

    EASE (Steck 2019) cut to T neighbors: no m x m matrix, one T x T system for each item, in parallel. Memory is that of
    the pairs of items that share a user, plus 8 m T bytes; time is the sum of squared list lengths plus m T^3.

    Use it for the whole catalog where EASE's matrix would be too large or too slow.
    Do not use it to rank rated items: it knows likes only.
    """

    neighbors: int | str = param(AUTO, integer().unless(AUTO))
    """T: items that may explain an item; "auto": 50, 100 or 200, chosen on rows held out inside `fit`."""
    regularization: float | str = param(AUTO, POSITIVE.unless(AUTO))
    """lambda, in users: that many keep the weights near 0; "auto": chosen on rows held out inside `fit`."""
    shrink: float = param(20.0, NOT_NEGATIVE)
    """Added to the denominator of the cosine by which neighbors are chosen, in users: rare pairs count less."""
    user_power: float = param(0.25, NOT_NEGATIVE)
    """a: a user with n likes counts n^-a."""
    longest: int = param(1000, integer())
    """Of a user with more likes only so many, drawn at random, count in the co-occurrences; the user's scores use all."""
    sessions: float | None = param(None, POSITIVE.unless(None))
    """Seconds without an event that end a session of a user: sessions then stand in the place of users wherever items are
    counted together, and the user's scores still use all likes. None: users do. Needs timestamps; for logs of visits."""
    recency: float | None = param(None, POSITIVE.unless(None))
    """After so many later items of the user a like counts half in the scores; None: always fully. Needs timestamps."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; rows above 0 are likes. None: ratings from 4 on, or the weights given, or every row."""
    num_threads: int = param(0, integer(0))
    """Threads; 0 for all cores. The bits do not depend on it."""

    name: ClassVar[str] = "neighbor-ridge"
    summary: ClassVar[str] = "linear: each item by ridge regression on its nearest items; EASE without the large matrix"
    own_space: ClassVar[Space] = {
        "neighbors": Choice((20, 50, 100, 200)),
        "regularization": Range(10.0, 1000.0, log=True),
    }

    def fit(self, data: Interactions) -> Self:
        """Solves all regressions; closed form. Settings left open are chosen on rows held out, then all rows are used."""
        self.check()
        weighted, info = self.weighted(data)
        assert weighted.weights is not None
        with threads(self.num_threads):
            ridge, chosen = self._choose(weighted)
            neighbors = fit_neighbors(self._likes(weighted), ridge).neighbors
        arrays = neighbor_arrays(neighbors, weighted.weights > 0)
        values = weighted.ratings if info.value == "ratings" else weighted.weights
        assert values is not None
        arrays[VALUES] = values.astype(np.float32)
        if self.recency is not None:
            arrays[RECENCY_WEIGHTS] = recency_weights_by_time(weighted, self.recency)
        self._fitted = Fitted.of(weighted, arrays, replace(info, chosen=chosen))
        return self

    def _likes(self, weighted: Interactions) -> LikedItems:
        """The rows with a weight above 0."""
        assert weighted.weights is not None
        liked = weighted.weights > 0
        likes = LikedItems(masked_indptr(weighted.indptr, liked), weighted.indices[liked], weighted.n_items)
        if self.recency is not None:
            likes = likes._replace(recency_weights=recency_weights_by_time(weighted, self.recency)[liked])
        return likes._replace(sessions=like_sessions(weighted, liked, self._ridge()))

    def _ridge(self) -> Ridge:
        """The settings of the regressions, with the usual ones in the place of "auto"."""
        neighbors = USUAL_SIZE if isinstance(self.neighbors, str) else self.neighbors
        penalty = USUAL_PENALTY if isinstance(self.regularization, str) else self.regularization
        return Ridge(neighbors, penalty, self.shrink, self.user_power, self.longest, self.sessions)

    def _choose(self, weighted: Interactions) -> tuple[Ridge, dict[str, float] | None]:
        """The settings of the regressions, and those that were chosen on rows held out, unless they are too few."""
        ridge, is_open = (
            self._ridge(),
            {name for name in ("neighbors", "regularization") if getattr(self, name) == AUTO},
        )
        split = hold_out(weighted) if is_open else None
        if split is None:
            return ridge, None
        train, rest = split
        assert rest.weights is not None
        held_out = HeldOut.of(train, rest, (rest.weights > 0).astype(np.float64), JUDGED_BY)
        if held_out.n_users < FEWEST_USERS:
            return ridge, None
        sizes = SIZES if "neighbors" in is_open else (ridge.neighbors,)
        together = CoOccurrences.of(self._likes(train), ridge, max(sizes))
        penalty = None if "regularization" in is_open else ridge.penalty
        best = choose_ridge(together, held_out, sizes=sizes, penalty=penalty)
        chosen = {"neighbors": best.neighbors, "regularization": best.penalty}
        ridge = replace(ridge, neighbors=best.neighbors, penalty=best.penalty)
        return ridge, {name: chosen[name] for name in sorted(is_open)}

    def score_block(self, users: IntArray) -> Float32Array:
        """Sums of the weights between all items and the items liked."""
        block = np.zeros((len(users), len(self.item_map)), np.float32)
        self._neighbor_scores().add_to(block, users)
        return block

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The same for pairs."""
        return self._neighbor_scores().of_pairs(
            np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64)
        )

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """For a user never seen: the same sum over the liked items of the history."""
        scores = np.zeros(len(self.item_map), np.float32)
        liked = self.history_weights(np.asarray(items, np.int64), values) > 0
        if not liked.any():
            raise self.refuse_history()
        self._neighbor_scores().add_history(scores, items[liked], self._strengths(items.size)[liked])
        return scores

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """What each liked item of a history gives to the scores of other items; exact."""
        liked = self.history_weights(np.asarray(history.items, np.int64), history.values) > 0
        rho = self._strengths(history.items.size) if history.recency_weights is None else history.recency_weights
        return Contributions({"neighbors": self._neighbor_scores().parts(history.items, targets) * (rho * liked)}, {})

    def item_similarity(self, items: Int64Array) -> Float32Array:
        """Of items with the same users, and the neighbor weights."""
        return alike(self.fitted, items, self._neighbor_scores().of_items(items))

    def _strengths(self, size: int) -> FloatArray:
        """rho of a history given from the oldest item to the latest."""
        return np.ones(size) if self.recency is None else recency_weights_in_order(size, self.recency)

    def _neighbor_scores(self) -> NeighborTerm:
        neighbor_scores = neighbor_term(self.fitted)
        assert neighbor_scores is not None
        return neighbor_scores
