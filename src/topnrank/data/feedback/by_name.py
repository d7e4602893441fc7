"""Feedback policies by name: what models, files and the command line ask for."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from topnrank._checks import one_of
from topnrank.data.feedback import policies
from topnrank.data.feedback.grades import Graded, Grades, Relevance
from topnrank.data.feedback.policies import Centered, ConversionRate, Feedback, ItemCount, Unary, WeightColumn
from topnrank.data.feedback.recency import Recency
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

_RATINGS = (policies.Threshold, Centered, Grades, Relevance, policies.Amounts)
_EVENTS = (WeightColumn, Unary, ItemCount, ConversionRate, policies.EventWeights, Recency)
_KINDS: Mapping[str, type[Any]] = {policy.kind: policy for policy in (*_RATINGS, *_EVENTS)}


def feedback_from(value: str | Feedback | None, data: Interactions) -> Feedback:
    """The policy `value`, by name with its defaults, or for None the natural one of the columns of `data`."""
    if isinstance(value, Feedback):
        return value
    if value is not None:
        return feedback_named(value)
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


def feedback_named(name: str) -> Feedback:
    """The policy of that name with its defaults; not "events" and "recency", which have required settings."""
    names = tuple(known for known in _KINDS if known not in ("events", "recency"))
    policy: Feedback = _KINDS[one_of("feedback", name, names)]()
    return policy


def fitted_feedback(policy: Feedback, data: Interactions) -> Feedback:
    """`policy` fitted to `data` (rates, unit, largest grade, latest time), to weigh other rows by the same values."""
    if isinstance(policy, ConversionRate):
        return policy.event_weights(data)
    if isinstance(policy, ItemCount | Recency):
        policy = replace(policy, base=fitted_feedback(policy.base, data))
    return policy.fitted_to(data) if isinstance(policy, Centered | Graded | Recency) else policy


def remembered(policy: Feedback) -> dict[str, Any] | None:
    """The policy as JSON values for a model file; None for a class that is not of topnrank."""
    return policy.to_dict() if type(policy) in _KINDS.values() else None


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


def fitted_policy(given: Feedback | str | None, known: Mapping[str, Any] | None) -> Feedback | str:
    """The policy of a model fitted to ratings: what is `known` of the training rows, else the one that was given.

    Early model files hold ratings as they are, without a unit.
    """
    if known is not None:
        return feedback_from_dict(known)
    return Centered(1.0) if given in (None, "centered", Centered()) else given
