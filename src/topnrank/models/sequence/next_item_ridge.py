"""NextItemRidge: the next item regressed on the decayed past, and directed counts beside it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from topnrank._typing import FloatArray
from topnrank.models.parameters import AUTO, NOT_NEGATIVE, POSITIVE, Choice, Range, Space, by, integer, param
from topnrank.models.sequence._sequence_kernel import Links
from topnrank.models.sequence.choice import HeldOutNext
from topnrank.models.sequence.counts import CountSettings, count
from topnrank.models.sequence.model import OrderedModel, decay_list
from topnrank.models.sequence.parts import Part, summed
from topnrank.models.sequence.ridge import AllFeatures, NextItemSystem, ridge_past
from topnrank.models.sequence.sums import OrderSums
from topnrank.models.sequence.timeline import Timeline, Totals, decayed

DECAYS: tuple[list[float], ...] = ([0.0, 0.8, 0.97], [0.6, 0.95])
PENALTIES, MIDDLE = (30.0, 100.0, 300.0, 1000.0, 3000.0), 2
COUNT_WEIGHTS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)
"""What "auto" tries; of the penalties the middle one first, then its neighbors as long as they are better."""
FEW = 20
"""Neighbors with which decays are compared."""
USUAL_NEIGHBORS, MOST_FEATURES = 100, 8000


@final
@dataclass(eq=False, kw_only=True)
class NextItemRidge(OrderedModel):
    """A ridge regression of every next item on the decayed past before it, at several scales of time at once.

        h_t = sum_{s < t} d_k^(t-1-s) e(i_s, k),   W_i = (G[N, N] + lambda I)^-1 B[N, i],   f_i = h_now W_i

    G and B are the sums of h_t h_t' and h_t e(i_t)' over all rows of all users. A feature is an item at a scale d_k; N(i)
    holds the `neighbors` nearest features of each scale, so that one small system is solved for each item, in parallel.
    With `transitions` above 0 the scores of `Transitions` are added with that weight, with `undirected` those of
    `NeighborRidge`, with `recent_popularity` what is popular of late: they know different things.

    Needs timestamps; items of one moment are taken in random order. With S scales, memory is 4 (S^2 + 1) bytes for each
    pair of items that stand in one user's history (within the reach of the slowest decay), and 12 m T S bytes for m items;
    time is the sum of squared list lengths times S^2, plus m (T S)^3 / 3. With all features it is 4 (m S)^2 bytes and
    (m S)^3 / 3 + 2 m (m S)^2 operations. `fit` with "auto" takes several times as long.
    """

    neighbors: int | str = param(AUTO, integer().unless(AUTO))
    """T: features of each scale that may explain an item; as many as there are items: all features, in one system for all
    items. "auto": all where they are at most 8000, else 100."""
    decays: Any = param(AUTO, by(lambda value: value == AUTO or decay_list(value) is not None))
    """d_k of each scale: what is left of an item after one more item. 0 is the last item alone, 0.8 about the last 10, 0.97
    about the last 100. "auto": chosen on held-out last items."""
    regularization: float | str = param(AUTO, POSITIVE.unless(AUTO))
    """lambda, in rows: that many keep the weights near 0."""
    shrink: float = param(100.0, NOT_NEGATIVE)
    """Added to the denominator of the cosine by which features are chosen, in rows: rare pairs count less."""
    longest: int = param(1000, integer())
    """Rows further back are not looked at in training, whatever the decays; bounds the time for very long histories."""
    transitions: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    """What the score of the directed counts counts beside the regression; 0: the regression alone."""
    undirected: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))
    recent_popularity: float | str = param(AUTO, NOT_NEGATIVE.unless(AUTO))

    name: ClassVar[str] = "next-item-ridge"
    summary: ClassVar[str] = "order: the next item regressed on the decayed past, with directed counts; closed form"
    own_space: ClassVar[Space] = {
        "neighbors": Choice((50, 100, 200)),
        "regularization": Range(30.0, 3000.0, log=True),
        "transitions": Range(0.003, 0.3, log=True),
    }

    def choose(self, held_out: HeldOutNext | None) -> Self:
        """First the counts, then decays and lambda of the regression, then lambda and the weight of the counts together."""
        chosen = self
        if self.transitions != 0:
            chosen = replace(self, **asdict(self.count_settings(held_out)))
        if held_out is None:
            first: dict[str, Any] = {
                "neighbors": USUAL_NEIGHBORS,
                "decays": DECAYS[0],
                "regularization": PENALTIES[MIDDLE],
                "transitions": COUNT_WEIGHTS[2],
            }
            return replace(chosen, **{name: first[name] for name in chosen.open_settings() if name in first})
        few = USUAL_NEIGHBORS if self.neighbors == AUTO else int(self.neighbors)
        best = _ChoiceOfRidge(replace(chosen, neighbors=few), held_out).best()
        n_items = held_out.rest.n_items
        every = self.neighbors == AUTO and n_items * len(best.decays) <= MOST_FEATURES
        return replace(chosen, **best.get_params() | ({"neighbors": n_items} if every else {}))

    def links(self, timeline: Timeline) -> Links:
        """The solved regressions."""
        decays, neighbors = decay_list(self.decays), int(self.neighbors)
        if neighbors >= timeline.n_items:
            return AllFeatures.of(timeline, decays, int(self.longest)).solve(float(self.regularization))
        system = NextItemSystem.of(timeline, decays, neighbors, float(self.shrink), int(self.longest))
        return system.solve(float(self.regularization))

    def learn(self, timeline: Timeline) -> Part:
        """Solves all regressions, and counts."""
        settings, counted = self.count_settings() if self.transitions else None, None
        if settings is not None:
            counted = count(timeline, settings.window, settings.distance_power)
        part = self._with_counts(self.links(timeline), counted, timeline.totals())
        return part._replace(past=self.pasts(timeline))

    def learn_from(self, sums: OrderSums) -> Part:
        """The same from the sums of all parts of the rows."""
        assert sums.pairs is not None
        if int(self.neighbors) >= len(sums.totals.by_item):
            links = AllFeatures.of_sums(sums.pairs, sums.totals).solve(float(self.regularization))
        else:
            system = NextItemSystem.of_sums(sums.pairs, sums.totals, int(self.neighbors), float(self.shrink))
            links = system.solve(float(self.regularization))
        return self._with_counts(links, sums.counted, sums.totals)

    def _with_counts(self, links: Links, counted: Links | None, totals: Totals) -> Part:
        """The regression and the counts, without a past."""
        n_items = len(totals.by_item)
        ridge = Part(links, np.zeros(n_items), np.zeros((0, len(self.decays))))
        if not self.transitions:
            return ridge
        assert counted is not None
        counts = self.count_settings().part(counted, totals, np.zeros((0, 1)))
        return summed([ridge, counts.times(float(self.transitions))])

    def pasts(self, timeline: Timeline) -> FloatArray:
        """The decays of all scales, and the head and tail of the counts."""
        past = ridge_past(timeline, decay_list(self.decays))
        if not self.transitions:
            return past
        return np.concatenate([past, float(self.transitions) * self.count_settings().past(timeline)], axis=1)

    def trial(self, held_out: HeldOutNext) -> Part:
        """With the usual number of neighbors: what stands beside it is chosen alike."""
        few = min(USUAL_NEIGHBORS, int(self.neighbors))
        return replace(self, neighbors=few).learn(held_out.rest)

    def kernel(self, size: int) -> FloatArray:
        """The decays of all scales, and the head and tail of the counts."""
        ages = np.arange(size)[::-1]
        weights = decayed(ages, decay_list(self.decays))
        if not self.transitions:
            return weights
        of_counts = self.count_settings().kernel.weights(ages, np.full(size, size))
        return np.column_stack([weights, float(self.transitions) * of_counts])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The regression at all scales, then the counts."""
        return ("ridge",) * len(self.decays) + (("transitions",) if self.transitions else ())


