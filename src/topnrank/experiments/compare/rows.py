"""The rows of a comparison: named models that are not fitted yet, the controls among them."""

import copy
import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topnrank.errors import ParameterError
from topnrank.evaluation.foreign import Competitor
from topnrank.models.base import Model
from topnrank.models.controls import ItemMean, Popularity, Random, RecentPopularity
from topnrank.models.factor.model import FactorModel
from topnrank.models.factor.recipe import Task
from topnrank.models.persistence import encode
from topnrank.models.registry import MODELS
from topnrank.models.sequence.item_id_order import ItemIdOrder
from topnrank.models.topnrank.model import TopNRank
from topnrank.models.topnrank.recipe import requested_task

CONTROLS = (ItemMean, Popularity, RecentPopularity, Random)
"""Rows of every comparison, unless refused; RecentPopularity only where the data have times."""
RUN_ONLY = ("num_threads",)
"""Parameters that do not change what is computed."""
Models = Sequence[Model | Competitor] | Mapping[str, Model | Competitor]


@dataclass(frozen=True)
class Row:
    """One model of a comparison, not fitted."""

    name: str
    model: Model | Competitor
    parameters: dict[str, Any]
    """As JSON"""
    kind: str = ""
    """The name of the model"""

    def identity(self) -> list[Any]:
        """What decides what the model computes, as JSON: its class, its name, and its parameters but those of the run."""
        deciding = {name: value for name, value in self.parameters.items() if name not in RUN_ONLY}
        return [f"{type(self.model).__module__}.{type(self.model).__qualname__}", self.kind, deciding]

    def fresh_model(
        self, *, seed_offset: int = 0, one_thread: bool = False, one_round: bool = False
    ) -> Model | Competitor:
        """An unfitted copy of the model; models of this library may get another seed, one thread, one round of training."""
        if not isinstance(self.model, Model):
            return copy.deepcopy(self.model)
        parameters = self.model.get_params()
        if "seed" in parameters:
            parameters["seed"] += seed_offset
        if "num_threads" in parameters and one_thread:
            parameters["num_threads"] = 1
        if one_round:
            parameters |= {name: 1 for name in ("epochs", "iterations") if parameters.get(name) is not None}
        return type(self.model)(**parameters)


def check_rows(models: Models) -> None:
    """ParameterError for what is no list or dict of models and competitors."""
    if not isinstance(models, Mapping | Sequence):
        raise ParameterError(
            f"compare needs a list of models or a dict of names and models, got {type(models).__name__}"
        )
    for model in models.values() if isinstance(models, Mapping) else models:
        if isinstance(model, type):
            raise ParameterError(f"compare needs models, got the class {model.__name__}; give {model.__name__}()")
        if isinstance(model, str):
            known = ", ".join(MODELS)
            raise ParameterError(f"compare needs models, got the text {model!r}; give MODELS[name](), names: {known}")
        if not isinstance(model, Model | Competitor):
            raise ParameterError(
                f"compare needs models, or objects with the methods fit(train) and score(users, items), got "
                f"{type(model).__name__}"
            )


def common_task(models: Models) -> Task:
    """ "rated" where every model but controls and those of other libraries is trained for that; else "catalog"."""
    given = models.values() if isinstance(models, Mapping) else models
    trained = [model for model in given if isinstance(model, Model) and not isinstance(model, CONTROLS)]
    tasks = {model.resolve().task if isinstance(model, FactorModel) else "catalog" for model in trained}
    return "rated" if tasks == {"rated"} else "catalog"


def make_rows(models: Models, *, controls: bool, times: bool, task: Task, ids: bool = False) -> tuple[Row, ...]:
    """Named rows in the given order, then the controls that are missing.

    `times` says whether the data have timestamps, `ids` whether item ids tell something of an order that is asked for.

    A TopNRank whose task is open gets `task`.
    """
    check_rows(models)
    named = isinstance(models, Mapping)
    given = list(models.values() if isinstance(models, Mapping) else models)
    for place, model in enumerate(given):
        if isinstance(model, TopNRank) and requested_task(model) is None:
            given[place] = type(model)(**model.get_params() | {"task": task})
    kinds = [str(getattr(model, "name", type(model).__name__)) for model in given]
    names = [str(name) for name in models] if named else kinds
    rows = [Row(name, model, parameters_of(model), kind) for name, model, kind in zip(names, given, kinds, strict=True)]
    if len(set(names)) < len(names):
        rows = _with_distinct_names(rows)
    if controls:
        for kind in (*CONTROLS, *([ItemIdOrder] if ids else [])):
            if (times or kind is not RecentPopularity) and not any(isinstance(row.model, kind) for row in rows):
                control = kind()
                taken = any(row.name == control.name for row in rows)
                rows.append(
                    Row(
                        f"{control.name} (control)" if taken else control.name,
                        control,
                        parameters_of(control),
                        control.name,
                    )
                )
    if not rows:
        raise ParameterError("compare needs at least one model, got none")
    return tuple(rows)


def _with_distinct_names(rows: Sequence[Row]) -> list[Row]:
    """Adds to each name that occurs several times the parameters in which those rows differ."""
    named = []
    for row in rows:
        group = [other for other in rows if other.name == row.name]
        differing = [
            f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in row.parameters.items()
            if any(other.parameters.get(name) != value for other in group)
        ]
        named.append(replace(row, name=f"{row.name} ({', '.join(differing)})") if differing else row)
    names = [row.name for row in named]
    if twice := [row for row in named if names.count(row.name) > 1]:
        same = all(row.identity() == twice[0].identity() for row in twice)
        why = "with the same parameters" if same else "and no names to tell them apart"
        raise ParameterError(f"compare: {twice[0].name!r} is given twice {why}; leave one out or give a dict of names")
    return named


# -- parameters as JSON -------------------------------------------------------------------------------------------------


def parameters_of(model: Model | Competitor) -> dict[str, Any]:
    """Parameters as JSON; of a competitor its public attributes, without those that end in an underscore."""
    if isinstance(model, Model):
        return {name: describe(value) for name, value in model.get_params().items()}
    return {name: describe(value) for name, value in _public_attributes(model).items() if name != "name"}


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
    if not (isinstance(encoded, dict) and "custom" in encoded):
        return encoded
    if isinstance(name := getattr(value, "__qualname__", None), str):  # a function or a class
        return f"{value.__module__}.{name}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if getattr(value, "__dict__", None):
        settings = {name: one for name, one in _public_attributes(value).items() if one is not None}
        return {"object": kind} | {name: describe(one) for name, one in settings.items()}
    try:
        return {"object": kind, "digest": _digest(pickle.dumps(value))}
    except Exception:  # whatever an object of another library does when it is asked to be pickled
        return {"object": kind, "digest": None}


def _public_attributes(value: object) -> dict[str, Any]:
    """Neither private nor learned: what `fit` leaves ends in an underscore by custom."""
    return {name: one for name, one in vars(value).items() if not name.startswith("_") and not name.endswith("_")}


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
