"""The rows of a comparison: named models, the controls among them."""

import copy
import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topnrank.errors import ParameterError
from topnrank.experiments.compare.competitors import Competitor
from topnrank.models.base import Model
from topnrank.models.controls import ItemMean, Popularity, Random
from topnrank.models.persistence import encode
from topnrank.models.registry import MODELS

# ----------------------------------------------------------------------------------------------------
# Models before they are fitted: fresh copies of them, and their parameters as JSON.


_RUN_ONLY = ("num_threads",)
"""Parameters that do not change what is computed."""


def fresh(model: Model | Competitor, *, seed_offset: int = 0, one_thread: bool = False) -> Model | Competitor:
    """A copy that has learned nothing; models of this library may get another seed and one thread."""
    if not isinstance(model, Model):
        return copy.deepcopy(model)
    parameters = model.get_params()
    if "seed" in parameters:
        parameters["seed"] += seed_offset
    if "num_threads" in parameters and one_thread:
        parameters["num_threads"] = 1
    return type(model)(**parameters)


def parameters_of(model: Model | Competitor) -> dict[str, Any]:
    """Parameters as JSON; of a competitor its public attributes, without those that end in an underscore."""
    given = model.get_params() if isinstance(model, Model) else _public(model)
    return {name: describe(value) for name, value in given.items()}


def deciding(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that decide what is computed."""
    return {name: value for name, value in parameters.items() if name not in _RUN_ONLY}


def describe(value: Any) -> Any:
    """Any value as JSON that differs where values differ, as far as that can be seen."""
    if isinstance(value, Mapping):
        return {str(key): describe(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [describe(one) for one in value]
    if isinstance(value, np.ndarray):
        return {"array": list(value.shape), "digest": _digest(np.ascontiguousarray(value).tobytes())}
    if isinstance(value, np.dtype):
        return str(value)
    encoded = encode(value)
    return _describe_object(value) if isinstance(encoded, dict) and "custom" in encoded else encoded


def _describe_object(value: Any) -> Any:
    """An object of others: what it is and what it holds; functions and classes by name."""
    if isinstance(name := getattr(value, "__qualname__", None), str):
        return f"{value.__module__}.{name}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if held := getattr(value, "__dict__", None):
        settings = {name: one for name, one in held.items() if _is_public(name) and one is not None}
        return {"object": kind} | {name: describe(one) for name, one in settings.items()}
    return {"object": kind, "digest": _pickle_digest(value)}


def _public(value: object) -> dict[str, Any]:
    return {name: one for name, one in vars(value).items() if _is_public(name) and name != "name"}


def _is_public(name: str) -> bool:
    """Not private, and not learned: what `fit` leaves ends in an underscore by custom."""
    return not (name.startswith("_") or name.endswith("_"))


def _pickle_digest(value: object) -> str | None:
    try:
        return _digest(pickle.dumps(value))
    except Exception:  # whatever an object of others does when it is asked to be pickled
        return None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


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
