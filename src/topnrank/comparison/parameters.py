"""Models before they are fitted: fresh copies of them, and their parameters as JSON."""

import copy
import hashlib
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from topnrank.comparison.competitors import Competitor
from topnrank.models.base import Model
from topnrank.models.persistence import encode

_RUN_ONLY = ("num_threads",)
"""Parameters that do not change what is computed."""


def fresh(model: Model | Competitor, *, seed_offset: int = 0, one_thread: bool = False) -> Model | Competitor:
    """A copy that has learnt nothing; models of this library may get another seed and one thread."""
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
    """Not private, and not learnt: what `fit` leaves ends in an underscore by custom."""
    return not (name.startswith("_") or name.endswith("_"))


def _pickle_digest(value: object) -> str | None:
    try:
        return _digest(pickle.dumps(value))
    except Exception:  # whatever an object of others does when it is asked to be pickled
        return None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
