"""The neighbours' part of a fitted model's scores: beta times the weights between an item and the items a user likes."""

from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import BoolArray, Float32Array, Float64Array, FloatArray, Int32Array, Int64Array, IntArray
from topnrank.kernels.neighbours import Sources, add_links, pair_links
from topnrank.models.base import Fitted
from topnrank.models.neighbours import seen_from_sources
from topnrank.scorers import Neighbours
from topnrank.scorers.neighbours import SCALE

NEIGHBOURS, WEIGHTS, LIKED, STRENGTHS = "neighbours", "neighbour_weights", "seen_liked", "seen_strengths"
"""Names of the arrays in a fitted model."""


class Links(NamedTuple):
    """Neighbours of all items and likes of all users, ready for scoring."""

    scale: float
    neighbours: Neighbours
    sources: Sources
    indptr: Int64Array
    """With `liked`: CSR of the items each user likes, ascending"""
    liked: Int32Array
    strengths: Float32Array
    """rho of `liked`"""

    def add_to(self, block: Float32Array, users: IntArray) -> None:
        """Adds the links of known users to their (len(users), n_items) scores."""
        sizes = self.indptr[1:][users] - self.indptr[:-1][users]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][users] - indptr[:-1], sizes)
        add_links(self.sources, indptr, self.liked[places], np.float32(self.scale) * self.strengths[places], block)

    def of_pairs(self, users: Int64Array, items: Int64Array) -> Float32Array:
        """(len(users),) links of pairs."""
        scores = np.empty(users.size, np.float32)
        pair_links(*self.neighbours, (self.indptr, self.liked, self.strengths), users, items, scores)
        return np.float32(self.scale) * scores

    def add_history(self, scores: Float32Array, liked: IntArray, strengths: FloatArray) -> None:
        """Adds the links of one user, known by the items liked and their strengths, to (n_items,) scores."""
        indptr, rho = np.array([0, liked.size], np.int64), (self.scale * strengths).astype(np.float32)
        add_links(self.sources, indptr, liked.astype(np.int32), rho, scores[None, :])

    def parts(self, items: IntArray, targets: IntArray) -> Float64Array:
        """(n_targets, n) beta W_ji for the n items j of a history and the targets i."""
        near, weights = self.neighbours.items[targets], self.neighbours.weights[targets]
        matches = near[:, :, None] == np.asarray(items)[None, None, :]
        return np.asarray(self.scale * (weights[:, :, None] * matches).sum(axis=1, dtype=np.float64))


def neighbour_arrays(neighbours: Neighbours, liked: BoolArray) -> dict[str, Any]:
    """What a fitted model keeps of its neighbours: N, W, and which of the seen rows are likes."""
    return {NEIGHBOURS: neighbours.items, WEIGHTS: neighbours.weights, LIKED: liked.astype(np.uint8)}


def linked(fitted: Fitted) -> Links | None:
    """The links of a fitted model, made ready once; None for a model without neighbours."""
    if NEIGHBOURS not in fitted.arrays:
        return None
    if "links" not in fitted.ready:
        arrays: dict[str, Any] = dict(fitted.arrays)
        neighbours = Neighbours(arrays[NEIGHBOURS], arrays[WEIGHTS])
        liked = fitted.arrays[LIKED] > 0
        indptr = np.concatenate([[0], np.cumsum(liked)])[fitted.indptr].astype(np.int64)
        scale = float(fitted.arrays[SCALE][0]) if SCALE in fitted.arrays else 1.0
        rho = arrays[STRENGTHS][liked] if STRENGTHS in arrays else np.ones(int(liked.sum()), np.float32)
        sources = seen_from_sources(neighbours)
        fitted.ready["links"] = Links(scale, neighbours, sources, indptr, fitted.indices[liked], rho)
    links: Links = fitted.ready["links"]
    return links
