"""The forward pass of `network.py` in NumPy, of one history: how a saved model answers without PyTorch."""

from collections.abc import Mapping

import numpy as np

from topnrank._typing import Float32Array, FloatArray, Int64Array, IntArray
from topnrank.models.attention.shape import EPSILON, GAP_BUCKETS, UNKNOWN_GAP, Shape

_Arrays = Mapping[str, FloatArray]


def last_state(P: _Arrays, shape: Shape, items: IntArray, times: Int64Array | None = None) -> Float32Array:
    """(d,) h of the last row of a history, oldest first; the last block computes no more than that row."""
    items = np.asarray(items, np.int64)[-shape.length :]
    times = None if times is None else np.asarray(times, np.int64)[-shape.length :]
    m = items.size
    x = np.float32(np.sqrt(shape.width)) * P["item_vectors"][items] + P["network_positions"][m - 1 :: -1]
    for block in range(shape.blocks):
        a = _norm(x) * P["network_attention_scale"][block]
        first = m - 1 if block == shape.blocks - 1 else 0
        x, a = x[first:], a
        x = x + _gate(P, "attention", block, a[first:]) * _attention(P, shape, block, a, first, times)
        a = _norm(x) * P["network_hidden_scale"][block]
        up = a @ P["network_up"][block]
        y = (up * _sigmoid(up) * (a @ P["network_up_gate"][block])) @ P["network_down"][block]
        x = x + _gate(P, "hidden", block, a) * y
    return np.asarray((_norm(x) * P["network_last_scale"])[-1], np.float32)


def _norm(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(EPSILON)))


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(np.float32(0.5) * (np.float32(1.0) + np.tanh(np.float32(0.5) * x)))


def _gate(P: _Arrays, name: str, block: int, a: FloatArray) -> FloatArray:
    return _sigmoid(a @ P[f"network_{name}_gate"][block] + P[f"network_{name}_bias"][block])


def _attention(P: _Arrays, shape: Shape, block: int, a: FloatArray, first: int, times: Int64Array | None) -> FloatArray:
    """(m - first, d) what the rows from `first` on take from all rows before them."""
    m, d = a.shape
    one = d // shape.heads
    qkv = P["network_qkv"][block]
    q = (a[first:] @ qkv[:, :d] * np.float32(one**-0.5)).reshape(m - first, shape.heads, one).transpose(1, 0, 2)
    k, v = (a @ qkv[:, d:]).reshape(m, 2, shape.heads, one).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1)
    if shape.time_gaps:
        scores = scores + P["network_gaps"][block][:, _gap_buckets(first, m, times)]
    if first < m - 1:
        scores[:, np.triu(np.ones((m - first, m), np.bool_), 1 + first)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray((weights @ v).transpose(1, 0, 2).reshape(m - first, d) @ P["network_out"][block])


def _gap_buckets(first: int, m: int, times: Int64Array | None) -> Int64Array:
    """(m - first, m) the power of two of the seconds between two rows."""
    if times is None:
        return np.full((m - first, m), UNKNOWN_GAP)
    gaps = np.maximum(times[first:, None] - times[None, :], 0)
    return np.asarray(np.minimum(np.floor(np.log2(gaps + 1.0)), GAP_BUCKETS - 1), np.int64)
