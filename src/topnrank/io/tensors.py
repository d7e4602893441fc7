"""Arrays and facts (JSON) in one safetensors file, written atomically, with checksums.

A file holds named arrays and, under the key "topnrank" of its metadata, one JSON object with `kind` ("model" or
"checkpoint"), `format` (its version), whatever the writer adds, `checksums` (BLAKE2b of each array) and `checksum` (of all
else). No code is ever executed on loading.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import FloatArray, IdArray, Int64Array
from topnrank.errors import ModelFileError
from topnrank.io.atomic import write_atomically
from topnrank.io.paths import Location, RemotePath, parse_path

FORMAT = 3
"""Version of the file layout and of the names in it; files of other versions are refused.

1 was written before the names of arrays and parameters changed, 2 before there were checksums.
"""

VERIFIED_BYTES = 64 << 20
"""Mapped files up to this size are read and compared with their checksums when they are opened (some 60 ms); of larger
ones only the head, unless asked for."""

AnyArray = np.ndarray[Any, Any]
Arrays = dict[str, AnyArray]

_DTYPES = {
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    "BOOL": np.dtype(np.bool_),
}
"""The types of safetensors that NumPy has."""
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def write_file(path: Location, kind: str, arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Writes `arrays` and `facts` as one file of that kind."""
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    checksums = {name: _checksum(array) for name, array in sorted(tensors.items())}
    head = {"kind": kind, "format": FORMAT, **facts, "checksums": checksums}
    header = {"topnrank": json.dumps(head | {"checksum": _checksum_of_head(head, tensors)})}
    write_atomically(path, lambda temporary: _write(temporary, tensors, header))


def _write(path: Path, tensors: Arrays, metadata: Mapping[str, str]) -> None:
    """Writes a safetensors file: length of the header, header, numbers, the widest first so that all are aligned.

    Not by `safetensors.save_file`, which writes a further file beside it that a killed process leaves behind for ever.
    """
    entries: dict[str, Any] = {"__metadata__": dict(metadata)}
    ordered, begin = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])), 0
    for name, array in ordered:
        end = begin + array.nbytes
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": array.shape, "data_offsets": [begin, end]}
        begin = end
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for _, array in ordered:
            file.write(array.data)


def read_file(
    path: Location, kind: str, *, mapped: bool = False, verify: bool = False
) -> tuple[dict[str, Any], Arrays]:
    """Facts and arrays of a file of that kind.

    `mapped` arrays are memory-mapped: the system reads the pages that are used and shares them between processes; writes
    stay in this process. The file may be replaced meanwhile, but must not be overwritten in place. A remote file is always
    read into memory. Checksums of arrays are compared in all files that are read as a whole; in mapped ones up to
    VERIFIED_BYTES, or if `verify` is set.
    """
    file = parse_path(path)
    if file.is_dir():
        raise ModelFileError(f"{path}: is a folder; give the name of a {kind} file")
    if not file.exists():
        raise ModelFileError(f"{path}: there is no such {kind} file")
    if isinstance(file, RemotePath):
        with file.fetched() as copy:
            content = _content(copy, kind, str(path), mapped=False)
    elif not file.is_file():
        raise ModelFileError(f"{path}: is not a regular file but a pipe or a device; give the name of a {kind} file")
    elif not os.access(file, os.R_OK):
        raise ModelFileError(f"{path}: may not be read; ask for permission or change it with chmod")
    else:
        content = _content(file, kind, str(path), mapped=mapped)
    _check_kind(path, kind, content.facts)
    size = sum(array.nbytes for array in content.arrays.values())
    whole = verify or not mapped or isinstance(file, RemotePath) or size <= VERIFIED_BYTES
    facts, damaged = _without_checksums(content, whole=whole)
    if damaged is not None:
        raise ModelFileError(
            f"{path}: is damaged: {damaged} is not what was written, by its checksum; make the file again, or take a copy"
        )
    return facts, content.arrays


