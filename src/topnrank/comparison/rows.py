"""The rows of a comparison: named models, the controls among them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topnrank.comparison.competitors import Competitor
from topnrank.comparison.parameters import deciding, parameters_of
from topnrank.errors import ParameterError
from topnrank.models.base import Model
from topnrank.models.baselines import ItemMean, Popularity, Random
from topnrank.models.registry import MODELS

CONTROLS = (ItemMean, Popularity, Random)
"""What every comparison has as rows."""
Models = Sequence[Model | Competitor] | Mapping[str, Model | Competitor]


@dataclass(frozen=True)
class Row:
    """One model of a comparison, not fitted."""

    name: str
    model: Model | Competitor
    parameters: dict[str, Any]
    """As JSON"""


def rows_of(models: Models, *, controls: bool) -> tuple[Row, ...]:
    """Named rows in the given order, then the controls that are missing."""
    if isinstance(models, Mapping):
        rows = [Row(str(name), model, parameters_of(_checked(model))) for name, model in models.items()]
    elif isinstance(models, Sequence):
        rows = _unique([Row(_checked(model).name, model, parameters_of(model)) for model in models])
    else:
        raise ParameterError(
            f"compare needs a list of models or a dict of names and models, got {type(models).__name__}"
        )
    if controls:
        missing = [kind for kind in CONTROLS if not any(isinstance(row.model, kind) for row in rows)]
        rows += [_control(kind(), {row.name for row in rows}) for kind in missing]
    if not rows:
        raise ParameterError("compare needs at least one model, got none")
    return tuple(rows)


def _checked(model: Any) -> Any:
    """A model or a competitor; anything else is named."""
    if isinstance(model, type):
        raise ParameterError(f"compare needs models, got the class {model.__name__}; give {model.__name__}()")
    if isinstance(model, str):
        known = ", ".join(MODELS)
        raise ParameterError(f"compare needs models, got the text {model!r}; give MODELS[name](), names: {known}")
    if not isinstance(model, Model | Competitor):
        raise ParameterError(
            f"compare needs models, or objects with a name and the methods fit(train) and score(users, items), got "
            f"{type(model).__name__}"
        )
    return model


def _control(model: Model, taken: set[str]) -> Row:
    name = f"{model.name} (control)" if model.name in taken else model.name
    return Row(name, model, parameters_of(model))


def _unique(rows: list[Row]) -> list[Row]:
    """Rows of one name get the parameters that differ added to it."""
    named = []
    for row in rows:
        group = [other for other in rows if other.name == row.name]
        differing = {
            name: value
            for name, value in row.parameters.items()
            if any(other.parameters.get(name) != value for other in group)
        }
        setting = ", ".join(f"{name}={_short(value)}" for name, value in differing.items())
        named.append(Row(f"{row.name} ({setting})" if setting else row.name, row.model, row.parameters))
    names = [row.name for row in named]
    if twice := [row for row in named if names.count(row.name) > 1]:
        same = all(deciding(row.parameters) == deciding(twice[0].parameters) for row in twice)
        why = "with the same parameters" if same else "and no names to tell them apart"
        raise ParameterError(f"compare: {twice[0].name!r} is given twice {why}; leave one out or give a dict of names")
    return named


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
