"""The result of an evaluation, with the convention behind its numbers."""

import math
from dataclasses import dataclass
from typing import Any, final

from topnrank._checks import one_of
from topnrank._html import html_table
from topnrank._typing import Float64Array, IdArray
from topnrank.data.interactions import Ties
from topnrank.errors import DataError
from topnrank.evaluation.metrics import METRICS, NOTES

CANDIDATES = {
    "rated": "rated: each user's own test items are ranked",
    "catalog": "catalog: all items of the model but the user's training items are ranked",
    "catalog with seen items": "catalog: all items of the model are ranked, training items included",
}


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of one model on one test set: `result["ndcg@10"]` is a mean over users.

    Raises DataError if no user has a relevant test item.
    """

    values: dict[str, float]
    """Mean of each metric over the users for whom it is defined; NaN if there is none. Coverage is a fraction of items."""
    per_user: dict[str, Float64Array]
    """Each metric but coverage, one value per user of `user_ids`; NaN for those left out of its mean."""
    user_ids: IdArray
    """Original ids of the users with test rows whom the model knows."""
    protocol: str
    """"rated" or "catalog"."""
    exclude_seen: bool
    """Whether "catalog" left out the user's training items."""
    rule: str
    """When a row is relevant, in words."""
    all_relevant: bool
    """Whether every test item is relevant."""
    n_users: int
    """Users in the means."""
    n_excluded: int
    """Users left out because they have no relevant item."""
    n_unknown_users: int
    """Test users left out because the model does not know them."""
    n_unknown_items: int
    """Test items the model does not know; they rank last (rated) or count as not found (catalog)."""
    n_users_without_rows: int
    """Of the `n_users`, how many the model knows by id only: they have no training row."""
    n_items_without_rows: int
    """Test items that the model knows by id only."""
    known: dict[str, float]
    """As `values`, over the users with training rows alone."""
    n_seen: int
    """Test rows left out because the user has the item in training (catalog)."""
    undefined: dict[str, int]
    """Of the `n_users`, how many a metric's mean leaves out because it is not defined for their lists; without zeros."""

    asked: str = ""
    """What a model with several scores was asked for, in words."""
    ties: Ties | None = None
    """Of rows that a split by time made: how it took items of one moment, and how many there were."""

    def __post_init__(self) -> None:
        if not self.n_users:
            raise DataError(
                f"none of the {self.n_excluded} users that the model knows has a relevant test item left ({self.rule}); "
                "lower relevant or hold out more rows"
            )

    def __getitem__(self, metric: str) -> float:
        return self.values[one_of("metric", metric, tuple(self.values))]

    def __str__(self) -> str:
        width = max(map(len, self.values))
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self.values.items()]
        return "\n".join([*lines, "", self.convention])

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.values.items())
        return f"Evaluation({self.protocol}, {self.n_users} users: {means})"

    def _repr_html_(self) -> str:
        header, columns = ["metric", "mean over users"], [self.values]
        if self.n_users_without_rows:
            header, columns = [*header, "over users with training rows"], [self.values, self.known]
        rows = [[name, *(f"{values[name]:.4f}" for values in columns)] for name in self.values]
        return html_table(header, rows, notes=[self.convention])

    @property
    def convention(self) -> str:
        """How the numbers were made: candidates, relevance, cut, ties, users left out."""
        with_seen = self.protocol == "catalog" and not self.exclude_seen
        kinds = dict.fromkeys(name.partition("@")[0] for name in self.values)
        first = "; ".join(
            [
                f"Protocol {CANDIDATES['catalog with seen items' if with_seen else self.protocol]}",
                f"relevant: {self.rule}",
                "gain 1 for a relevant item, cut at k or the end of the list",
                *(NOTES[kind] for kind in kinds if kind in NOTES),
                "tied scores count with the expected value under random order",
                *(f"{kind} is a function of the caller, ties in random order" for kind in kinds if kind not in METRICS),
                *([self.asked] if self.asked else []),
                *([str(self.ties)] if self.ties is not None else []),
            ]
        )
        second = (
            f"Mean over {self.n_users} users; users left out: {self.n_excluded} without a relevant item, "
            f"{self.n_unknown_users} unknown to the model"
        )
        if self.n_users_without_rows:
            others = self.n_users - self.n_users_without_rows
            means = ", ".join(f"{name} {value:.4f}" for name, value in self.known.items())
            second += f"; {self.n_users_without_rows} of the {self.n_users} users have no training row"
            second += f"; over the {others} others: {means}" if others else ""
        if self.n_items_without_rows:
            second += f"; {self.n_items_without_rows} test items have no training row"
        if self.n_seen:
            second += f"; {self.n_seen} test rows left out as seen in training"
        if self.n_unknown_items:
            fate = "rank last" if self.protocol == "rated" else "count as not found"
            second += f"; {self.n_unknown_items} test items unknown to the model {fate}"
        if self.protocol == "rated" and self.all_relevant:
            second += (
                "; every ranked item is relevant, so all orders have the same ndcg, map, mrr, precision and recall"
            )
        return f"{first}. {second}."

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values per user, ready for JSON; an undefined mean is None."""
        return {
            "protocol": self.protocol,
            "values": {name: None if math.isnan(value) else value for name, value in self.values.items()},
            "n_users": self.n_users,
            "n_excluded": self.n_excluded,
            "n_unknown_users": self.n_unknown_users,
            "n_unknown_items": self.n_unknown_items,
            "n_users_without_rows": self.n_users_without_rows,
            "n_items_without_rows": self.n_items_without_rows,
            "known": {name: None if math.isnan(value) else value for name, value in self.known.items()},
            "n_seen": self.n_seen,
            "undefined": dict(self.undefined),
            "convention": self.convention,
        }
