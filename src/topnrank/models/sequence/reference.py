"""What the kernels of order compute, with dense matrices that read like the formulas; for tests and for readers.

A user's rows are events s = 0, 1, ...; `past` is what a row counts in the past, `wanted` as a next item, `links[s]` what of
the past is left on the way from row s to row s + 1.
"""

import numpy as np

from topnrank._typing import Float64Array, Int64Array
from topnrank.models.sequence._sequence_kernel import Events


def transitions(events: Events, gamma: Float64Array, n_items: int) -> Float64Array:
    """C[b, a]: each time that a came d rows after b counts gamma[d] times what is left of b."""
    C = np.zeros((n_items, n_items))
    for first, end in zip(events.indptr[:-1], events.indptr[1:], strict=True):
        for q in range(first, end):
            for p in range(max(first, q - len(gamma) + 1), q):
                left = events.past[p] * np.prod(events.links[p:q], dtype=np.float64)
                C[events.items[p], events.items[q]] += gamma[q - p] * left * events.wanted[q]
    return C


def pasts(events: Events, decays: Float64Array, n_items: int) -> Float64Array:
    """H, (n, n_items * S): the decayed past before each row, feature item * S + scale."""
    H = np.zeros((len(events.items), n_items, len(decays)))
    for first, end in zip(events.indptr[:-1], events.indptr[1:], strict=True):
        for t in range(first + 1, end):
            s = t - 1
            own = np.where(np.arange(n_items)[:, None] == events.items[s], events.past[s], 0.0)
            before = decays * H[s] if s > first else 0.0
            H[t] = events.links[s] * (own + before)
    return H.reshape(len(events.items), -1)


def next_item_weights(events: Events, H: Float64Array, item: int, features: Int64Array, penalty: float) -> Float64Array:
    """The ridge of "the next item is `item`" on some features of the past, as plain weighted least squares."""
    v = np.sqrt(events.wanted.astype(np.float64))
    # the penalty as further rows: sqrt(lambda) times the weight of each feature should be 0
    rows = np.vstack([v[:, None] * H[:, features], np.sqrt(penalty) * np.eye(len(features))])
    values = np.concatenate([v * (events.items == item), np.zeros(len(features))])
    return np.asarray(np.linalg.lstsq(rows, values, rcond=None)[0])
