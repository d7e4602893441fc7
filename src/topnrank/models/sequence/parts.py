"""A score as a sum of parts, each with its weight: what may stand beside the directed part of a model of order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topnrank._typing import FloatArray
from topnrank.models.linear.neighbors import CoOccurrences, LikedItems, Ridge, seen_from_sources
from topnrank.models.recent_popularity import TimedPairs, choose_half_life, popularity_of, recent_counts
from topnrank.models.sequence._sequence_kernel import Links
from topnrank.models.sequence.links import side_by_side
from topnrank.models.sequence.timeline import Timeline

RIDGE = Ridge(neighbors=100, penalty=80.0)
"""The regressions of the undirected part."""
REPEAT_DECAY = 0.95
"""What a past item counts as its own repetition after one more item."""


class Part(NamedTuple):
    """Scores as sums over the past: links from items, what the items count by themselves, and the past of all users."""

    links: Links
    bias: FloatArray
    """(n_items,)"""
    past: FloatArray
    """(n, S) what the rows of the timeline count"""

    def times(self, weight: float) -> "Part":
        """The part with a weight."""
        return Part(self.links, weight * self.bias, weight * self.past)


def summed(parts: Sequence[Part]) -> Part:
    """The sum of the scores."""
    n_items = len(parts[0].bias)
    links = side_by_side([part.links for part in parts], n_items) if len(parts) > 1 else parts[0].links
    bias = np.sum([part.bias for part in parts], axis=0)
    return Part(links, bias, np.concatenate([part.past for part in parts], axis=1))


@dataclass(frozen=True)
class Beside:
    """What stands beside the directed part, none of it "auto"; a weight of 0 leaves a part out."""

    undirected: float = 0.0
    recency: float = 32.0
    recent_popularity: float = 0.0
    repeats: float = 0.0

    def parts(self, timeline: Timeline) -> list[Part]:
        """The parts at their weights."""
        parts = []
        if self.undirected:
            parts.append(undirected(timeline, [self.recency])[0].times(self.undirected))
        if self.recent_popularity:
            parts.append(recent_popularity(timeline).times(self.recent_popularity))
        if self.repeats:
            parts.append(repeats(timeline).times(self.repeats))
        return parts

    def pasts(self, timeline: Timeline) -> list[FloatArray]:
        """(n, 1) what the rows count in each part that sums over the past."""
        pasts = [self.undirected * undirected_past(timeline, self.recency)] if self.undirected else []
        return pasts + ([self.repeats * repeat_past(timeline)] if self.repeats else [])

    def kernels(self, past: FloatArray) -> list[FloatArray]:
        """(n, 1) what rows of these weights, from the oldest to the latest, count in each part that sums over the past."""
        ages = np.arange(past.size)[::-1]
        kernels = [self.undirected * past * np.exp2(-ages / self.recency)] if self.undirected else []
        kernels += [self.repeats * repeat_strength(past) * REPEAT_DECAY**ages] if self.repeats else []
        return [np.asarray(one[:, None]) for one in kernels]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of these parts."""
        return (("undirected",) if self.undirected else ()) + (("repeats",) if self.repeats else ())


def undirected(timeline: Timeline, recencies: Sequence[float]) -> list[Part]:
    """The scores of `NeighborRidge`: what belongs together in whatever order; past likes fade by each of the half-lives."""
    links, nothing = undirected_links(likes_in(timeline)), np.zeros(timeline.n_items)
    return [Part(links, nothing, undirected_past(timeline, recency)) for recency in recencies]


def likes_in(timeline: Timeline) -> LikedItems:
    """The liked items of all users."""
    events = timeline.events
    order = np.lexsort((events.items, events.owners))
    order = order[events.wanted[order] > 0]
    sizes = np.bincount(events.owners[order], minlength=len(events.indptr) - 1)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return LikedItems(indptr, events.items[order], timeline.n_items)


def undirected_links(liked: LikedItems) -> Links:
    """The regressions of likes on likes."""
    (neighbors,) = CoOccurrences.of(liked, RIDGE, RIDGE.neighbors).solve(RIDGE.neighbors, [RIDGE.penalty])
    return Links(*seen_from_sources(neighbors))


def undirected_past(timeline: Timeline, recency: float) -> FloatArray:
    """(n, 1) what rows count beside later ones."""
    return timeline.in_scores(np.exp2(-timeline.ages()[:, None] / recency))


def recent_popularity(timeline: Timeline) -> Part:
    """The popularity of items of late, the same for all users."""
    pairs = liked_pairs(timeline)
    half_life = choose_half_life(pairs, timeline.n_items)
    popular = popularity_of(recent_counts(pairs, timeline.n_items, half_life), half_life)
    return bias_alone(popular.scores)._replace(past=np.zeros((len(timeline.rows), 0)))


def liked_pairs(timeline: Timeline) -> TimedPairs:
    """The rows that may be the next item."""
    events, wanted = timeline.events, timeline.events.wanted > 0
    return TimedPairs(
        events.owners[wanted].astype(np.int64), events.items[wanted].astype(np.int64), timeline.times[wanted]
    )


def bias_alone(scores: FloatArray) -> Part:
    """Scores that no past changes."""
    return Part(_no_links(len(scores)), scores.astype(np.float64), np.zeros((0, 0)))


def repeats(timeline: Timeline) -> Part:
    """Every past item speaks for itself: by its weight, which may be a count, and by how lately it was."""
    return repeat_links(timeline.n_items)._replace(past=repeat_past(timeline))


def repeat_links(n_items: int) -> Part:
    """Each item speaks for itself; without a past."""
    links = Links(np.arange(n_items + 1), np.arange(n_items, dtype=np.int32), np.ones(n_items, np.float32))
    return Part(links, np.zeros(n_items), np.zeros((0, 1)))


def repeat_past(timeline: Timeline) -> FloatArray:
    """(n, 1) what rows say of their own items."""
    past = timeline.in_scores(REPEAT_DECAY ** timeline.ages()[:, None])
    return np.asarray(past * (repeat_strength(timeline.events.past) / timeline.events.past)[:, None])


def repeat_strength(past: FloatArray) -> FloatArray:
    """(n,) how much rows of these weights, above 0, speak for their own items: often counts more, but not in proportion."""
    return np.asarray(np.log1p(past) / np.log(2.0))


def _no_links(n_items: int) -> Links:
    """Links of no scale."""
    return Links(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
