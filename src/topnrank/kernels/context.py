"""The few tuples of arrays that kernels take, so that none needs twenty arguments."""

from typing import NamedTuple

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array


class Batch(NamedTuple):
    """The users of one visit, their rows laid out one user after another ("flat")."""

    users: Int64Array
    """(b,)"""
    offsets: Int64Array
    """(b + 1,) where each user's rows begin in the flat arrays"""
    items: Int32Array
    """(flat,)"""
    gains: Float64Array
    """(flat,)"""
    residuals: Float32Array
    """(flat,), or empty"""


class Touched(NamedTuple):
    """The batch seen from the items: who visits each touched item, in the batch's order."""

    items: Int32Array
    """(t,) the touched items"""
    starts: Int64Array
    """(t + 1,) where each item's visits begin"""
    entries: Int64Array
    """(flat,) position of the visit in the batch's flat arrays"""
    owners: Int32Array
    """(flat,) position of the visiting user in the batch"""


class Lists(NamedTuple):
    """What an objective says about the lists of a batch."""

    G: Float64Array
    """(2, flat) G_user and G_item"""
    report: Float64Array
    """(b, 2) loss and effective N of each list"""
