"""The result of an evaluation, which carries the convention behind its numbers."""

import math
from dataclasses import dataclass
from typing import Any, final

from topnrank._checks import one_of
from topnrank._typing import Float64Array, IdArray


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of one model on one test set: `result["ndcg@10"]` is a mean over users."""

    values: dict[str, float]
    """Mean of each metric over the users for whom it is defined; NaN if there is none. Coverage is a share of items."""
    per_user: dict[str, Float64Array]
    """Each metric but coverage, one value per user of `user_ids`; NaN for those left out of its mean."""
    user_ids: IdArray
    """Original ids of the users with test rows whom the model knows."""
    protocol: str
    """"rated" or "catalog"."""
    convention: str
    """How the numbers were made: candidates, relevance, cut, ties, users left out."""
    n_users: int
    """Users in the means."""
    n_excluded: int
    """Users left out because they have no relevant item."""
    n_unknown_users: int
    """Test users left out because the model does not know them."""
    n_unknown_items: int
    """Test items the model does not know; they rank last (rated) or stay unfound (catalog)."""
    n_seen: int
    """Test rows left out because the user has the item in training (catalog)."""
    undefined: dict[str, int]
    """Of the `n_users`, how many a metric's mean leaves out because it is not defined for their lists."""

    def __getitem__(self, metric: str) -> float:
        return self.values[one_of("metric", metric, tuple(self.values))]

    def __str__(self) -> str:
        width = max(map(len, self.values))
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self.values.items()]
        return "\n".join([*lines, "", self.convention])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values per user, ready for JSON; an undefined mean is None."""
        return {
            "protocol": self.protocol,
            "values": {name: None if math.isnan(value) else value for name, value in self.values.items()},
            "n_users": self.n_users,
            "n_excluded": self.n_excluded,
            "n_unknown_users": self.n_unknown_users,
            "n_unknown_items": self.n_unknown_items,
            "n_seen": self.n_seen,
            "undefined": dict(self.undefined),
            "convention": self.convention,
        }
