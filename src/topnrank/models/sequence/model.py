"""What the models of order share: which rows make up the past, and scores as sums over it."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from topnrank._checks import is_number
from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.data.feedback.policies import Feedback
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.kernels.jit import threads
from topnrank.models.base import Fitted
from topnrank.models.linear.likes import LikesModel
from topnrank.models.parameters import AUTO, FRACTION, NOT_NEGATIVE, POSITIVE, Rule, integer, param
from topnrank.models.sequence._sequence_kernel import Links
from topnrank.models.sequence.choice import HeldOutLast
from topnrank.models.sequence.counts import CHOICES, CountSettings, choose_counts
from topnrank.models.sequence.links import LinkScores, link_arrays, link_scores
from topnrank.models.sequence.timeline import Sessions, Timeline, strengths
from topnrank.models.serving.explain import Contributions, OneHistory

NUMBER = Rule("a finite number", is_number)


class Learned(NamedTuple):
    """What scores are made of."""

    links: Links
    bias: FloatArray
    """(n_items,)"""
    past: FloatArray
    """(n, S) what the rows of the timeline count"""


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
    dislikes: float = param(0.0, FRACTION)
    """What a row with a weight below 0 counts in the past, as a share of a like of its size. It is never the next item."""
    feedback: Feedback | str | None = None
    """How a row becomes a weight; rows above 0 are liked, and count by their weight in the past and as next items. None:
    ratings from 4 on, or the weights given, or every row. "unary": every row, whatever its rating."""
    num_threads: int = param(0, integer(0))
    """Threads; 0 for all cores. The bits do not depend on it."""

    def fit(self, data: Interactions) -> Self:
        """Chooses what is "auto" on held-out last items, and learns from all rows; closed form."""
        self.check()
        weighted, info = self.weighted(data)
        timeline = self._timeline(weighted)
        with threads(self.num_threads):
            explicit = self._chosen(timeline)
            learned = explicit.learn(timeline)
        past = np.zeros((len(weighted), learned.past.shape[1]), np.float32)
        past[timeline.rows] = learned.past
        chosen = {name: getattr(explicit, name) for name in self._open()}
        info = replace(info, chosen={name: value for name, value in chosen.items() if value != AUTO})
        self._fitted = Fitted.of(weighted, link_arrays(learned.links, learned.bias, past), info)
        return self

    def with_explicit_defaults(self, data: Interactions) -> Self:
        """With what is chosen by `data` in the place of "auto"."""
        if not self._open():
            return self
        with threads(self.num_threads):
            return self._chosen(self._timeline(self.weighted(data)[0]))

    @property
    def settings_(self) -> dict[str, Any]:
        """What "auto" became, by the name of the hyper-parameter."""
        return dict(self.fitted.info.chosen or {})

    # -- for subclasses -----------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, timeline: Timeline) -> Learned:
        """Links, bias and past; nothing is "auto"."""

    @abstractmethod
    def choose(self, held_out: HeldOutLast | None) -> Self:
        """The model with what is "auto" chosen on the held-out last items; None: there are no users to hold out."""

    @abstractmethod
    def kernel(self, size: int) -> FloatArray:
        """(size, S) what the rows of a history count, from the oldest to the latest; nothing is "auto"."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """(S,) the kind of each scale, as explanations call it; nothing is "auto"."""

    def count_settings(self, held_out: HeldOutLast | None = None) -> CountSettings:
        """The settings of the directed counts, with what is "auto" chosen on the held-out last items."""
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
        parts = self._scores().parts(history.items, targets) * past
        kinds = np.array(self._explicit().kinds)
        by_kind = {str(kind): parts[:, :, kinds == kind].sum(axis=2) for kind in dict.fromkeys(kinds.tolist())}
        return Contributions(by_kind, {"bias": self._scores().bias[targets].astype(np.float64)})

    def item_similarity(self, items: Int64Array) -> Float32Array:
        """What each item, had it been the last, says of `items`; items without a link are no candidates."""
        n_items = len(self.item_map)
        last = self._explicit().kernel(1)[-1]
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
        counts = np.flatnonzero(past)
        if not counts.size:
            raise self.refuse_history()
        kernel = self._explicit().kernel(counts.size)
        weights = np.zeros((len(past), kernel.shape[1]))
        weights[counts] = kernel * past[counts, None]
        return weights

    def _timeline(self, weighted: Interactions) -> Timeline:
        sessions = Sessions(self.sessions, float(self.across_sessions))
        return Timeline.of(weighted, float(self.dislikes), sessions, type(self).__name__)

    def _open(self) -> list[str]:
        """Parameters that are "auto"."""
        return [name for name, value in self.get_params().items() if isinstance(value, str) and value == AUTO]

    def _open_counts(self) -> list[str]:
        return [name for name in self._open() if name in CHOICES]

    def _chosen(self, timeline: Timeline) -> Self:
        if not self._open():
            return self
        return self.choose(HeldOutLast.of(timeline))


def decay_list(decays: Any) -> FloatArray:
    """Decays as an array; ParameterError unless they are numbers from 0 to 1, below 1 and all different."""
    numbers = list(decays) if isinstance(decays, list | tuple) else []
    if not numbers or not all(is_number(one) and 0 <= one < 1 for one in numbers) or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"decays must be a list of different numbers from 0 up to, not including, 1, such as [0, 0.8], got {decays!r}"
        )
    return np.array(numbers, np.float64)
