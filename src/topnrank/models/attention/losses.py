"""Losses of the next item among all items, or among a sample of them, in PyTorch: one list for each row of a window.

    softmax    L = -f_y + ln(e^{f_y} + sum_{j != y} w_j e^{f_j})
    list-wise  L = w(R),  R = sum_{j != y} w_j h(f_j - f_y),  dw/dR = 1 / ((R + 2) ln^p(R + 2))
    SL@K       L = 2 g((f_y - f_(K)) / tau) * softmax,  f_(K) the K-th highest score, held constant; g the logistic function

w_j is 1 where all items are candidates; of a sample each stands for w_j items. The list-wise loss is Top-N-Rank's
(`losses/weighted_dcg`) of a list with one liked item and exact ranks, h the Laplace step; p = 2 is DCG.
"""

from dataclasses import dataclass
from typing import Any

import torch

LOSSES = ("softmax", "listwise", "sl@k")


@dataclass(frozen=True)
class NextItemLoss:
    """One of the losses with its settings."""

    name: str
    discount: float = -1.0
    """p of the list-wise loss"""
    steepness: float = 2.0
    """C of its step e^{Cx} / 2 (x <= 0), 1 - e^{-Cx} / 2"""
    top: int = 20
    """K of SL@K"""
    temperature: float = 1.0
    """tau of SL@K"""

    def __call__(self, scores: Any, wanted: Any, weights: Any = None) -> Any:
        """(P,) the loss of each list.

        Parameters
        ----------
        scores : (P, C) of the candidates.
        wanted : (P,) which of them is the next item.
        weights : (P, C) how many items each candidate stands for, 0 for the next item itself; None: all 1.
        """
        own = scores.gather(1, wanted[:, None])
        if self.name == "listwise":
            return self._of_rank(self._rank(scores - own, wanted, weights))
        if weights is None:
            value = torch.logsumexp(scores, dim=1) - own[:, 0]
        else:
            others = torch.logsumexp(scores + torch.log(weights), dim=1)
            value = torch.logaddexp(own[:, 0], others) - own[:, 0]
        if self.name == "softmax":
            return value
        with torch.no_grad():
            bar = scores.topk(min(self.top, scores.shape[1]), dim=1).values[:, -1]
            share = 2.0 * torch.sigmoid((own[:, 0] - bar) / self.temperature)
        return share * value

    def _rank(self, lead: Any, wanted: Any, weights: Any) -> Any:
        """R: how many items are above, counted smoothly; `lead` (P, C) is f_j - f_y."""
        below = torch.exp(self.steepness * lead.clamp(max=0.0))
        above = torch.exp(-self.steepness * lead.clamp(min=0.0))
        steps = 0.5 * (1.0 + below - above)
        if weights is not None:
            return (steps * weights).sum(dim=1)
        return steps.sum(dim=1) - 0.5  # without the item itself

    def _of_rank(self, R: Any) -> Any:
        log = torch.log(R + 2.0)
        if self.discount == 1.0:
            return torch.log(log)
        return log ** (1.0 - self.discount) / (1.0 - self.discount)
