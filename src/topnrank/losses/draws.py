"""Which random draws of a visit belong to which row of the list."""

from topnrank._typing import Int64Array
from topnrank.losses.base import ListContext
from topnrank.rng import draws_below

STRIDE = 1 << 16
"""Draws set aside for each row: row i owns the draws i * STRIDE, i * STRIDE + 1, ... of the visit's key."""


def row_draws(context: ListContext, row: int, n: int, count: int) -> Int64Array:
    """(count,) whole numbers from 0 to n - 1: the first draws of `row`, the same whatever the other rows draw."""
    return draws_below(context.key, row * STRIDE, n, count)