def _counted(settings: CountSettings, timeline: Timeline) -> Part:
    """The directed counts."""
    counted = count(timeline, settings.window, settings.distance_power)
    return settings.part(counted, timeline.totals(), settings.past(timeline))


@dataclass
class _ChoiceOfRidge:
    """Decays, lambda and the weight of the counts on the held-out last items."""

    model: NextItemRidge
    held_out: HeldOutNext

    def best(self) -> NextItemRidge:
        """The model with nothing "auto" that it uses."""
        model = self.model
        if model.decays == AUTO:
            model = replace(model, decays=max(DECAYS, key=self._of_few_neighbors))
        if AUTO not in (model.regularization, model.transitions):
            return model
        return self._of_penalties(model)

    def _of_few_neighbors(self, decays: list[float]) -> float:
        """NDCG@10 of the regression alone with these decays; so few neighbors take a moment."""
        model, rest = self.model, self.held_out.rest
        penalty = PENALTIES[MIDDLE] if model.regularization == AUTO else float(model.regularization)
        few = replace(model, decays=decays, neighbors=min(FEW, int(model.neighbors)), regularization=penalty)
        return self.held_out.ndcg(few.links(rest), np.zeros(rest.n_items), ridge_past(rest, decay_list(decays)))

    def _of_penalties(self, model: NextItemRidge) -> NextItemRidge:
        """Lambda, and with each lambda the weight of the counts."""
        rest, decays = self.held_out.rest, decay_list(model.decays)
        neighbors = min(USUAL_NEIGHBORS, int(model.neighbors))
        system = NextItemSystem.of(rest, decays, neighbors, float(model.shrink), int(model.longest))
        past = ridge_past(rest, decays)
        weights = COUNT_WEIGHTS if model.transitions == AUTO else (float(model.transitions),)
        counts = [_counted(model.count_settings(), rest)] if any(weights) else []

        def value(penalty: float) -> tuple[float, float]:
            """The best NDCG@10 over the weights, and the weight."""
            ridge = Part(system.solve(penalty), np.zeros(rest.n_items), past)
            values = self.held_out.values([ridge, *counts], [(1.0, weight)[: 1 + len(counts)] for weight in weights])
            return float(values.max()), weights[int(np.argmax(values))]

        if model.regularization != AUTO:
            return replace(model, transitions=value(float(model.regularization))[1])
        penalty, (_, weight) = climb(PENALTIES, MIDDLE, value)
        return replace(model, regularization=penalty, transitions=weight)


def climb(values: Sequence[float], start: int, value: Callable[[float], tuple[float, float]]) -> tuple[float, Any]:
    """From the place `start` of ascending values to a neighbor as long as it is better; the last one, and what it gave."""
    known = {start: value(values[start])}
    best = start
    for step in (1, -1):
        while 0 <= best + step < len(values):
            known[best + step] = value(values[best + step])
            if known[best + step][0] <= known[best][0]:
                break
            best += step
        if best != start:
            break
    return values[best], known[best]
