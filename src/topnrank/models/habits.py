"""What people and scikit-learn hand to `fit`: frames, a `y` that is None, and arguments that other libraries know."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import ParameterError

_NOT_HERE = {
    "sample_weight": "weights belong to the rows: give them as the column weight, or data.with_weights(weights), with "
    "feedback='weights'",
    "item_features": "models here learn from interactions alone, without features of items or users",
    "user_features": "models here learn from interactions alone, without features of items or users",
    "groups": "splits keep users together by themselves; use UserFolds as cv",
}
"""Arguments that other libraries have, and what stands in their place here."""


def takes_rows(fit: Callable[..., Any]) -> Callable[..., Any]:
    """`fit` or `partial_fit` that also takes a frame in place of Interactions, and scikit-learn's y=None."""
    name = fit.__name__

    @wraps(fit)
    def taking(self: Any, data: Any, y: Any = None, **options: Any) -> Any:
        if y is not None:
            raise ParameterError(f"{name} takes no y: the ratings are a column of the data, like users and items")
        for unknown in options.keys() & _NOT_HERE.keys():
            raise ParameterError(f"{name} takes no {unknown}: {_NOT_HERE[unknown]}")
        return fit(self, data if isinstance(data, Interactions) else as_interactions(data, name), **options)

    return taking
