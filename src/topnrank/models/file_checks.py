"""Checks of what a model file holds, before anything uses it.

Kernels read by number and do not look where an array ends: whatever is used as a number of a user, an item or a row is
checked when a file is opened, whoever made it. So are types, shapes and, of the items, that numbers are finite. The
numbers of users and rows, which a large file leaves on disk until they are needed, are compared with checksums only
(`io/tensors.py`).
"""

import math
import types
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Int32Array, Int64Array
from topnrank.data.feedback.by_name import feedback_from_dict
from topnrank.data.feedback.liked import LikedRule
from topnrank.models.attention.model import STATES, TERM_WEIGHTS, SequenceRank
from topnrank.models.attention.shape import Shape
from topnrank.models.base import FitInfo, Fitted, Model, rows_belong_to
from topnrank.models.controls import NEVER
from topnrank.models.linear.neighbors import LIKED, NEIGHBORS, RECENCY_WEIGHTS, WEIGHTS
from topnrank.models.sequence.item_id_order import LAST
from topnrank.models.sequence.links import BIAS, COUNTS, NEXT_BIAS, PAST, TARGETS, VALUES
from topnrank.models.topnrank.model import TopNRank
from topnrank.models.topnrank.next_items import next_model

R = TypeVar("R")

_ROWS_AT_A_TIME = 1 << 22
"""Rows that are checked at a time, so that checking a large file takes little memory."""


class _Form(NamedTuple):
    """What an array must be."""

    columns: str
    """One number for each row (""), or "factors", "channels" (some times the factors), "width", "neighbors", "scales",
    "items" or "users"."""
    dtype: type[np.generic] = np.float32


_FORMS = {
    "user_factors": _Form("factors"),
    "item_factors": _Form("factors"),
    "history_factors": _Form("factors"),
    "rating_factors": _Form("channels"),
    "user_states": _Form("width"),
    "item_vectors": _Form("width"),
    "item_bias": _Form(""),
    "item_offsets": _Form(""),
    "item_free": _Form(""),
    "item_weights": _Form("items"),
    "item_dislikes": _Form("items"),
    "user_kernel": _Form("users"),
    "neighbor_scale": _Form(""),
    NEIGHBORS: _Form("neighbors", np.int32),
    WEIGHTS: _Form("neighbors"),
    LIKED: _Form("", np.uint8),
    RECENCY_WEIGHTS: _Form(""),
    "seen_values": _Form(""),
    "seen_weights": _Form(""),
    "seen_times": _Form("", np.int64),
    "seen_places": _Form("", np.int64),
    COUNTS: _Form("scales", np.int32),
    TARGETS: _Form("", np.int32),
    VALUES: _Form(""),
    PAST: _Form("scales"),
    NEXT_BIAS: _Form(""),
    LAST: _Form("", np.int32),
}
"""By the names of the arrays; how many rows they have says `rows_belong_to`."""


def check_fitted(model: Model, fitted: Fitted) -> None:
    """A ValueError or KeyError that says which part of the file cannot be that of `model`."""
    _check_seen(fitted)
    _check_facts(model, fitted)
    for name in _needed(model, fitted):
        if name not in fitted.arrays:
            raise KeyError(name)
    explicit = _with_choices(model, fitted.info.chosen or {})
    _check_network(model, fitted)
    if NEXT_BIAS in fitted.arrays and (COUNTS not in fitted.arrays or not isinstance(model, TopNRank | SequenceRank)):
        raise ValueError(f"{NEXT_BIAS} is no part of this model")
    if COUNTS in fitted.arrays:
        _check_links(explicit, fitted)
    if LAST in fitted.arrays:
        _check_range(LAST, fitted.arrays[LAST].reshape(-1), len(fitted.items))
    for name, array in fitted.arrays.items():
        _check_form(name, array, fitted)
        finite = array.dtype.kind != "f" or rows_belong_to(name) in ("user", "seen") or np.isfinite(array).all()
        if not finite:
            raise ValueError(f"{name} holds numbers that are not finite")
    if NEIGHBORS in fitted.arrays:
        _check_range(NEIGHBORS, fitted.arrays[NEIGHBORS].reshape(-1), len(fitted.items))


def _with_choices(model: Model, chosen: Mapping[str, Any]) -> Model:
    """The model with the settings that were chosen in training; a TypeError or ParameterError where none chooses so."""
    if chosen.get("epochs") == 0 and type(chosen["epochs"]) is int:  # the factors were not worth a single round
        chosen = {**chosen, "epochs": 1}
    return type(model)(**{**model.get_params(), **chosen})