def fingerprint_of_head(path: str | os.PathLike[str]) -> str:
    """Sixteen letters that differ whenever the content of a local file does: its head has the checksums of all arrays."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return hashlib.blake2b(file.read(min(size, 1 << 26)), digest_size=8).hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error}); check the file") from None


class _Content(NamedTuple):
    """What is in a file; facts are not checked yet."""

    facts: Any
    arrays: Arrays


def _without_checksums(content: _Content, *, whole: bool) -> tuple[dict[str, Any], str | None]:
    """The facts, and words for what differs from its checksum; the arrays are looked at if `whole`."""
    facts = dict(content.facts)
    checksum = facts.pop("checksum", None)
    if checksum != _checksum_of_head(facts, content.arrays):
        return facts, "its head"
    expected = facts.pop("checksums")
    differ = (name for name, array in content.arrays.items() if whole and _checksum(array) != expected.get(name))
    name = next(differ, None)
    return facts, None if name is None else f"the array {name}"


def _checksum(array: AnyArray) -> str:
    return hashlib.blake2b(array.data, digest_size=16).hexdigest()


def _checksum_of_head(facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> str:
    layout = [[name, array.dtype.str, array.shape] for name, array in sorted(arrays.items())]
    return hashlib.blake2b(json.dumps([facts, layout]).encode(), digest_size=16).hexdigest()


def _content(file: Path, kind: str, name: str, *, mapped: bool) -> _Content:
    """What is in a file, which messages call `name`; it is opened once, since it may be replaced at any time."""
    try:
        with file.open("rb") as opened:
            if mapped:
                content: AnyArray = np.memmap(opened, np.uint8, mode="c")
            else:
                content = np.fromfile(opened, np.uint8)
        entries, numbers = _parsed(content)
        metadata = entries.pop("__metadata__", None) or {}
        facts = json.loads(metadata.get("topnrank", "null"))
        return _Content(facts, _arrays(entries, numbers))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(
            f"{name}: is not a topnrank {kind} file, or is damaged or cut off ({error}); "
            "give the right file or make it again"
        ) from error


def _parsed(content: AnyArray) -> tuple[dict[str, Any], AnyArray]:
    """The header (JSON) and the numbers of a safetensors file: length of the header, header, numbers."""
    begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
    if content.size < 8 or not 8 < begin <= content.size:
        raise ValueError("the length of its header is wrong")
    entries = json.loads(content[8:begin].tobytes())
    if not isinstance(entries, dict):
        raise ValueError("its header is no JSON object")
    return entries, content[begin:]


def _arrays(entries: Mapping[str, Any], numbers: AnyArray) -> Arrays:
    """The arrays of a safetensors file, which fill it without gaps."""
    arrays, end = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        dtype, shape, (first, last) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
            raise ValueError(f"shape or place of {name} is wrong")
        if first != end or last > numbers.size or last - first != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} has another size than its shape says, or lies elsewhere")
        # plain aligned arrays: kernels take neither np.memmap nor unaligned ones
        array = numbers[first:last].view(np.ndarray).view(dtype).reshape(shape)
        arrays[name], end = array if array.flags.aligned else array.copy(), last
    if end != numbers.size:
        raise ValueError(f"{numbers.size - end} bytes at its end belong to nothing")
    return arrays


def _check_kind(path: Location, kind: str, facts: Any) -> None:
    """A ModelFileError unless the facts are those of a file of that kind and of this format."""
    if not isinstance(facts, dict):
        raise ModelFileError(f"{path}: is a safetensors file, but not one of topnrank; give a {kind} made by topnrank")
    if facts.get("kind") != kind:
        raise ModelFileError(f"{path}: is a topnrank {facts.get('kind')} file; a {kind} file is needed here")
    again = "train the model again" if kind == "model" else "delete it and begin again"
    if facts.get("format") == 1:
        raise ModelFileError(f"{path}: was written by an earlier version of topnrank, whose names differ; {again}")
    if facts.get("format") == 2:
        raise ModelFileError(f"{path}: was written by an earlier version of topnrank, without checksums; {again}")
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
    """The ids that `pack_ids` packed; a ValueError where they cannot be such."""
    if name in arrays:
        _require_form(name, arrays[name], np.int64)
        return np.asarray(arrays[name])
    text, ends = arrays[f"{name}.utf8"], arrays[f"{name}.ends"]
    _require_form(f"{name}.utf8", text, np.uint8)
    _require_form(f"{name}.ends", ends, np.int64)
    starts: Int64Array = np.concatenate([[0], ends])
    if (starts[1:] < starts[:-1]).any() or starts[-1] != text.size:
        raise ValueError(f"{name}.ends does not divide the text")
    content = text.tobytes()
    ids = np.empty(ends.size, object)
    ids[:] = [content[a:b].decode() for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    return ids


def _require_form(name: str, array: AnyArray, dtype: type[np.generic]) -> None:
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name} holds {array.dtype} of shape {array.shape}, not a list of {np.dtype(dtype)}")


def prefixed(prefix: str, arrays: Mapping[str, FloatArray]) -> Arrays:
    """`arrays` with `prefix` before each name."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, FloatArray]) -> Arrays:
    """The arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
