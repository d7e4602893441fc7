"""Free user and item vectors, the paper's representation.

f_i = <u, v_i> + b_i          dL/du = sum_i G_i v_i,   dL/dv_i = G_i u,   dL/db_i = G_i
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topnrank._typing import Float32Array, Float64Array
from topnrank.rng import stream
from topnrank.scorers.base import Parameters, UserRows, normal


@dataclass(frozen=True)
class Factors:
    """A vector for each user and each item, and a bias for each item."""

    factors: int
    init: float | str = 0.03
    """Standard deviation of the start values, or "paper" for U(0, b) with b = 2 / (7k)^(1/4) (section III-B1)."""

    user_block: ClassVar[str | None] = "user_factors"
    history_blocks: ClassVar[frozenset[str]] = frozenset()

    def initialize(self, n_users: int, n_items: int, seed: int, channels: int = 1) -> Parameters:
        """Random vectors, zero bias."""
        return {
            "user_factors": self._draw(seed, "user_factors", n_users),
            "item_factors": self._draw(seed, "item_factors", n_items),
            "item_bias": np.zeros(n_items, np.float32),
        }

    def scores(self, parameters: Parameters, rows: UserRows) -> Float64Array:
        """f = V u + b."""
        items = rows.items[rows.first :]
        dots = parameters["item_factors"][items] @ parameters["user_factors"][rows.user]
        return np.asarray(dots + parameters["item_bias"][items], np.float64)

    def user_gradient(self, parameters: Parameters, rows: UserRows, G: Float64Array) -> Float64Array:
        """sum_i G_i v_i."""
        return np.asarray(G @ parameters["item_factors"][rows.items[rows.first :]])

    def item_gradients(
        self, parameters: Parameters, rows: UserRows, G_user: Float64Array, G_item: Float64Array
    ) -> Parameters:
        """G_i u and G_i; the user's own gradient has been used already, so `G_user` is not."""
        return {"item_factors": np.outer(G_item, parameters["user_factors"][rows.user]), "item_bias": G_item}

    def _draw(self, seed: int, block: str, n: int) -> Float32Array:
        if self.init == "paper":
            b = 2.0 / (7.0 * self.factors) ** 0.25
            return np.float32(b) * stream(seed, block).random((n, self.factors), np.float32)
        return normal(seed, block, (n, self.factors), float(self.init))
