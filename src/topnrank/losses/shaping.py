"""What the Top-N-Rank losses share beside their metric: an annealed N, a gradient budget and a squared term.

* `anneal_n`: the gate has N_t = N + (m - N)_+ (1 - progress / anneal_n)_+. Items with R >= N have no gradient, so nothing
  raises them again; with an N that starts at the length m of the list and shrinks, the whole list is seen first.
* `gradient_budget`: the list-wise gradient of a user is scaled to total mass gradient_budget * min(m, N) (the larger of
  G_user and G_item), so that long lists do not put all force on a few items; the scale is held constant when
  differentiating.
* `squared_weight`: adds squared_weight/2 * sum_i (f_i - mean f - (a_i - mean a))^2, which ties scores to the gains.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.squared.reference import Squared
from topnrank.losses.steps import Laplace, StepFunction

FAINT = 1e-8
"""A gradient of less mass than this fraction of its natural mass is rounding: it is not scaled up to the budget."""


def annealed_n(n: float, m: int, anneal_n: float, progress: float) -> float:
    """N_t: the gate's N for a list of m items when the fraction `progress` of training is done; N from `anneal_n` on."""
    if anneal_n <= 0.0:
        return float(n)
    return n + max(m - n, 0.0) * max(1.0 - progress / anneal_n, 0.0)


@dataclass(frozen=True)
class ShapedObjective(ABC):
    """A loss of smooth ranks with gate, gradient budget, squared term and annealing."""

    step: StepFunction = field(default_factory=Laplace)
    """h in the ranks."""
    n: int = 20
    """The N of the gate."""
    truncate: bool = True
    """Whether the gate acts."""
    gradient_budget: float = 0.0
    """Total mass of a user's list-wise gradient per item of min(m, N); 0 leaves the gradient as it is."""
    squared_weight: float = 0.0
    """Weight of the squared term."""
    anneal_n: float = 0.0
    """Fraction of training in which the gate's N shrinks from the length of the list to N; 0 for N throughout."""

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and score gradients of one list, pair by pair: O(m^2)."""
        plain = self._plain(scores, gains, context)
        scale = self.budget_scale(plain, gains)
        squared = Squared().evaluate(scores, gains)
        return ListGradient(
            value=plain.value + self.squared_weight * squared.value,
            user=scale * plain.user + self.squared_weight * squared.user,
            item=scale * plain.item + self.squared_weight * squared.item,
            active=plain.active,
        )

    def budget_scale(self, plain: ListGradient, gains: Float64Array) -> float:
        """Factor that brings the plain gradient to its budget.

        The larger of the two masses counts: where G_user cancels, the paper's item gradient need not.
        """
        mass = max(float(np.abs(plain.user).sum()), float(np.abs(plain.item).sum()))
        if self.gradient_budget == 0.0 or mass <= FAINT * self._natural_mass(gains):
            return 1.0
        return self.gradient_budget * min(gains.size, self.n) / mass

    @abstractmethod
    def _natural_mass(self, gains: Float64Array) -> float:
        """How large the loss's gradients are by nature; a gradient is faint compared with it."""

    @abstractmethod
    def _plain(self, scores: Float64Array, gains: Float64Array, context: ListContext) -> ListGradient:
        """Loss and gradient without budget and squared term."""
