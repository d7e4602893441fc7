"""ListPMF: likelihood of the order of the gains in the Plackett-Luce model (after Liu and others 2014).

    L_u = sum_i [ ln sum_{l in B_i} e^{s_l} - s_i ]          B_i = item i and all that stand below it, by gains
    dL_u/df_j = s'(f_j) [ sum_{i: j in B_i} e^{s_j} / sum_{l in B_i} e^{s_l}  -  1 ]          s = f, or g(f) by option

The items are drawn one after another, the best first, each with probability e^s over what is left; L_u is minus the
logarithm of the probability that they come in the order of their gains. Only that order matters, not their sizes.

Ties are the rule with ratings; what the published model does about them is not known here:

* `ties="breslow"`: B_i = all items of gain <= a_i, those of the same gain included (Breslow's likelihood for ties).
* `ties="shuffled"`: equal gains stand in an order drawn anew at each visit, the lowest draw first; on the average over
  visits no order among them is learned.
* `ties="fixed"`: equal gains stand in the order of the list, which teaches that order as if it meant something.

ListPMF as published (two permutation models, maximum a posteriori) was read in abstract only; this is its
Plackett-Luce form. Whether its scores pass through a logistic function is not known here, hence `link`.
`normalize` divides by m: the gradient of a list otherwise grows with its length.

Cautions. Where the gains differ and s = f, the loss falls for ever as the gaps grow: the penalty alone bounds the
scores. A list of equal gains is not silent: it pulls its scores together. Sampled rows count as rows of gain 0.

Equal scores: the first of three items is drawn with probability 1/3, the second of two with 1/2:

    >>> result = PlackettLuce().evaluate(np.zeros(3), np.array([3.0, 2.0, 1.0]))
    >>> bool(np.isclose(result.value, np.log(6))), result.user.round(4).tolist()
    (True, [-0.6667, -0.1667, 0.8333])
"""

from dataclasses import dataclass

import numpy as np

from topnrank._checks import one_of
from topnrank._typing import BoolArray, Float64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient
from topnrank.losses.links import LINKS, apply_link
from topnrank.rng import uniforms

TIES = ("breslow", "shuffled", "fixed")


@dataclass(frozen=True)
class PlackettLuce:
    """Minus the log-likelihood of the order of the gains."""

    ties: str = "breslow"
    """What equal gains mean: "breslow", "shuffled" or "fixed"."""
    link: str = "identity"
    """"identity" or "sigmoid"."""
    normalize: bool = False
    """Whether the loss is divided by the length of the list."""

    def __post_init__(self) -> None:
        one_of("ties", self.ties, TIES)
        one_of("link", self.link, LINKS)

    def evaluate(self, scores: Float64Array, gains: Float64Array, context: ListContext = PLAIN_CONTEXT) -> ListGradient:
        """Loss and its gradient, pair by pair: O(m^2); every item counts."""
        s, slope = apply_link(self.link, scores)
        left = np.where(self._below(gains, context), s, -np.inf)  # row i: what is left when item i is drawn
        top = left.max(axis=1)
        weights = np.exp(left - top[:, None])
        totals = weights.sum(axis=1)
        losses = (top - s) + np.log(totals)
        share = 1.0 / scores.size if self.normalize else 1.0
        G = share * slope * ((weights / totals[:, None]).sum(axis=0) - 1.0)
        return ListGradient(share * float(losses.sum()), G, G, scores.size)

    def _below(self, gains: Float64Array, context: ListContext) -> BoolArray:
        """(m, m) whether item l (column) belongs to B_i (row)."""
        if self.ties == "breslow":
            return gains[None, :] <= gains[:, None]
        draws = uniforms(context.key, 0, gains.size) if self.ties == "shuffled" else np.zeros(gains.size)
        place = np.empty(gains.size, np.int64)
        place[np.lexsort((draws, -gains))] = np.arange(gains.size)
        return place[None, :] >= place[:, None]
