"""What the models of order share: which rows make up the past, and scores as sums over it."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from topnrank._checks import is_number
from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.kernels.jit import threads
from topnrank.models.base import Fitted
from topnrank.models.factor.fitted import TIMES
from topnrank.models.linear.likes import LikesModel
from topnrank.models.parameters import AUTO, FRACTION, NOT_NEGATIVE, POSITIVE, Rule, integer, param
from topnrank.models.sequence.choice import HeldOutNext, choose_beside
from topnrank.models.sequence.counts import CHOICES, CountSettings, choose_counts
from topnrank.models.sequence.joined import PLACES, WEIGHTS, joined
from topnrank.models.sequence.links import PAST, LinkScores, link_arrays, link_scores
from topnrank.models.sequence.parts import Beside, Part, summed
from topnrank.models.sequence.sums import OrderSums
from topnrank.models.sequence.timeline import Pauses, Timeline, strengths
from topnrank.models.serving.explain import Contributions, OneHistory

NUMBER = Rule("a finite number", is_number)


@dataclass(eq=False, kw_only=True)
class OrderedModel(LikesModel):
    """Base of the models that learn which item follows which."""

    window: int = param(20, integer())
    """Directed counts: rows between two items at most."""
    distance_power: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """Directed counts: an item d rows later counts d^-p."""
    smoothing: float | str = param(AUTO, POSITIVE.unless(AUTO))
    """Directed counts: what every pair of items is given, in transitions to the next item; tau / n_items in PCTM."""
    popularity: float | str = param(AUTO, NUMBER.unless(AUTO))
    """Directed counts: the power of an item's number of rows in the scores; below 0 what is popular counts less."""
    head: int = param(7, integer())
    """Directed counts: so many last items of a history are its head."""
    head_share: float | str = param(AUTO, FRACTION.unless(AUTO))
    """Directed counts: what the head counts of the whole history; the older items share the rest evenly."""
    head_decay: float | str = param(AUTO, FRACTION.unless(AUTO))
    """Directed counts: of two neighboring items of the head the older counts so much of the later."""
    sessions: float | None = param(None, POSITIVE.unless(None))
    """Seconds without an event that end a session of a user; None: there are no sessions."""
    across_sessions: float = param(0.3, FRACTION)
    """What is left, behind the end of a session, of the links between the items before and after it; 0: nothing."""
    half_life: float | None = param(None, POSITIVE.unless(None))
    """Seconds of a pause that leave half of the links between the items before and after it, beside the decay by items;
    None: pauses take nothing by themselves."""
    undirected: float | str = param(0.0, NOT_NEGATIVE.unless(AUTO))
    """What the scores of `NeighborRidge` count beside: what belongs together in whatever order; 0: nothing."""
    recency: float | str = param(AUTO, POSITIVE.unless(AUTO))
    """Of these: after so many later items a past one counts half."""
    recent_popularity: float | str = param(0.0, NOT_NEGATIVE.unless(AUTO))
    """What the popularity of items of late counts beside, as a weight of its logarithm at spread 1; 0: nothing."""
    repeats: float = param(0.0, NOT_NEGATIVE)
    """What a past item counts as its own repetition: by its weight, such as the number of its events, and by how lately it
    was. For `recommend(exclude_seen=False)` where items are taken again."""
    dislikes: float = param(0.0, FRACTION)
    """What a row with a weight below 0 counts in the past, as a share of a like of its size. It is never the next item."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; rows above 0 are liked, and count by their weight in the past and as next items. None:
    ratings from 4 on, or the weights given, or every row. "unary": every row, whatever its rating."""
    num_threads: int = param(0, integer(0))
    """Threads; 0 for all cores. The bits do not depend on it."""

    def fit(self, data: Interactions) -> Self:
        """Chooses what is "auto" on held-out rows, and learns from all of them; closed form.

        Held out are last items; of rows that `split_time` left, and so where what comes in the weeks after is asked for, the
        latest fifth.
        """
        self.check()
        weighted, info = self.weighted(data)
        timeline = self.timeline(weighted)
        with threads(self.num_threads):
            explicit = self._chosen(timeline, weighted.split)
            arrays = explicit.arrays(weighted, timeline)
        chosen = {name: getattr(explicit, name) for name in self.open_settings()}
        info = replace(info, chosen={name: value for name, value in chosen.items() if value != AUTO})
        self._fitted = Fitted.of(weighted, arrays, info)
        return self

    def partial_fit(self, data: Interactions) -> Self:
        """Takes in new rows, of known and new users and items: learns anew from old and new ones by the settings it has.

        A user and item that come again count at their latest row. Nothing is chosen anew; for that, `fit` all rows.
        """
        whole = joined(self, data)
        settings = self.settings_
        explicit = replace(self, **settings)
        timeline = explicit.timeline(whole)
        with threads(self.num_threads):
            arrays = explicit.arrays(whole, timeline)
        info = replace(self.fitted.info, fingerprint=whole.fingerprint())
        self._fitted = Fitted.of(whole, arrays, info)
        return self

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """With what is chosen by `data` in the place of "auto"."""
        if not self.open_settings():
            return self
        with threads(self.num_threads):
            return self._chosen(self.timeline(self.weighted(data)[0]), data.split)

    def timeline(self, weighted: Interactions) -> Timeline:
        """The rows that count, in their order."""
        pauses = Pauses(self.sessions, float(self.across_sessions), self.half_life)
        return Timeline.of(weighted, float(self.dislikes), pauses, type(self).__name__)

    def whole(self, timeline: Timeline) -> Part:
        """The sum of all parts; nothing is "auto"."""
        return summed([self.learn(timeline), *self.beside.parts(timeline)])

    def arrays(self, weighted: Interactions, timeline: Timeline) -> dict[str, Any]:
        """What a fitted model keeps; nothing is "auto"."""
        learned = self.whole(timeline)
        return link_arrays(learned.links, learned.bias) | row_arrays(weighted, timeline, learned.past)

    def chosen_on(self, held_out: HeldOutNext | None) -> Self:
        """With what is "auto" chosen on the held-out items; None: there are none."""
        chosen = self.choose(held_out)
        is_open = {name for name in Beside.__dataclass_fields__ if getattr(self, name) == AUTO}
        given = Beside(**{name: getattr(self, name) for name in Beside.__dataclass_fields__ if name not in is_open})
        if held_out is not None and is_open & {"undirected", "recent_popularity"}:
            given = choose_beside(given, is_open, chosen.trial(held_out), held_out)
        return replace(chosen, **{name: getattr(given, name) for name in is_open})

    def open_settings(self) -> list[str]:
        """Parameters that are "auto"."""
        return [name for name, value in self.get_params().items() if isinstance(value, str) and value == AUTO]

    @property
    def settings_(self) -> dict[str, Any]:
        """What "auto" became, by the name of the hyper-parameter."""
        return dict(self.fitted.info.chosen or {})

    # -- for subclasses -----------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, timeline: Timeline) -> Part:
        """The directed part; nothing is "auto"."""

    @abstractmethod
    def choose(self, held_out: HeldOutNext | None) -> Self:
        """The model with what is "auto" in its directed part chosen on the held-out items; None: there are none."""

    @abstractmethod
    def learn_from(self, sums: OrderSums) -> Part:
        """`learn` by the sums over rows that are elsewhere, without a past; nothing is "auto"."""

    @abstractmethod
    def pasts(self, timeline: Timeline) -> FloatArray:
        """(n, S) what the rows count in the directed part; nothing is "auto"."""

    def trial(self, held_out: HeldOutNext) -> Part:
        """The directed part without the held-out items, for choosing what stands beside it; nothing in it is "auto"."""
        return self.learn(held_out.rest)

    @abstractmethod
    def kernel(self, size: int) -> FloatArray:
        """(size, S) what the rows of a history, oldest first, count in the directed part; nothing is "auto"."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """(S,) the kind of each scale of the directed part, as explanations call it; nothing is "auto"."""

    @property
    def all_kinds(self) -> tuple[str, ...]:
        """(S,) the same of all parts."""
        return self.kinds + self.beside.kinds

    def count_settings(self, held_out: HeldOutNext | None = None) -> CountSettings:
        """The settings of the directed counts, with what is "auto" chosen on the held-out items."""
        names = CountSettings.__dataclass_fields__
        return choose_counts({name: getattr(self, name) for name in names}, self._open_counts(), held_out)

    # -- scores -------------------------------------------------------------------------------------------------------

    def score_block(self, users: IntArray) -> Float32Array:
        """Sums of the links between all items and the user's past."""
        return self._scores().block(users)

    def score_pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """The same for pairs."""
        return self._scores().pairs(users, items)

    def score_history(self, items: IntArray, values: FloatArray | None) -> Float32Array:
        """For a user never seen, whose items are given from the oldest to the latest."""
        return self._scores().history(items, self._past_of(items, values))

    def contributions(self, history: OneHistory, targets: IntArray) -> Contributions:
        """What each row of a history gives to the scores of other items; exact."""
        past = history.past if history.past is not None else self._past_of(history.items, history.values)
        return self._explicit().parts_of(self._scores(), history.items, past, targets)

    def item_similarity(self, items: Int64Array) -> Float32Array:
        """What each item, had it been the last, says of `items`; items without a link are no candidates."""
        n_items = len(self.item_map)
        last = self._explicit()._kernels(np.ones(1))[-1]
        parts = self._scores().parts(np.arange(n_items), items) @ last
        return np.where(parts == 0, np.nan, parts).astype(np.float32)

    def _scores(self) -> LinkScores:
        return link_scores(self.fitted)

    def _explicit(self) -> Self:
        """The model with the settings it was fitted with."""
        return replace(self, **self.settings_)

    def _past_of(self, items: IntArray, values: FloatArray | None) -> FloatArray:
        """(n, S) what the rows of a history count."""
        past = strengths(self.history_weights(np.asarray(items, np.int64), values), self.dislikes)
        if not past.any():
            raise self.refuse_history()
        return self._explicit().past_of(past)

    # -- for the scores of other models, too; nothing is "auto" ---------------------------------------------------------

    def past_of(self, strengths: FloatArray) -> FloatArray:
        """(n, S) what the rows of a history, oldest first, count; those of strength 0 are no part of it."""
        counts = np.flatnonzero(strengths)
        kernels = self._kernels(strengths[counts])
        weights = np.zeros((len(strengths), kernels.shape[1]))
        weights[counts] = kernels
        return weights

    def parts_of(self, scores: LinkScores, items: IntArray, past: FloatArray, targets: IntArray) -> Contributions:
        """What each row of a history gives to the scores of the targets."""
        parts, kinds = scores.parts(items, targets) * past, np.array(self.all_kinds)
        by_kind = {str(kind): parts[:, :, kinds == kind].sum(axis=2) for kind in dict.fromkeys(kinds.tolist())}
        return Contributions(by_kind, {"bias": scores.bias[targets].astype(np.float64)})

    def _kernels(self, past: FloatArray) -> FloatArray:
        """(n, S) what rows of these weights count in all parts, from the oldest to the latest."""
        directed, others = self.kernel(past.size), self.beside.kernels(past)
        return np.concatenate([directed * past[:, None], *others], axis=1)

    @property
    def beside(self) -> Beside:
        """The further parts; nothing is "auto"."""
        names = Beside.__dataclass_fields__
        return Beside(**{name: float(getattr(self, name)) for name in names})

    def _open_counts(self) -> list[str]:
        return [name for name in self.open_settings() if name in CHOICES]

    def _chosen(self, timeline: Timeline, split: str | None) -> Self:
        return self.chosen_on(HeldOutNext.of(timeline, split)) if self.open_settings() else self


def row_arrays(weighted: Interactions, timeline: Timeline, past: FloatArray) -> dict[str, Any]:
    """What a fitted model keeps of its rows, of which those of the timeline count `past`."""
    assert weighted.timestamps is not None
    assert weighted.weights is not None
    every = np.zeros((len(weighted), past.shape[1]), np.float32)
    every[timeline.rows] = past
    kept: dict[str, Any] = {PAST: every, TIMES: weighted.timestamps, WEIGHTS: weighted.weights.astype(np.float32)}
    return kept if weighted.places is None else kept | {PLACES: weighted.places}


def decay_list(decays: Any) -> FloatArray:
    """Decays as an array; ParameterError unless they are numbers from 0 to 1, below 1 and all different."""
    numbers = list(decays) if isinstance(decays, list | tuple) else []
    if not numbers or not all(is_number(one) and 0 <= one < 1 for one in numbers) or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"decays must be a list of different numbers from 0 up to, not including, 1, such as [0, 0.8], got {decays!r}"
        )
    return np.array(numbers, np.float64)
