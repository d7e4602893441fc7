"""The rank engine's reference: smooth weighted ranks and their backward pass, pair by pair.

    R_i = sum_{j != i} w_j h(f_j - f_i)                                   smooth 0-based rank, eq. 3 with h for the indicator
    D_i = sum_{j != i} w_j h'(f_j - f_i)                                  how fast R_i falls as f_i rises
    X_j = w_j sum_{i != j} c_i h'(f_j - f_i)                              what f_j does to the ranks of the others

With c_i = dL/dR_i the exact score gradient is G_j = X_j - c_j D_j; the paper's item gradient keeps only -c_j D_j.
The self term j = i is left out (eq. 3 has a strict <). Kernels do the same in O(m log m): `losses/_ranks_kernel.py`.
"""

from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.steps import StepFunction


class Ranks(NamedTuple):
    """Smooth ranks R and their slopes D of one list, each of shape (m,)."""

    R: Float64Array
    D: Float64Array


def _without_self(pairs: Float64Array) -> Float64Array:
    """The (m, m) pair matrix with zeros on its diagonal."""
    np.fill_diagonal(pairs, 0.0)
    return pairs


def smooth_ranks(step: StepFunction, scores: Float64Array, weights: Float64Array) -> Ranks:
    """R and D of a list; entry (i, j) of the pair matrices belongs to f_j - f_i."""
    gaps = scores[None, :] - scores[:, None]
    return Ranks(_without_self(step.h(gaps)) @ weights, _without_self(step.dh(gaps)) @ weights)


def rank_pull(step: StepFunction, scores: Float64Array, weights: Float64Array, c: Float64Array) -> Float64Array:
    """X of a list: the force on f_j from the ranks of all other items."""
    gaps = scores[:, None] - scores[None, :]
    return weights * (_without_self(step.dh(gaps)) @ c)
