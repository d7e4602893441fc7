"""Scores as sums over a user's past: which item speaks for which at which scale of time, and with what weight."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, Int64Array, IntArray
from topnrank.models.base import Fitted
from topnrank.models.sequence._sequence_kernel import (
    Links,
    add_links,
    add_links_of_users,
    links_of_features,
    pair_links,
    parts_of_links,
)

COUNTS, TARGETS, VALUES, BIAS, PAST = "item_link_counts", "link_targets", "link_values", "item_bias", "seen_past"
"""Names of the arrays in a fitted model."""
NEXT_BIAS = "item_next_bias"
"""The same where the model has other biases, too."""


def links_of(chosen: Int32Array, weights: Float32Array, n_features: int) -> Links:
    """Regression weights (n_items, T) on the features `chosen`, seen from the features."""
    size = int((chosen >= 0).sum())
    links = Links(np.zeros(n_features + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.float32))
    links_of_features(chosen, weights, *links)
    return links


def side_by_side(parts: Sequence[Links], n_items: int) -> Links:
    """Links of several kinds as one, the scales of all of them after each other."""
    counts = np.concatenate([np.diff(one.indptr).reshape(n_items, -1) for one in parts], axis=1)
    scales = [(len(one.indptr) - 1) // n_items for one in parts]
    kind = np.repeat(np.tile(np.repeat(np.arange(len(parts)), scales), n_items), counts.ravel())
    targets, values = np.empty(kind.size, np.int32), np.empty(kind.size, np.float32)
    for number, one in enumerate(parts):
        targets[kind == number], values[kind == number] = one.targets, one.values
    return Links(indptr_from_counts(counts.ravel()), targets, values)


class LinkScores(NamedTuple):
    """What scores are made of: the links, what the items count by themselves, and the past of all users."""

    links: Links
    bias: Float32Array
    """(n_items,)"""
    indptr: Int64Array
    """With `items` and `past`: CSR of the users' rows"""
    items: Int32Array
    past: Float32Array
    """(n, S) what each row counts at each scale; all 0 for rows that do not count"""

    @property
    def scales(self) -> int:
        """S."""
        return int(self.past.shape[1])

    def block(self, users: IntArray) -> Float32Array:
        """(len(users), n_items) scores."""
        scores = np.tile(self.bias, (len(users), 1))
        if len(users) == 1:  # one user's request waits for no other thread
            own = slice(self.indptr[users[0]], self.indptr[users[0] + 1])
            add_links(self.links, self.items[own], self.past[own], scores[0])
        else:
            rows = np.ascontiguousarray(users, np.int64)
            add_links_of_users(self.links, rows, self.indptr, self.items, self.past, scores)
        return scores

    def pairs(self, users: IntArray, items: IntArray) -> Float32Array:
        """(len(users),) scores."""
        scores = self.bias[items]
        rows = np.ascontiguousarray(users, np.int64), np.ascontiguousarray(items, np.int64)
        pair_links(self.links, *rows, self.indptr, self.items, self.past, scores)
        return scores

    def history(self, items: IntArray, past: FloatArray) -> Float32Array:
        """(n_items,) scores of somebody with these rows, which count `past` (n, S)."""
        scores = self.bias.copy()
        add_links(self.links, items.astype(np.int32), past.astype(np.float32), scores)
        return scores

    def parts(self, items: IntArray, targets: IntArray) -> Float64Array:
        """(n_targets, n, S) the links of the rows' items to the targets."""
        parts = np.empty((len(targets), len(items), self.scales))
        wanted = np.ascontiguousarray(targets, np.int64)
        parts_of_links(self.links, np.ascontiguousarray(items, np.int32), self.scales, wanted, parts)
        return parts


def link_arrays(links: Links, bias: FloatArray) -> dict[str, Any]:
    """What a fitted model keeps of its items."""
    counts = np.diff(links.indptr).reshape(len(bias), -1).astype(np.int32)
    return {COUNTS: counts, TARGETS: links.targets, VALUES: links.values, BIAS: bias.astype(np.float32)}


def link_scores(fitted: Fitted) -> LinkScores:
    """The scores of a fitted model, made ready once."""
    return fitted.cached(LinkScores, lambda: _link_scores(fitted))


def _link_scores(fitted: Fitted) -> LinkScores:
    arrays: dict[str, Any] = dict(fitted.arrays)
    links = Links(indptr_from_counts(arrays[COUNTS].ravel()), arrays[TARGETS], arrays[VALUES])
    if arrays[PAST].ndim != 2 or arrays[COUNTS].shape[1:] != arrays[PAST].shape[1:]:
        raise ValueError(f"{PAST} and {COUNTS} are not of the same scales")
    bias = arrays[NEXT_BIAS] if NEXT_BIAS in arrays else arrays[BIAS]
    return LinkScores(links, bias, fitted.indptr, fitted.indices, arrays[PAST])
