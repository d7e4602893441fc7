"""The closed-form terms of order beside the transformer, z: what their scores are at every row of every window.

    z_t = sum_{s <= t} sum_k kernel_k(t - s, t) strength_s W_k[i_s, :]

W is what `Transitions` or `NextItemRidge` learn. A user's own rows are among those that W was learned from; a weight learned
on such z would trust them too much. So W is learned without each fold of users in turn, and the windows of the users of a
fold take the W that never saw them. What is saved and asked is learned from all rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Int64Array
from topnrank.models.sequence.links import LinkScores
from topnrank.models.sequence.model import OrderedModel
from topnrank.models.sequence.parts import Part
from topnrank.models.sequence.timeline import Timeline
from topnrank.rng import stream

FOLDS = 4


@dataclass(frozen=True)
class Terms:
    """z of a training: links learned without each fold of users, and from all of them."""

    kinds: tuple[str, ...]
    """The K terms"""
    kind_of_scale: Int64Array
    """(S,) the term of each scale"""
    links: Sequence[Part]
    """FOLDS + 1 of them, the last from all users; their spread is about 1"""
    folds: Int64Array
    """(n_users,)"""
    kernels: Float32Array
    """(S, L, L) what row s counts in the scores after row t, at [k, t, s]; 0 for s > t"""
    bias: Float32Array
    """(n_items,) what items count in z by themselves"""
    unit: float
    """What z was multiplied by"""

    @classmethod
    def of(cls, model: OrderedModel, timeline: Timeline, length: int, seed: int) -> Self:
        """Learned from a timeline; nothing in `model` is "auto"."""
        whole = model.whole(timeline)
        unit = 1.0 / max(spread(whole, timeline), 1e-12)
        folds = stream(seed, "folds of users").integers(0, FOLDS, len(timeline.events.indptr) - 1)
        links = [_links_of(model, timeline, folds[timeline.events.owners] != fold) for fold in range(FOLDS)]
        kinds = model.all_kinds
        names = tuple(dict.fromkeys(kinds))
        kernels = np.zeros((len(kinds), length, length), np.float32)
        for t in range(length):
            kernels[:, t, : t + 1] = unit * model.past_of(np.ones(t + 1)).T
        return cls(
            names,
            np.array([names.index(kind) for kind in kinds], np.int64),
            [*links, whole],
            folds,
            kernels,
            (unit * whole.bias).astype(np.float32),
            unit,
        )

    @cached_property
    def scales(self) -> int:
        """S."""
        return len(self.kind_of_scale)


def _links_of(model: OrderedModel, timeline: Timeline, kept: BoolArray) -> Part:
    """What the rows of a mask teach; from all where nothing would be left."""
    return model.whole(timeline.take(kept) if kept.any() else timeline)


def spread(part: Part, timeline: Timeline) -> float:
    """The mean standard deviation of the scores of some users."""
    events = timeline.events
    users = np.flatnonzero(np.diff(events.indptr))[:250]
    scores = LinkScores(
        part.links, part.bias.astype(np.float32), events.indptr, events.items, part.past.astype(np.float32)
    )
    return float(scores.block(users).std(axis=1, dtype=np.float64).mean()) if users.size else 1.0


class TermsOnDevice:
    """z in PyTorch."""

    def __init__(self, terms: Terms, n_items: int, device: Any, dense_bytes: int) -> None:
        import torch

        self.terms, self.n_items, self.device = terms, n_items, device
        self.kernels = torch.from_numpy(terms.kernels).to(device)
        S, parts = terms.scales, terms.links
        self.indptr = torch.from_numpy(
            np.concatenate(
                [[0], *(part.links.indptr[1:] + first for part, first in zip(parts, _starts(parts), strict=True))]
            )
        ).to(device)
        targets = np.concatenate([part.links.targets for part in parts]).astype(np.int64)
        self.targets = torch.from_numpy(targets).to(device)
        self.values = torch.from_numpy(np.concatenate([part.links.values for part in parts])).to(device)
        self.dense = None
        if 4 * len(parts) * S * n_items * n_items <= dense_bytes:
            rows = torch.arange(len(parts) * n_items * S, device=device)
            owners = torch.repeat_interleave(rows, self.indptr.diff())
            self.dense = torch.zeros(len(parts) * n_items * S, n_items, device=device)
            self.dense[owners, self.targets] = self.values
            self.dense = self.dense.view(len(parts), n_items, S, n_items)

    def scores(self, items: Any, strengths: Any, folds: Any, slots: Any = None, n_slots: int = 0) -> list[Any]:
        """K tensors (B, L, C): the terms after each row of windows (B, L), from the links of `folds` (B,).

        Without `slots` the candidates are all items; else `slots` (n_items,) says where an item stands among `n_slots`
        candidates, -1 for nowhere.
        """
        import torch

        n = n_slots if slots is not None else self.n_items
        L = items.shape[1]
        sums: list[Any] = [None] * len(self.terms.kinds)
        for scale in range(self.terms.scales):
            rows = self._rows(items, folds, scale, slots, n)
            kernel = self.kernels[scale, :L, :L] * strengths[:, None, :]
            z, kind = torch.bmm(kernel, rows), int(self.terms.kind_of_scale[scale])
            sums[kind] = z if sums[kind] is None else sums[kind].add_(z)
        return sums

    def scores_at(self, items: Any, strengths: Any, folds: Any, last: Any) -> list[Any]:
        """K tensors (B, n_items): the terms after the row `last` (B,) of each window."""
        import torch

        sums: list[Any] = [None] * len(self.terms.kinds)
        for scale in range(self.terms.scales):
            kernel = self.kernels[scale][last.clamp(min=0), : items.shape[1]] * strengths
            z = torch.bmm(kernel[:, None, :], self._rows(items, folds, scale, None, self.n_items))[:, 0]
            kind = int(self.terms.kind_of_scale[scale])
            sums[kind] = z if sums[kind] is None else sums[kind].add_(z)
        return sums

    def _rows(self, items: Any, folds: Any, scale: int, slots: Any, n: int) -> Any:
        """(B, L, n) the links of the rows' items at one scale."""
        import torch

        if self.dense is not None and slots is None:
            return self.dense[folds[:, None], items, scale]
        feature = ((folds[:, None] * self.n_items + items) * self.terms.scales + scale).flatten()
        first, counts = self.indptr[feature], self.indptr[feature + 1] - self.indptr[feature]
        owners = torch.repeat_interleave(torch.arange(feature.numel(), device=self.device), counts)
        ends = counts.cumsum(0)
        places = torch.arange(owners.numel(), device=self.device) + (first - (ends - counts))[owners]
        columns, values = self.targets[places], self.values[places]
        if slots is not None:
            columns = slots[columns]
            kept = columns >= 0
            owners, columns, values = owners[kept], columns[kept], values[kept]
        rows = torch.zeros(feature.numel(), n, device=self.device)
        rows[owners, columns] = values  # each place once
        return rows.view(*items.shape, n)


def _starts(parts: Sequence[Part]) -> Int64Array:
    sizes = [part.links.indptr[-1] for part in parts]
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
