"""Feedback policies by name: what models, files and the command line ask for."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from topnrank.data.feedback import (
    Centered,
    ConversionRate,
    EventWeights,
    Feedback,
    ItemCount,
    Threshold,
    Unary,
    WeightColumn,
)
from topnrank.data.grades import Grades, Relevance
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError, one_of

_KINDS: Mapping[str, type[Any]] = {
    policy.kind: policy
    for policy in (
        Threshold,
        Centered,
        Grades,
        Relevance,
        WeightColumn,
        Unary,
        ItemCount,
        ConversionRate,
        EventWeights,
    )
}


def feedback_from(value: str | Feedback | None, data: Interactions) -> Feedback:
    """The policy `value`, by name with its defaults, or for None the natural one of the columns of `data`."""
    if value is None:
        return _natural(data)
    if isinstance(value, Feedback):
        return value
    names = tuple(name for name in _KINDS if name != "events")  # events have no default weights
    policy: Feedback = _KINDS[one_of("feedback", value, names)]()
    return policy


def feedback_from_dict(described: Mapping[str, Any]) -> Feedback:
    """The policy that `to_dict` described."""
    kind = _KINDS[one_of("feedback kind", described.get("kind"), tuple(_KINDS))]
    arguments = {name: value for name, value in described.items() if name != "kind"}
    if isinstance(base := arguments.get("base"), Mapping):
        arguments["base"] = feedback_from_dict(base)
    known = {one.name for one in fields(kind)}
    if unknown := sorted(arguments.keys() - known):
        raise ParameterError(f"feedback {described['kind']!r} has no setting {unknown[0]!r}; remove it")
    policy: Feedback = kind(**arguments)
    return policy


def _natural(data: Interactions) -> Feedback:
    if data.ratings is not None:
        return Centered()
    if data.weights is not None:
        return WeightColumn()
    if data.types is not None:
        names = ", ".join(f"{name!r}: ..." for name in data.type_names)
        raise DataError(
            f"the data has feedback types and no weights; say what they mean with EventWeights({{{names}}})"
        )
    return Unary()
