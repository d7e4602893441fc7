"""Recency: older feedback counts less."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from topnrank._checks import require_number
from topnrank._typing import Int64Array
from topnrank.data.feedback.policies import Feedback, ItemCount, Policy
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

DAY = 86_400.0
"""Seconds"""


@final
@dataclass(frozen=True)
class Recency(Policy):
    """The weights of `base` times 2^(-age / half-life); age is the time from a row to the latest training row.

    Timestamps are seconds. Several types of a pair are combined by `base`, before they age. Rows later than the latest
    training row have age 0.
    """

    kind: ClassVar[str] = "recency"

    base: Feedback
    half_life_days: float = 30.0
    latest: int | None = None
    """The moment from which ages are counted; None for the latest of the training rows."""

    def __post_init__(self) -> None:
        require_number("Recency.half_life_days", self.half_life_days, above=0)
        if self.latest is not None:
            require_number("Recency.latest", self.latest)
        if not isinstance(self.base, Feedback):
            raise ParameterError(f"Recency.base must be a feedback policy, such as Unary(), got {self.base!r}")

    def fitted_to(self, data: Interactions) -> "Recency":
        """The policy that counts ages from the latest row of `data`."""
        return self if self.latest is not None else replace(self, latest=int(_timestamps(data).max()))

    def __call__(self, data: Interactions) -> Interactions:
        """`data` with the weights of `base`, faded by age."""
        latest = self.fitted_to(data).latest
        weighted = self.base(data)
        assert weighted.weights is not None
        assert latest is not None
        ages = np.maximum(latest - _timestamps(weighted), 0) / (DAY * self.half_life_days)
        # not below the smallest normal number: an old like stays a like and does not become a row of weight 0
        fade = np.maximum(np.exp2(-ages), np.finfo(np.float32).tiny)
        return weighted.with_weights((weighted.weights * fade).astype(np.float32))


def timeless(policy: Feedback) -> Feedback:
    """`policy` for rows without times, such as the history of a new user: none of them ages."""
    if isinstance(policy, Recency):
        return timeless(policy.base)
    return replace(policy, base=timeless(policy.base)) if isinstance(policy, ItemCount) else policy


def _timestamps(data: Interactions) -> Int64Array:
    if data.timestamps is None:
        raise DataError("Recency needs timestamps and the data has none; name that column or choose another feedback")
    if len(data) == 0:
        raise DataError("Recency needs rows and the data has none")
    return data.timestamps
