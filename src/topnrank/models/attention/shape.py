"""The sizes of the transformer, known without PyTorch."""

from typing import NamedTuple

EPSILON = 1e-6
GAP_BUCKETS = 32
UNKNOWN_GAP = GAP_BUCKETS
"""The bucket of gaps that are not known, as those of a history without times."""


class Shape(NamedTuple):
    """Sizes."""

    width: int
    """d"""
    blocks: int
    heads: int
    length: int
    """L: rows that it sees at most"""
    time_gaps: bool = False
    terms: int = 0
    """How many closed-form terms stand beside it"""

    def sizes(self, n_items: int) -> dict[str, tuple[int, ...]]:
        """The shape of each array of parameters, by name."""
        d, B, hidden = self.width, self.blocks, 2 * self.width
        sizes: dict[str, tuple[int, ...]] = {
            "item_vectors": (n_items, d),
            "item_bias": (n_items,),
            "network_positions": (self.length, d),
            "network_attention_scale": (B, d),
            "network_qkv": (B, d, 3 * d),
            "network_out": (B, d, d),
            "network_attention_gate": (B, d, d),
            "network_attention_bias": (B, d),
            "network_hidden_scale": (B, d),
            "network_up": (B, d, hidden),
            "network_up_gate": (B, d, hidden),
            "network_down": (B, hidden, d),
            "network_hidden_gate": (B, d, d),
            "network_hidden_bias": (B, d),
            "network_last_scale": (d,),
        }
        if self.time_gaps:
            sizes["network_gaps"] = (B, self.heads, GAP_BUCKETS + 1)
        if self.terms:
            sizes["network_term_weights"] = (self.terms,)
        return sizes
