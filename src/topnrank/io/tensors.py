"""Arrays and facts (JSON) in one safetensors file, written atomically.

A file holds named arrays and, under the key "topnrank" of its metadata, one JSON object with `kind` ("model" or
"checkpoint"), `format` (its version) and whatever the writer adds. No code is ever executed on loading.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from topnrank._typing import FloatArray, IdArray
from topnrank.errors import ModelFileError
from topnrank.io.atomic import write_atomically
from topnrank.io.paths import Location, RemotePath, parse_path

FORMAT = 2
"""Version of the file layout and of the names in it; files of other versions are refused.

1 was written before the names of arrays and parameters changed.
"""

Arrays = dict[str, np.ndarray[Any, Any]]

_DTYPES = {
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    "BOOL": np.dtype(np.bool_),
}
"""The types of safetensors that NumPy has."""


def write_file(path: Location, kind: str, arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Writes `arrays` and `facts` as one file of that kind."""
    header = {"topnrank": json.dumps({"kind": kind, "format": FORMAT, **facts})}
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata=header))


def read_file(path: Location, kind: str, *, mapped: bool = False) -> tuple[dict[str, Any], Arrays]:
    """Facts and arrays of a file of that kind.

    `mapped` arrays are memory-mapped: the system reads the pages that are used and shares them between processes; writes
    stay in this process. The file may be replaced meanwhile, but must not be overwritten in place. A remote file is always
    read into memory.
    """
    file = parse_path(path)
    if file.is_dir():
        raise ModelFileError(f"{path}: is a folder; give the name of a {kind} file")
    if not file.exists():
        raise ModelFileError(f"{path}: there is no such {kind} file")
    if isinstance(file, RemotePath):
        with file.fetched() as copy:
            facts, arrays = _content(copy, kind, str(path), mapped=False)
    elif not os.access(file, os.R_OK):
        raise ModelFileError(f"{path}: may not be read; ask for permission or change it with chmod")
    else:
        facts, arrays = _content(file, kind, str(path), mapped=mapped)
    _check_kind(path, kind, facts)
    return facts, arrays


def _content(file: Path, kind: str, name: str, *, mapped: bool) -> tuple[Any, Arrays]:
    """Facts, not checked yet, and arrays of a file, which messages call `name`."""
    try:
        with safe_open(file, framework="numpy") as content:
            facts = json.loads((content.metadata() or {}).get("topnrank", "null"))
            names = list(content.keys())
            return facts, _mapped(file, names) if mapped else {key: content.get_tensor(key) for key in names}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{name}: is not a topnrank {kind} file, or is damaged or cut off ({error}); "
            "give the right file or make it again"
        ) from error


def _mapped(file: Path, names: list[str]) -> Arrays:
    """The arrays of a safetensors file that `safe_open` has checked: length of the header, header (JSON), numbers."""
    content = np.memmap(file, np.uint8, mode="c")
    begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
    head = json.loads(content[8:begin].tobytes())
    return {name: _array_at(content[begin:], head[name]) for name in names}


def _array_at(numbers: np.ndarray[Any, Any], entry: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    first, end = entry["data_offsets"]
    # plain aligned arrays: kernels take neither np.memmap nor unaligned ones
    array = numbers[first:end].view(np.ndarray).view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return array if array.flags.aligned else array.copy()


def _check_kind(path: Location, kind: str, facts: Any) -> None:
    """A ModelFileError unless the facts are those of a file of that kind and of this format."""
    if not isinstance(facts, dict):
        raise ModelFileError(f"{path}: is a safetensors file, but not one of topnrank; give a {kind} made by topnrank")
    if facts.get("kind") != kind:
        raise ModelFileError(f"{path}: is a topnrank {facts.get('kind')} file; a {kind} file is needed here")
    if facts.get("format") == 1:
        again = "train the model again" if kind == "model" else "delete it and begin again"
        raise ModelFileError(f"{path}: was written by an earlier version of topnrank, whose names differ; {again}")
    if facts.get("format") != FORMAT:
        raise ModelFileError(
            f"{path}: has file format {facts.get('format')}, this version of topnrank reads {FORMAT}; upgrade topnrank"
        )


def pack_ids(name: str, ids: IdArray) -> Arrays:
    """Ids as numeric arrays: integers as they are, strings as UTF-8 bytes and the end of each."""
    if ids.dtype.kind in "iu":
        return {name: ids.astype(np.int64)}
    encoded = [str(value).encode() for value in ids]
    ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
    return {f"{name}.utf8": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def unpack_ids(name: str, arrays: Mapping[str, Any]) -> IdArray:
    """The ids that `pack_ids` packed."""
    if name in arrays:
        return np.asarray(arrays[name])
    text, ends = arrays[f"{name}.utf8"].tobytes(), arrays[f"{name}.ends"]
    starts = np.concatenate([[0], ends[:-1]])
    ids = np.empty(ends.size, object)
    ids[:] = [text[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return ids


def prefixed(prefix: str, arrays: Mapping[str, FloatArray]) -> Arrays:
    """`arrays` with `prefix` before each name."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, FloatArray]) -> Arrays:
    """The arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