def _check_facts(model: Model, fitted: Fitted) -> None:
    """The facts are those of this kind of model, and of its arrays."""
    info = fitted.info
    if info.type_weights == []:
        raise ValueError("info.type_weights is empty")
    if info.feedback is not None:
        feedback_from_dict(info.feedback)
    if isinstance(info.half_life_days, str) and info.half_life_days != NEVER:
        raise ValueError(f"info.half_life_days cannot be {info.half_life_days!r:.60}")
    if model.name == "ease" and (len(info.penalties or ()) != 2 or min(info.penalties or ()) <= 0):
        raise ValueError("info.penalties must be two numbers above 0")
    if hasattr(model, "user_representation") and info.value is None:
        raise ValueError("info.value does not say what the numbers of a history are")


def _check_links(explicit: Any, fitted: Fitted) -> None:
    """Links are a CSR by item and scale, whose rows are counted; their targets are items and ascend; the model with its
    settings gives a past the same scales."""
    arrays: dict[str, Any] = dict(fitted.arrays)
    counts, targets = arrays[COUNTS], arrays[TARGETS]
    if counts.ndim != 2 or counts.dtype != np.int32 or (counts.size and counts.min() < 0):
        raise ValueError(f"{COUNTS} are no counts")
    if targets.dtype != np.int32 or targets.ndim != 1:
        raise ValueError(f"{TARGETS} are no list of integers")
    _check_range(TARGETS, targets, len(fitted.items))
    indptr = indptr_from_counts(counts.ravel())
    if indptr[-1] != targets.size:
        raise ValueError(f"{COUNTS} are not those of {TARGETS}")
    _check_ascending(TARGETS, indptr, targets)
    if isinstance(explicit, SequenceRank):
        explicit = explicit.order_model(fitted.info.following or {})
    elif NEXT_BIAS in arrays:
        explicit = next_model(explicit, fitted.info.following)
    weights = explicit.past_of(np.ones(1))
    if weights.shape[1] != counts.shape[1] or not np.isfinite(weights).all():
        raise ValueError(f"{COUNTS} have {counts.shape[1]} scales, the settings have {weights.shape[1]}")


def _check_network(model: Model, fitted: Fitted) -> None:
    """The arrays inside a network fit each other, and only a model with a network has some."""
    found = {name for name in fitted.arrays if rows_belong_to(name) == "network"}
    if not isinstance(model, SequenceRank):
        if found:
            raise ValueError(f"{min(found)} is no part of this model")
        return
    positions, layers = fitted.arrays["network_positions"], fitted.arrays["network_qkv"]
    if positions.ndim != 2 or layers.ndim != 3 or positions.size == 0 or not len(layers):
        raise ValueError("network_positions and network_qkv are no tables")
    if positions.shape[1] % model.heads:
        raise ValueError(f"{model.heads} heads do not share a width of {positions.shape[1]}")
    for name, size in model.shape_of(fitted.arrays).sizes(len(fitted.items)).items():
        array = fitted.arrays[name]
        found.discard(name)
        if array.shape != size or array.dtype != np.float32:
            raise ValueError(f"{name} holds {array.dtype} of shape {array.shape}, not float32 of shape {size}")
    if found:
        raise ValueError(f"{min(found)} is no part of this model")
    if model.terms != "none":
        kinds = len(set(model.order_model(fitted.info.following or {}).all_kinds))
        if fitted.arrays[TERM_WEIGHTS].size != kinds:
            raise ValueError(f"{TERM_WEIGHTS} are {fitted.arrays[TERM_WEIGHTS].size}, the terms {kinds}")


def check_numbers(fitted: Fitted) -> None:
    """A ValueError where a number of a user or of a row is not finite; reads the whole file."""
    for name, array in fitted.arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def _check_seen(fitted: Fitted) -> None:
    """The items that each user was trained on: a CSR, items ascending."""
    indptr, indices = fitted.indptr, fitted.indices
    if indptr.dtype != np.int64 or indices.dtype != np.int32 or indptr.ndim != 1 or indices.ndim != 1:
        raise ValueError("the seen items are not lists of integers")
    if indptr.size != len(fitted.users) + 1 or indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError("the seen items are not those of the users")
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("the seen items of a user end before they begin")
    _check_range("seen.indices", indices, len(fitted.items))
    _check_ascending("the seen items of a user", indptr, indices)


def _check_range(name: str, numbers: np.ndarray[Any, Any], n_items: int) -> None:
    for first in range(0, numbers.size, _ROWS_AT_A_TIME):
        part = numbers[first : first + _ROWS_AT_A_TIME]
        if part.min() < 0 or part.max() >= n_items:
            raise ValueError(f"{name} names an item below 0 or beyond the last of {n_items}")


def _check_ascending(name: str, indptr: Int64Array, indices: Int32Array) -> None:
    """The numbers of each row of a CSR ascend."""
    for first in range(0, indices.size - 1, _ROWS_AT_A_TIME):
        part = indices[first : first + _ROWS_AT_A_TIME + 1]
        falls = np.flatnonzero(part[1:] <= part[:-1]) + (first + 1)
        if falls.size and (indptr[np.searchsorted(indptr, falls)] != falls).any():
            raise ValueError(f"{name} do not ascend")


