"""Facts about data, for people and machines."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topnrank import Interactions, Model
    from topnrank._typing import Float32Array, Int64Array

MAX_VALUES = 20
"""Up to so many different ratings are counted one by one; beyond, quantiles are told."""


def describe(data: "Interactions") -> dict[str, Any]:
    """Sizes, list lengths, and what is known of ratings, types, weights and times."""
    import numpy as np

    lengths = np.diff(data.indptr)
    facts: dict[str, Any] = {
        "rows": len(data),
        "users": data.n_users,
        "items": data.n_items,
        "density": int(data.pair_starts.sum()) / (data.n_users * data.n_items),
        "rows_per_user": {"min": int(lengths.min()), "median": float(np.median(lengths)), "max": int(lengths.max())},
        "users_with_one_row": users_with_one_row(data.indptr),
    }
    if data.ratings is not None:
        facts["ratings"] = _distribution(data.ratings)
    if data.types is not None:
        counts = np.bincount(data.types, minlength=len(data.type_names))
        facts["types"] = dict(zip(data.type_names, counts.tolist(), strict=True))
    if data.weights is not None:
        facts["weights"] = _distribution(data.weights)
    if data.timestamps is not None:
        first, last = int(data.timestamps.min()), int(data.timestamps.max())
        facts["timestamps"] = {"first": first, "last": last, "dates": _dates(first, last)}
    return facts


def users_with_one_row(indptr: "Int64Array") -> int:
    """How many users give no order to learn from."""
    import numpy as np

    return int((np.diff(indptr) == 1).sum())


def training_facts(model: "Model") -> dict[str, Any]:
    """What the model remembers of its training: rounds, validation, the last record."""
    info = model.fitted.info.to_dict()
    told = {name: info[name] for name in ("task", "rounds", "best_round", "validation") if name in info}
    return told | ({"last_round": info["history"][-1]} if info.get("history") else {})


def _distribution(values: "Float32Array") -> dict[str, Any]:
    """How often each value occurs, or quantiles where there are many."""
    import numpy as np

    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_VALUES:
        return {f"{value:g}": count for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)}
    quantiles = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist()
    return dict(zip(("min", "25 %", "median", "75 %", "max"), quantiles, strict=True))


def _dates(first: int, last: int) -> str:
    """Dates, as far as the timestamps can be seconds since 1970."""
    try:
        return f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d} to {datetime.fromtimestamp(last, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return "not seconds since 1970"
