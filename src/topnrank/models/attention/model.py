"""SequenceRank: attention and counts in one score for the next item."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from topnrank._torch import DEVICES
from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.kernels.jit import threads
from topnrank.kernels.top_items import pair_scores, scores_of
from topnrank.models.attention.forward import last_state
from topnrank.models.attention.shape import Shape
from topnrank.models.linear.likes import LikesModel
from topnrank.models.parameters import (
    AUTO,
    FLAG,
    FRACTION,
    NOT_NEGATIVE,
    POSITIVE,
    Choice,
    Range,
    Space,
    integer,
    one_word,
    param,
)
from topnrank.models.sequence.links import PAST, LinkScores, link_scores
from topnrank.models.sequence.model import NUMBER, OrderedModel
from topnrank.models.sequence.next_item_ridge import NextItemRidge
from topnrank.models.sequence.timeline import strengths
from topnrank.models.sequence.transitions import Transitions
from topnrank.models.serving.explain import Contributions, OneHistory
from topnrank.training import Callback

STATES, TERM_WEIGHTS = "user_states", "network_term_weights"
LOSSES = ("softmax", "listwise", "sl@k")
TERMS = ("ridge", "counts", "none")


@final
@dataclass(eq=False, kw_only=True)
class SequenceRank(LikesModel):
    """A causal transformer over a user's ordered history, and the models of order in closed form beside it, in one score.

        f_i = <h, q_i> + b_i + sum_k beta_k z_ki

    h is the state of the transformer after the last row (`models/attention/network.py`), q_i the vector by which it also
    reads item i; z are the scores of `NextItemRidge` or `Transitions`, fixed; beta is chosen on last items that neither of
    the two has seen, or with `joint` learned with the vectors, from z that did not see the user. Items a user had are no
    candidates of a later row. Users need no vectors of their own: new ones are served by their history. Needs timestamps,
    and PyTorch for `fit` alone.

    Use it for the next item where histories are long or many and a GPU is there. Do not use it for ratings, or where the
    order says nothing; `NextItemRidge` needs seconds of a CPU and is often near.
    """

    width: int = param(128, integer())
    """d: length of the vectors; 256 for data as MovieLens 20M."""
    blocks: int = param(2, integer())
    """Layers of attention; more where data are dense."""
    heads: int = param(1, integer())
    """Each layer looks at the past in so many ways, with d / heads numbers each."""
    length: int | str = param(AUTO, integer().unless(AUTO))
    """Rows of the history that are read at most; "auto": 200, or what 95 of 100 users do not exceed, at least
    20."""
    dropout: float | str = param(AUTO, FRACTION.unless(AUTO))
    """Share of the numbers inside that are left out in training; "auto": 0.2 where users have 50 rows or more on
    average, else 0.5."""
    time_gaps: bool = param(False, FLAG)
    """Whether attention knows the seconds between two rows of the past; the moment of asking is never known."""
    terms: str = param("ridge", one_word(*TERMS))
    """z: "ridge" (`NextItemRidge` with counts), "counts" (`Transitions`), or "none": attention alone."""
    term_settings: Mapping[str, Any] | None = None
    """Settings of these models by name, such as {"neighbors": 100}; those not given are chosen."""
    term_weight: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """What z counts beside attention, in standard deviations of z; "auto": chosen on held-out last items. Not with
    `joint`."""
    joint: bool = param(False, FLAG)
    """Whether z is a part of the scores in training already, each of its terms with a weight that is learned there."""
    loss: str = param("softmax", one_word(*LOSSES))
    """Of the next item among all: "softmax", "listwise" (Top-N-Rank's) or "sl@k"."""
    discount: float = param(-1.0, NUMBER)
    """The list-wise loss: the power of the logarithm in the slope 1 / ((R + 2) ln^p(R + 2)); 2 is DCG."""
    negatives: int | str = param(AUTO, integer().unless(AUTO, "all"))
    """Candidates sampled for a block of windows; "all" items, or "auto": all up to 200,000, else 4,000."""
    learning_rate: float = param(1e-3, POSITIVE)
    """Step size of Adam."""
    weight_decay: float = param(0.01, NOT_NEGATIVE)
    """How fast vectors and matrices fade, as a share of the step size."""
    batch_size: int = param(128, integer())
    """Windows in a step."""
    epochs: int | str = param(AUTO, integer().unless(AUTO))
    """Passes over all windows; "auto": by the last items of some users, held out and then put back for a training anew."""
    max_epochs: int = param(200, integer())
    """Of "auto": passes at most."""
    patience: int = param(10, integer())
    """Of "auto": passes without a better value before the end."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; rows above 0 are the history, and count by their weight. None: ratings from 4 on, or the
    weights given, or every row. "unary": every row, whatever its rating."""
    seed: int = param(0, integer(0))
    """Start values, batches and dropout; on one device the same seed gives the same bits."""
    device: str = param(AUTO, one_word(*DEVICES))
    """Where PyTorch trains: "cuda", "mps", "cpu", or the first of these that there is."""
    num_threads: int = param(0, integer(0))
    """Threads; 0 for all cores."""

    name: ClassVar[str] = "sequence-rank"
    summary: ClassVar[str] = (
        "order: a transformer over the history with counts and ridge beside it; trained with PyTorch"
    )

    @classmethod
    def search_space(cls) -> Space:
        """Width first, dropout second, depth third."""
        return {
            "width": Choice((64, 128, 256)),
            "dropout": Range(0.1, 0.6),
            "blocks": Choice((1, 2, 3)),
            "learning_rate": Range(3e-4, 3e-3, log=True),
        }

    def check(self) -> None:
        """Every field keeps its rule, and the heads share the width."""
        super().check()
        if self.width % self.heads:
            raise ParameterError(
                f"SequenceRank.width must be a multiple of heads, got width={self.width} and heads={self.heads}"
            )
        if self.joint and self.term_weight != AUTO:
            raise ParameterError("SequenceRank: joint=True learns the weights of the terms; leave term_weight out")
        if self.term_settings is not None:
            kind = Transitions if self.terms == "counts" else NextItemRidge
            unknown = sorted(set(self.term_settings) - set(kind.__dataclass_fields__))
            if unknown:
                raise ParameterError(f"SequenceRank.term_settings: {kind.__name__} has no parameter {unknown[0]!r}")
            kind(**self.term_settings)

    def fit(
        self,
        data: Interactions,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Trains; with epochs="auto" twice, first to see when to stop, then on all rows.

        Parameters
        ----------
        checkpoint : a folder. A run that was killed resumes from it when the same call is made again, and ends with the
            same bits on the same device.
        progress : show a progress bar on the terminal.
        callbacks : further watchers of both trainings (`topnrank.training.Callback`).
        """
        from topnrank.models.attention.run import fit_sequence

        self.check()
        with threads(self.num_threads):
            self._fitted = fit_sequence(self, data, checkpoint, progress, callbacks)
        return self

    # -- scores -------------------------------------------------------------------------------------------------------

    def score_block(self, users: IntArray) -> Float32Array:
        """<h, q_i> + b_i + z."""
        scores = scores_of(self._array(STATES)[users], self._array("item_vectors"), self._array("item_bias"))
        return self._with_terms(scores, lambda terms: terms.block(users))

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The same for pairs."""
        users, items = np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64)
        scores = np.empty(len(users), np.float32)
        vectors = np.ascontiguousarray(self._array(STATES)), np.ascontiguousarray(self._array("item_vectors"))
        pair_scores(*vectors, self._array("item_bias"), users, items, scores)
        return self._with_terms(scores, lambda terms: terms.pairs(users, items))

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """For a user never seen, whose items are given from the oldest to the latest; without PyTorch."""
        items, past = self._liked(items, values)
        h = last_state(self.fitted.arrays, self.shape_, items)
        scores = scores_of(h[None], self._array("item_vectors"), self._array("item_bias"))[0]
        return self._with_terms(scores, lambda terms: terms.history(items, self.past_of(past)))

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """The parts of the closed-form terms by the rows of the history, exact; attention as one part of its own."""
        if not self._has_terms:
            return super().contributions(history, targets)
        vectors, bias = self._array("item_vectors")[targets], self._array("item_bias")[targets].astype(np.float64)
        if history.user is not None:
            h, items, past = self._array(STATES)[history.user], history.items, history.past
        else:
            items, weights = self._liked(history.items, history.values)
            h, past = last_state(self.fitted.arrays, self.shape_, items), self.past_of(weights)
        model, terms = self._order(), self._terms()
        assert past is not None
        parts = model.parts_of(terms, items, past, targets)
        rest = {"attention": (vectors @ h).astype(np.float64), "bias": bias + parts.rest["bias"]}
        whole = {kind: np.zeros((len(targets), history.items.size)) for kind in parts.parts}
        places = np.flatnonzero(np.isin(history.items, items)) if items.size < history.items.size else slice(None)
        for kind, block in parts.parts.items():
            whole[kind][:, places] = block
        return Contributions(whole, rest)

    def item_similarity(self, items: Int64Array) -> Float32Array:
        """The cosine of the items' vectors."""
        vectors = self._array("item_vectors")
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(unit[items] @ unit.T, np.float32)

    @property
    def settings_(self) -> dict[str, Any]:
        """What "auto" became, by the name of the hyper-parameter."""
        return dict(self.fitted.info.chosen or {})

    @property
    def term_weights_(self) -> dict[str, float]:
        """beta, by the kind of the term: what its own score counts in the sum."""
        if not self._has_terms:
            return {}
        kinds = dict.fromkeys(self._order().all_kinds)
        return dict(zip(kinds, self.fitted.arrays[TERM_WEIGHTS].tolist(), strict=True))

    @property
    def shape_(self) -> Shape:
        """The sizes of the fitted network."""
        return self.shape_of(self.fitted.arrays)

    def shape_of(self, arrays: Mapping[str, FloatArray]) -> Shape:
        """The sizes of a network with these arrays."""
        length, width = arrays["network_positions"].shape
        terms = arrays[TERM_WEIGHTS].size if TERM_WEIGHTS in arrays else 0
        return Shape(width, len(arrays["network_qkv"]), self.heads, length, "network_gaps" in arrays, terms)

    def order_model(self, settings: Mapping[str, Any]) -> OrderedModel:
        """The closed-form model with these settings, not fitted."""
        shared = {"feedback": "weights", "num_threads": self.num_threads, **(self.term_settings or {}), **settings}
        return Transitions(**shared) if self.terms == "counts" else NextItemRidge(**shared)

    def past_of(self, weights: FloatArray) -> FloatArray:
        """(n, S) what the rows of a history, oldest first, count in the terms."""
        model = self._order()
        kinds = list(dict.fromkeys(model.all_kinds))
        learned = self.fitted.arrays[TERM_WEIGHTS][[kinds.index(kind) for kind in model.all_kinds]]
        return np.asarray(model.past_of(weights) * learned)

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _has_terms(self) -> bool:
        return PAST in self.fitted.arrays

    def _order(self) -> OrderedModel:
        return self.fitted.cached(_Order, lambda: _Order(self.order_model(self.fitted.info.following or {}))).model

    def _terms(self) -> LinkScores:
        return link_scores(self.fitted)

    def _with_terms(self, scores: Float32Array, of: Any) -> Float32Array:
        return np.asarray(scores + of(self._terms()), np.float32) if self._has_terms else scores

    def _array(self, name: str) -> Float32Array:
        return np.asarray(self.fitted.arrays[name], np.float32)

    def _liked(self, items: IntArray, values: FloatArray | None) -> tuple[Int64Array, Float32Array]:
        """The rows of a history that count, and their weights."""
        items = np.asarray(items, np.int64)
        weights = strengths(self.history_weights(items, values), 0.0)
        if not weights.any():
            raise self.refuse_history()
        return np.asarray(items[weights > 0], np.int64), weights[weights > 0]


@dataclass(frozen=True)
class _Order:
    """The closed-form model of a fitted one, not fitted itself."""

    model: OrderedModel


def explicit(model: SequenceRank, sizes: IntArray) -> SequenceRank:
    """With what "auto" means for histories of these sizes, but for the epochs."""
    sizes = sizes[sizes > 0]
    chosen: dict[str, Any] = {}
    if model.length == AUTO:
        chosen["length"] = int(np.clip(np.quantile(sizes, 0.95), 20, 200))
    if model.dropout == AUTO:
        chosen["dropout"] = 0.2 if sizes.mean() >= 50 else 0.5
    return replace(model, **chosen)