def _needed(model: Model, fitted: Fitted) -> list[str]:
    """Names of the arrays that a model of this kind computes with."""
    if model.name == "ease":
        by_users = ["user_kernel", "item_free"]
        by_items = ["item_weights", *(["item_dislikes"] if fitted.info.dislikes else [])]
        return [*(by_users if "user_kernel" in fitted.arrays else by_items), "seen_weights"]
    if model.name == "neighbor-ridge":
        return [NEIGHBORS, WEIGHTS, LIKED]
    if model.name in ("transitions", "next-item-ridge"):
        return [COUNTS, TARGETS, VALUES, BIAS, PAST, "seen_times", "seen_weights"]
    if isinstance(model, SequenceRank):
        links = [COUNTS, TARGETS, VALUES, NEXT_BIAS, PAST, TERM_WEIGHTS]
        return [STATES, *Shape(1, 1, 1, 1).sizes(1), *(links if model.terms != "none" else [])]
    if model.name == "item-id-order":
        return [LAST]
    if not hasattr(model, "user_representation"):
        return [] if model.name == "random" else ["item_bias"]
    names = ["user_factors", "item_factors", "item_bias"]
    if model.user_representation == "history":
        names += ["history_factors", "rating_factors"]
        names += [] if fitted.info.type_weights is not None else ["item_offsets"]
    return names + ([NEIGHBORS, WEIGHTS, LIKED] if NEIGHBORS in fitted.arrays else [])


def _check_form(name: str, array: np.ndarray[Any, Any], fitted: Fitted) -> None:
    if rows_belong_to(name) == "network":
        return
    sizes = {"user": len(fitted.users), "seen": len(fitted.indices), "item": len(fitted.items), "scalar": 1}
    if COUNTS in fitted.arrays:
        sizes["link"] = int(fitted.arrays[COUNTS].sum(dtype=np.int64))
    rows = sizes[rows_belong_to(name)]
    if array.ndim == 0 or len(array) != rows:
        raise ValueError(f"{name} has {len(array) if array.ndim else 'no'} rows, not {rows}")
    form = _FORMS.get(name)
    if form is None:
        raise ValueError(f"{name} is no part of any model")
    shape = (rows,) if not form.columns else (rows, _columns(form.columns, fitted))
    if form.columns in ("items", "users") and array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, which is not square")
    if array.shape != shape or array.dtype != form.dtype:
        wanted = f"{np.dtype(form.dtype)} of shape {shape}"
        raise ValueError(f"{name} holds {array.dtype} of shape {array.shape}, not {wanted}")


def _columns(meaning: str, fitted: Fitted) -> int:
    if meaning == "items":
        return len(fitted.items)
    if meaning == "users":
        return len(fitted.users)
    widths = {"factors": "item_factors", "channels": "item_factors", "neighbors": NEIGHBORS, "scales": COUNTS}
    widths["width"] = "item_vectors"
    first = widths[meaning]
    found = fitted.arrays[first]
    width = found.shape[1] if found.ndim == 2 else 0
    if width == 0:
        raise ValueError(f"{first} has no columns")
    return width * len(fitted.info.type_weights or [0]) if meaning == "channels" else width


# ----------------------------------------------------------------------------------------------------
# Facts.


def info_of_json(facts: Any) -> FitInfo:
    """The facts of a file as a FitInfo; a ValueError names the first of another type."""
    if not isinstance(facts, Mapping):
        raise ValueError(f"info must be an object, got {facts!r:.60}")
    liked = facts.get("liked")
    if isinstance(liked, Mapping):
        facts = {**facts, "liked": _as_record(LikedRule, "info.liked", liked)}
    return _as_record(FitInfo, "info", facts)


def _as_record(kind: type[R], what: str, facts: Mapping[str, Any]) -> R:
    """The record of these facts; a ValueError names the first that it does not have or that is of another type."""
    hints = get_type_hints(kind)
    for name, value in facts.items():
        if name not in hints:
            raise ValueError(f"{what} has no {name!r}")
        if not is_a(value, hints[name]):
            raise ValueError(f"{what}.{name} cannot be {value!r:.60}")
    return kind(**facts)


def is_a(value: Any, annotation: Any) -> bool:
    """Whether a value read from JSON is of the annotated type; numbers must be finite, but for those in records."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(is_a(value, one) for one in inside)
    if origin is Literal:
        return value in inside
    if origin is list:
        return isinstance(value, list) and all(is_a(one, inside[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(isinstance(v, float) or is_a(v, inside[1]) for v in value.values())
    if annotation is Any:
        return True
    if annotation is None or annotation is type(None):
        return value is None
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, annotation)
