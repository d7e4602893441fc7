"""Model files (one safetensors file each) and parameter files (JSON)."""

import dataclasses
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from topnrank._checks import one_of
from topnrank.data.feedback.by_name import feedback_from_dict
from topnrank.data.feedback.policies import Feedback
from topnrank.data.ids import IdMap
from topnrank.errors import InputError, ModelFileError, ParameterError
from topnrank.io.atomic import write_atomically
from topnrank.io.paths import parse_path
from topnrank.io.tensors import (
    VERIFIED_BYTES,
    pack_ids,
    prefixed,
    read_file,
    unpack_ids,
    without_prefix,
    write_file,
)
from topnrank.kernels.jit import threads_for
from topnrank.losses import steps
from topnrank.models.base import Fitted, Model
from topnrank.training import SGD, AdaGrad

# ----------------------------------------------------------------------------------------------------
# save and load: one safetensors file per model.


_PLAIN = (SGD, AdaGrad, steps.ReLU, steps.Sigmoid, steps.Laplace, steps.Ramp)
"""Parameter objects that are rebuilt from their class name and fields."""


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes ids, seen items, learned arrays and facts."""
    from topnrank import __version__

    fitted = model.fitted
    arrays = pack_ids("user_ids", fitted.users.ids) | pack_ids("item_ids", fitted.items.ids)
    arrays |= {"seen.indptr": fitted.indptr, "seen.indices": fitted.indices}
    arrays |= prefixed("model.", fitted.arrays)
    facts = {
        "model": model.name,
        "parameters": {name: encode(value) for name, value in model.get_params().items()},
        "info": fitted.info.to_dict(),
        "versions": {"topnrank": __version__, "numpy": np.__version__, "python": platform.python_version()},
    }
    write_file(path, "model", arrays, facts)


def load(path: str | os.PathLike[str], *, mapped: bool = True, verify: bool = False) -> Model:
    """The model in a file, which may come from anybody: it is checked before it is used, and holds no code.

    Parameters
    ----------
    mapped : whether large arrays stay in the file until they are needed, and are shared by all processes that load it.
        Such a file may be replaced or deleted meanwhile, as `save` and `mv` do, but not overwritten in place, as `cp`
        does: the answers would change, or the process end by SIGBUS. False reads everything into memory.
    verify : whether to compare all numbers with their checksums, also in a mapped file of more than 64 MiB.
    """
    from topnrank.models.file_checks import check_fitted, check_numbers, info_of_json, is_a
    from topnrank.models.registry import MODELS

    facts, arrays = read_file(path, "model", mapped=mapped, verify=verify)
    kind = MODELS.get(str(facts.get("model")))
    if kind is None:
        raise ModelFileError(
            f"{path}: holds a model of kind {facts.get('model')!r}, which this version does not know; upgrade"
        )
    try:
        model = kind(**{name: decode(value) for name, value in facts["parameters"].items()})
        users, items = IdMap(unpack_ids("user_ids", arrays)), IdMap(unpack_ids("item_ids", arrays))
        if not is_a(facts.get("versions"), dict[str, str]):
            raise ValueError("it does not say which versions wrote it")
        learned, info = without_prefix("model.", arrays), info_of_json(facts["info"])
        fitted = Fitted(users, items, arrays["seen.indptr"], arrays["seen.indices"], learned, info)
        check_fitted(model, fitted)
        if verify or sum(array.nbytes for array in arrays.values()) <= VERIFIED_BYTES:
            check_numbers(fitted)
        model._fitted = fitted
        with threads_for(1):
            model.score_block(np.arange(min(1, len(users))))  # fails now if a part is missing
    except _UNFIT as error:
        raise ModelFileError(
            f"{path}: lacks a part of the model or holds one that does not fit ({error}); make the file again"
        ) from error
    return model


_UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What parts of a file that do not fit each other raise."""


def encode(value: Any) -> Any:
    """A hyper-parameter as JSON."""
    if isinstance(value, Missing):
        return {"custom": value.name}
    if isinstance(value, _PLAIN):
        return {"object": type(value).__name__, **dataclasses.asdict(value)}
    if isinstance(value, Feedback):
        return {"feedback": value.to_dict()}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): encode(item) for key, item in value.items()}}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"custom": f"{type(value).__module__}.{type(value).__qualname__}"}


def decode(value: Any) -> Any:
    """The hyper-parameter that `encode` wrote; an object of the user's own comes back as its name."""
    if not isinstance(value, dict):
        return value
    if "feedback" in value:
        return feedback_from_dict(value["feedback"])
    if "mapping" in value:
        return {key: decode(item) for key, item in value["mapping"].items()}
    if "object" in value:
        kinds = {kind.__name__: kind for kind in _PLAIN}
        return kinds[value["object"]](**{key: item for key, item in value.items() if key != "object"})
    return Missing(value["custom"])


@dataclasses.dataclass(frozen=True)
class Missing:
    """Stands for an object of the user's own that a file cannot hold; `set_params` puts the real one back."""

    name: str
    """Its class"""

    def h(self, x: Any) -> Any:
        """ParameterError: the step function is not there."""
        raise ParameterError(
            f"the smoothing {self.name} is an object of your own that the file cannot hold; "
            "put it back with set_params(smoothing=...)"
        )

    dh = h


# ----------------------------------------------------------------------------------------------------
# Hyper-parameters in a JSON file: what `tune` finds, `train` and `compare` take.


_NOT_WRITTEN = ("num_threads", "engine")
"""Parameters that belong to the machine, not to the model."""


def write_params(path: str | os.PathLike[str], model: Model, **facts: Any) -> None:
    """Writes the kind of `model`, its hyper-parameters, and JSON-able facts about where they come from."""
    parameters = {name: encode(value) for name, value in model.get_params().items() if name not in _NOT_WRITTEN}
    text = json.dumps({"model": model.name, "parameters": parameters, **facts}, indent=2, allow_nan=False) + "\n"

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def read_params(path: str | os.PathLike[str]) -> tuple[str | None, dict[str, Any]]:
    """Kind of model and hyper-parameters of a file that `write_params` wrote, or of a plain JSON object of them."""
    from topnrank.models.registry import MODELS

    content = _json_object(path)
    if "parameters" not in content:
        return None, {name: _decoded(path, name, value) for name, value in content.items()}
    if not isinstance(content["parameters"], dict):
        raise ParameterError(f"{path}: 'parameters' must be a JSON object of names and values; write the file again")
    name = one_of(f"{path}: the model", content.get("model"), tuple(MODELS))
    return name, {key: _decoded(path, key, value) for key, value in content["parameters"].items()}


def _json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    file = parse_path(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"{path}: cannot be read ({error.strerror or error}); give the file of 'tune --save-params'"
        ) from None
    try:
        content = json.loads(text.decode("utf-8"))
    except RecursionError:
        raise ParameterError(f"{path}: is nested too deeply; give the file of 'tune --save-params'") from None
    except ValueError as error:
        raise ParameterError(f"{path}: is not JSON ({error}); give the file of 'tune --save-params'") from None
    if not isinstance(content, dict):
        raise ParameterError(f"{path}: holds no JSON object; give the file of 'tune --save-params'")
    return content


def _decoded(path: str | os.PathLike[str], name: str, value: Any) -> Any:
    """The value of a hyper-parameter; a plain object, such as penalties by group, stands for itself."""
    if not isinstance(value, dict) or not {"feedback", "mapping", "object", "custom"} & value.keys():
        return value
    try:
        return decode(value)
    except InputError:
        raise
    except _UNFIT as error:
        raise ParameterError(f"{path}: {name} cannot be read ({error}); write the file again") from None
