"""Hyper-parameters in a JSON file: what `tune` finds, `train` and `compare` take."""

import json
import os
from pathlib import Path
from typing import Any

from topnrank.errors import InputError, ParameterError, one_of
from topnrank.models.base import Model
from topnrank.models.persistence import decode, encode
from topnrank.models.registry import MODELS
from topnrank.places import place
from topnrank.storage import write_atomically

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
    content = _json_object(path)
    if "parameters" not in content:
        return None, {name: _decoded(path, name, value) for name, value in content.items()}
    if not isinstance(content["parameters"], dict):
        raise ParameterError(f"{path}: 'parameters' must be a JSON object of names and values; write the file again")
    name = one_of(f"{path}: the model", content.get("model"), tuple(MODELS))
    return name, {key: _decoded(path, key, value) for key, value in content["parameters"].items()}


def _json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    file = place(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"{path}: cannot be read ({error.strerror or error}); give the file of 'tune --save-params'"
        ) from None
    try:
        content = json.loads(text.decode("utf-8"))
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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParameterError(f"{path}: {name} cannot be read ({error}); write the file again") from None
