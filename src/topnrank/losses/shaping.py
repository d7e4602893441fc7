"""What the Top-N-Rank objectives share beside their metric: an annealed cut, a gradient budget and a squared anchor.

* `annealed_n`: N_t = N + (m - N)_+ (1 - progress / anneal)_+, for the gate only. Items with R >= N do not count, so nothing
  pulls them up again; a cut that starts at the length m of the list and shrinks to N lets each list be seen whole first.
* `gradient_budget`: the list-wise gradient of a user is scaled to total mass gradient_budget * min(m, N) (the larger of G_user and G_item),
  so that long lists do not put all force on a few items; the scale is held constant when differentiating.
* `squared_weight`: adds anchor/2 * sum_i (f_i - mean f - (a_i - mean a))^2, which ties scores to the gains.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient

# ----------------------------------------------------------------------------------------------------
# Squared loss on centered scores and gains: the point-wise control, and the anchor of Top-N-Rank.
#
#     L_u = 1/2 sum_i z_i^2,     z_i = (f_i - mean f) - (a_i - mean a),     dL_u/df_i = z_i
#
# Centering solves for the user's bias in closed form: among all constants added to the user's scores the best one is
# mean a - mean f. So a factorization with item bias under this loss is the usual biased matrix factorization.


@dataclass(frozen=True)
class Squared:
    """Half the squared error of a list after the user's bias has been fitted."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient z; every item counts."""
        z = (scores - np.mean(scores)) - (gains - np.mean(gains))
        return ListGradient(0.5 * float(z @ z), z, z, scores.size)


FAINT = 1e-8
"""A gradient of less mass than this share of the objective's own size is rounding: it is not blown up to the budget."""


class Shape(NamedTuple):
    """How one list's plain gradient is shaped."""

    mass: float
    """The mass to scale to, gradient_budget * min(m, N); 0 leaves the gradient as it is."""
    size: float
    """What a faint gradient is faint against: how large the objective's forces are by nature."""
    squared_weight: float
    """Weight of the squared term."""


def annealed_n(n: float, m: int, anneal_n: float, progress: float) -> float:
    """N_t: the cut of a list of m items when `progress` of the training is done; it is N from `anneal_n` on."""
    if anneal_n <= 0.0:
        return float(n)
    return n + max(m - n, 0.0) * max(1.0 - progress / anneal_n, 0.0)


def gradient_budget_scale(plain: ListGradient, shape: Shape) -> float:
    """The larger of the two masses counts: where G_user cancels, the paper's item gradient need not."""
    mass = max(float(np.abs(plain.user).sum()), float(np.abs(plain.item).sum()))
    if shape.mass == 0.0 or mass <= FAINT * shape.size:
        return 1.0
    return shape.mass / mass


def shaped(plain: ListGradient, scores: Float64Array, gains: Float64Array, shape: Shape) -> ListGradient:
    """The plain gradient within its budget, with the anchor added; the value is that of loss and anchor."""
    scale = gradient_budget_scale(plain, shape)
    squared = Squared().evaluate(scores, gains)
    return ListGradient(
        value=plain.value + shape.squared_weight * squared.value,
        user=scale * plain.user + shape.squared_weight * squared.user,
        item=scale * plain.item + shape.squared_weight * squared.item,
        active=plain.active,
    )
