"""The transformer: parameters by name, and its forward pass in PyTorch. `forward.py` is the same in NumPy.

    x_t = sqrt(d) q_{i_t} + p_{r_t}                                        r_t = rows of the window that are later
    a = norm(x) g,   x += sigmoid(a G + c) * attention(a) O                causal: row t sees rows s <= t
    a = norm(x) g',  x += sigmoid(a G' + c') * (silu(a U) * (a U')) D      in each of the blocks
    h_t = norm(x_t) g'',   f_ti = <h_t, q_i> + b_i

norm(x) = x / sqrt(mean x^2 + 1e-6). Attention of row t to row s, of each head: softmax over s <= t of
<q_t, k_s> / sqrt(d / H) + e(gap), where e is a learned number for each power of two of the seconds between the two rows; t's
own moment is that of a row that is there, never that of the item asked for.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import embedding, one_hot, silu

from topnrank._typing import FloatArray
from topnrank.models.attention.shape import EPSILON, GAP_BUCKETS, UNKNOWN_GAP, Shape
from topnrank.rng import stream

Tensors = dict[str, Any]


def start_values(shape: Shape, n_items: int, seed: int) -> dict[str, FloatArray]:
    """Small random vectors; gates half open, biases 0, and a weight of 1 for each term beside."""
    draw = stream(seed, "start values of attention")
    arrays: dict[str, FloatArray] = {}
    for name, size in shape.sizes(n_items).items():
        if name.endswith(("scale", "weights")):
            arrays[name] = np.ones(size, np.float32)
        elif name.endswith(("bias", "gaps")):
            arrays[name] = np.zeros(size, np.float32)
        else:
            spread = 0.02 if name in ("item_vectors", "network_positions") else size[-2] ** -0.5
            arrays[name] = (spread * draw.standard_normal(size)).astype(np.float32)
    return arrays


@dataclass
class Dropout:
    """Sets a share of the numbers to 0 and lets the others grow; a `rate` of 0 changes nothing."""

    rate: float
    draws: Any = None
    """torch.Generator"""

    def __call__(self, x: Any) -> Any:
        """x with other zeros at each call."""
        if self.rate == 0.0:
            return x
        kept = torch.empty_like(x, requires_grad=False).bernoulli_(1.0 - self.rate, generator=self.draws)
        return x * kept.mul_(1.0 / (1.0 - self.rate))


def states(P: Tensors, shape: Shape, items: Any, lengths: Any, times: Any = None, drop: Dropout | None = None) -> Any:
    """(B, L, d) h of each row of windows (B, L) with so many rows; `times` (B, L) where gaps count, or None: not known."""
    drop = drop or Dropout(0.0)
    L = items.shape[1]
    later = (lengths[:, None] - 1 - torch.arange(L, device=items.device)).clamp(min=0)
    x = drop(math.sqrt(shape.width) * embedding(items, P["item_vectors"]) + _few_rows(P["network_positions"], later))
    above = torch.full((L, L), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
    buckets = gap_buckets(times, items) if shape.time_gaps else None
    for block in range(shape.blocks):
        a = norm(x) * P["network_attention_scale"][block]
        bias = above if buckets is None else above + _few_rows(P["network_gaps"][block].T, buckets).permute(0, 3, 1, 2)
        x = x + gate(P, "attention", block, a) * drop(attention(P, shape, block, a, bias, drop))
        a = norm(x) * P["network_hidden_scale"][block]
        y = (silu(a @ P["network_up"][block]) * (a @ P["network_up_gate"][block])) @ P["network_down"][block]
        x = x + gate(P, "hidden", block, a) * drop(y)
    return norm(x) * P["network_last_scale"]


def _few_rows(table: Any, places: Any) -> Any:
    """table[places]. Where many places share few rows, a product is faster on a GPU than sums of their gradients."""
    if table.device.type == "cpu" or not torch.is_grad_enabled():
        return embedding(places, table)
    return one_hot(places, table.shape[0]).to(table.dtype) @ table


def norm(x: Any) -> Any:
    """x by its root mean square."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPSILON)


def gate(P: Tensors, name: str, block: int, a: Any) -> Any:
    """How far a block lets its result through."""
    return torch.sigmoid(a @ P[f"network_{name}_gate"][block] + P[f"network_{name}_bias"][block])


def attention(P: Tensors, shape: Shape, block: int, a: Any, bias: Any, drop: Dropout) -> Any:
    """(B, L, d)."""
    B, L, d = a.shape
    split = (a @ P["network_qkv"][block]).view(B, L, 3, shape.heads, d // shape.heads)
    q, k, v = split.permute(2, 0, 3, 1, 4)
    weights = torch.softmax((q * (d // shape.heads) ** -0.5) @ k.transpose(-1, -2) + bias, dim=-1)
    return (drop(weights) @ v).transpose(1, 2).reshape(B, L, d) @ P["network_out"][block]


def gap_buckets(times: Any, items: Any) -> Any:
    """(B, L, L) the power of two of the seconds between two rows."""
    B, L = items.shape
    if times is None:
        return torch.full((B, L, L), UNKNOWN_GAP, device=items.device)
    gaps = (times[:, :, None] - times[:, None, :]).clamp(min=0)
    return torch.log2(gaps.double() + 1.0).floor().long().clamp(max=GAP_BUCKETS - 1)
