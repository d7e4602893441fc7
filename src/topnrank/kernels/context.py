"""The few tuples of arrays that kernels take, so that none needs twenty arguments."""

from typing import NamedTuple

from topnrank._typing import Float32Array, Float64Array, Int32Array, Int64Array, UInt64Array


class Batch(NamedTuple):
    """The users of one visit, their rows laid out one user after another ("flat").

    The rows of a user: those of the history only | the own rows of the list | items sampled for the list. Rows
    offsets[n] .. own[n] are the user's history, rows first[n] .. offsets[n + 1] the list that the objective sees.
    """

    users: Int64Array
    """(b,)"""
    offsets: Int64Array
    """(b + 1,) where each user's rows begin in the flat arrays"""
    first: Int64Array
    """(b,) where the list begins"""
    own: Int64Array
    """(b,) where the user's own rows end and the sampled ones begin"""
    items: Int32Array
    """(flat,)"""
    gains: Float64Array
    """(flat,) 0 for sampled rows"""
    residuals: Float32Array
    """(flat, channels) 0 for sampled rows; or empty"""
    strengths: Float32Array
    """(flat,) how much a row counts in the user's history: 1, or less for what is long past"""
    keys: UInt64Array
    """(b,) what the random draws of each list are named by"""
    weights: Float64Array
    """(flat,) how many items each row stands for in the ranks: 1 for own rows, more for sampled ones"""
    counts: Float64Array
    """(b,) how many visits each sampled row of the list counts as, for the penalty"""
    progress: float
    """Share of the training that is done"""
    workers: int = 1
    """Who share the turns of the loops over users and items, usually one for each thread"""


class Touched(NamedTuple):
    """The batch seen from the items: who visits each touched item, in the batch's order, sampled rows after the others."""

    items: Int32Array
    """(t,) the touched items"""
    starts: Int64Array
    """(t + 1,) where each item's visits begin"""
    own: Int64Array
    """(t,) where its visits by rows of the users' own end and those by sampled rows begin"""
    visits: Int32Array
    """(flat, 2) position of the visit in the batch's flat arrays, and of the visiting user in the batch"""


class Lists(NamedTuple):
    """What an objective says about the lists of a batch."""

    G: Float32Array
    """(2, flat) G_user and G_item; 0 for rows of the history only. They are multiplied by parameters of 32 bits: 64 would
    only take memory"""
    report: Float64Array
    """(b, 2) loss and effective N of each list"""
