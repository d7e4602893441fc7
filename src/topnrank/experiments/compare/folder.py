"""The folder of a comparison: one small file for what all cells share, and one for each cell, written when it is finished.

A cell's file is named by a digest of all that decides its numbers, so a comparison that is started again, with more models
or more repeats if one likes, finds what is finished and computes only the rest.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import ModelFileError, OutputError
from topnrank.experiments.compare.result import Cell
from topnrank.io.paths import local_path
from topnrank.io.tensors import pack_ids, read_file, unpack_ids, write_file

if TYPE_CHECKING:
    from topnrank.experiments.compare.result import Comparison

HEAD = "comparison.safetensors"
_HEAD_KIND, _CELL_KIND = "comparison", "comparison cell"
Keys = Mapping[str, Sequence[str]]
"""Row name -> the key of each repeat's cell."""


def digest(content: Any) -> str:
    """A word that stands for JSON content."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Folder:
    """A folder that belongs to one comparison, or to none yet."""

    path: Path
    identity: dict[str, Any]
    """What all cells share: data, split, protocols, metrics, ..."""

    @classmethod
    def of(cls, folder: str | os.PathLike[str], identity: Mapping[str, Any]) -> "Folder":
        """Makes the folder where it is missing; refuses one that holds another comparison."""
        path = local_path(folder, "the folder of a comparison")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: the folder cannot be made ({error.strerror}); choose another place") from None
        if (path / HEAD).exists():
            _check_same(path / HEAD, read_file(path / HEAD, _HEAD_KIND)[0].get("identity", {}), identity)
        return cls(path, dict(identity))

    def find(self, key: str) -> Cell | None:
        """The cell of that key if it is finished; one that failed, or whose file is damaged, is to be computed again."""
        try:
            cell = _read_cell(self._file(key))
        except ModelFileError:
            return None
        return cell if cell.error is None else None

    def write_cell(self, cell: Cell) -> None:
        """Keeps a cell, atomically."""
        arrays = {f"{protocol} {metric}": values for (protocol, metric), values in cell.values.items()}
        facts = asdict(replace(cell, values={}))
        write_file(self._file(cell.facts["key"]), _CELL_KIND, arrays, facts)

    def write_head(self, comparison: "Comparison", keys: Keys) -> None:
        """Keeps what all cells share, and the keys of the cells."""
        facts = {
            "identity": self.identity,
            "keys": {name: list(row) for name, row in keys.items()},
            "protocols": comparison.protocols,
            "metrics": comparison.metrics,
            "repeats": comparison.repeats,
            "settings": comparison.settings,
            "facts": comparison.facts,
        }
        write_file(self.path / HEAD, _HEAD_KIND, pack_ids("users", comparison.users), facts)

    def write(self, comparison: "Comparison") -> None:
        """Keeps a whole comparison."""
        keys: dict[str, list[str]] = {}
        for name in comparison.models:
            cells = [comparison.cells[name, repeat] for repeat in range(comparison.repeats)]
            keyed = [cell if "key" in cell.facts else _with_key(cell) for cell in cells]
            for cell in keyed:
                self.write_cell(cell)
            keys[name] = [cell.facts["key"] for cell in keyed]
        self.write_head(comparison, keys)

    def _file(self, key: str) -> Path:
        return self.path / f"cell-{key}.safetensors"


def read_comparison(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of the comparison in `folder`."""
    path = local_path(folder, "the folder of a comparison")
    if path.is_dir() and not (path / HEAD).exists():
        raise ModelFileError(f"{folder}: holds no comparison (there is no {HEAD}); give the folder of one")
    facts, arrays = read_file(path / HEAD, _HEAD_KIND)
    keys: dict[str, list[str]] = facts["keys"]
    here = Folder(path, facts["identity"])
    missing = [key for row in keys.values() for key in row if not here._file(key).exists()]
    if missing:
        total = sum(map(len, keys.values()))
        raise ModelFileError(
            f"{folder}: the comparison is not finished, {len(missing)} of {total} cells are missing; "
            "start the same comparison with this folder again"
        )
    cells = {
        (name, repeat): replace(_read_cell(here._file(key)), model=name)
        for name, row in keys.items()
        for repeat, key in enumerate(row)
    }
    names = ("protocols", "metrics")
    shared = {name: tuple(facts[name]) for name in names} | {n: facts[n] for n in ("repeats", "settings", "facts")}
    return {"models": tuple(keys), "users": unpack_ids("users", arrays), "cells": cells, **shared}


def _read_cell(path: Path) -> Cell:
    facts, arrays = read_file(path, _CELL_KIND)
    values = {(name.partition(" ")[0], name.partition(" ")[2]): array for name, array in arrays.items()}
    known = {name: value for name, value in facts.items() if name not in ("kind", "format")}
    return Cell(**(known | {"values": values}))


def _with_key(cell: Cell) -> Cell:
    """A cell that was not made by `compare` gets a key of its own."""
    return replace(cell, facts={**cell.facts, "key": digest([cell.model, cell.repeat])})


def _check_same(path: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in sorted({*earlier, *now}):
        if earlier.get(name) != now.get(name):
            raise ModelFileError(
                f"{path}: belongs to another comparison ({name} was {earlier.get(name)!r}, now it is {now.get(name)!r}); "
                "give another folder or delete this one"
            )
