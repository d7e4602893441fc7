"""The folder of a comparison: one small file for what all cells share, and one for each finished cell.

A cell's file is named by a digest of all that decides its numbers, so a comparison that is started again, with more models
or more repeats if wanted, finds what is finished and computes only the rest.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import ModelFileError
from topnrank.experiments.compare.result import Cell
from topnrank.io.atomic import output_error
from topnrank.io.paths import local_path
from topnrank.io.tensors import pack_ids, read_file, unpack_ids, write_file

if TYPE_CHECKING:
    from topnrank.experiments.compare.result import Comparison

HEAD = "comparison.safetensors"
_HEAD_KIND, _CELL_KIND = "comparison", "comparison cell"
Keys = Mapping[str, Sequence[str]]
"""Row name -> the key of each repeat's cell."""


def digest(content: Any) -> str:
    """A digest of JSON content, as hexadecimal text."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Folder:
    """A folder with the cells of one comparison."""

    path: Path
    identity: dict[str, Any]
    """Shared by all cells: data, split, protocols, metrics, ..."""

    @classmethod
    def open(cls, folder: str | os.PathLike[str], identity: Mapping[str, Any]) -> "Folder":
        """Makes the folder where it is missing; refuses one that holds another comparison."""
        path = local_path(folder, "the folder of a comparison")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sentence = f"{folder}: the folder cannot be made ({error.strerror}); choose another place"
            raise output_error(sentence, error, has_begun=False) from None
        if (path / HEAD).exists():
            earlier = read_file(path / HEAD, _HEAD_KIND)[0].get("identity", {})
            for name in sorted({*earlier, *identity}):
                if (before := earlier.get(name)) != (now := identity.get(name)):
                    raise ModelFileError(
                        f"{path / HEAD}: belongs to another comparison ({name} was {before!r}, now it is {now!r}); "
                        "give another folder or delete this one"
                    )
        return cls(path, dict(identity))

    def find(self, key: str) -> Cell | None:
        """The cell of that key if it is finished; one that failed, or whose file is damaged, is to be computed again."""
        try:
            cell = _read_cell(self._file(key))
        except ModelFileError:
            return None
        return cell if cell.error is None else None

    def write_cell(self, cell: Cell) -> None:
        """Writes a cell, atomically."""
        arrays = {f"{protocol} {metric}": values for (protocol, metric), values in cell.values.items()}
        facts = asdict(replace(cell, values={}))
        write_file(self._file(cell.facts["key"]), _CELL_KIND, arrays, facts)

    def write_head(self, comparison: "Comparison", keys: Keys) -> None:
        """Writes what all cells share, and the keys of the cells."""
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
        """Writes a whole comparison; cells that were not made by `compare` get a key by row and repeat."""
        keys: dict[str, list[str]] = {}
        for name in comparison.models:
            keys[name] = []
            for repeat in range(comparison.repeats):
                cell = comparison.cells[name, repeat]
                key = cell.facts.get("key") or digest([name, repeat])
                self.write_cell(replace(cell, facts={**cell.facts, "key": key}))
                keys[name].append(key)
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
    return {
        "models": tuple(keys),
        "protocols": tuple(facts["protocols"]),
        "metrics": tuple(facts["metrics"]),
        "users": unpack_ids("users", arrays),
        "cells": cells,
        **{name: facts[name] for name in ("repeats", "settings", "facts")},
    }


def _read_cell(path: Path) -> Cell:
    facts, arrays = read_file(path, _CELL_KIND)
    values = {(name.partition(" ")[0], name.partition(" ")[2]): array for name, array in arrays.items()}
    known = {name: value for name, value in facts.items() if name not in ("kind", "format")}
    return Cell(**(known | {"values": values}))
