"""ListRank: cross entropy of top-one probabilities (Shi, Larson, Hanjalic 2010).

    L_u = - sum_j p^r_j ln p^s_j          p^r = softmax(a),  p^s = softmax(s),  s_j = g(f_j), g the logistic function
    dL_u/df_j = (p^s_j - p^r_j) s'(f_j)   s'(f) = g(f) (1 - g(f))

a_j is the rating divided by the largest rating there is; the feedback policy "grades" does that. p^r_j is the
probability that item j comes first in the Plackett-Luce model with scores a. The least value of L_u is the entropy of
p^r, reached where s_j = a_j + a constant: the target is the size of a gap between scores, not only its sign.

Departs from the paper, each switched off by the value in brackets:

* `per_item` (False): the loss is multiplied by the length m of the list. The probabilities are of order 1/m, so the
  gradient of an item in the paper's loss shrinks as the list grows.
* `link="identity"` ("sigmoid"): softmax of the raw scores. Then L_u does not change when all scores rise alike, and an
  item bias acts in full.
* `scale` (1.0): multiplies the loss; against a fixed penalty that is a smaller penalty.

Cautions. Divided ratings matter: five stars against one give p^r a ratio of e^0.8 = 2.23, which g can reach (its ratio
stays below e); raw ratings ask for e^4 = 54.6, and the scores saturate. A list of equal gains is not silent: its target
is the uniform distribution, so it pulls its scores together. Sampled rows count as rows of gain 0.

Equal scores against a target of (2/3, 1/3), with the identity as link:

    >>> loss = TopOneCrossEntropy(link="identity", per_item=False)
    >>> result = loss.evaluate(np.zeros(2), np.log([2.0, 1.0]))
    >>> bool(np.isclose(result.value, np.log(2))), result.user.round(4).tolist()
    (True, [-0.1667, 0.1667])
"""

from dataclasses import dataclass

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.links import LINKS, apply_link


def _softmax(x: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Probabilities and their logarithms."""
    below_top = x - np.max(x)
    log_p = below_top - np.log(np.exp(below_top).sum())
    return np.exp(log_p), log_p


@dataclass(frozen=True)
class TopOneCrossEntropy:
    """Cross entropy between the top-one probabilities of the gains and of the scores."""

    link: str = "sigmoid"
    """"sigmoid" (the paper) or "identity"."""
    per_item: bool = True
    """Whether the loss is multiplied by the length of the list; False is the paper's."""
    scale: float = 1.0
    """Multiplies the loss."""

    def __post_init__(self) -> None:
        one_of("link", self.link, LINKS)

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient; every item counts."""
        s, slope = apply_link(self.link, scores)
        p_gains, _ = _softmax(gains)
        p_scores, log_p_scores = _softmax(s)
        factor = self.scale * scores.size if self.per_item else self.scale
        G = factor * (p_scores - p_gains) * slope
        return ListGradient(-factor * float(p_gains @ log_p_scores), G, G, scores.size)
