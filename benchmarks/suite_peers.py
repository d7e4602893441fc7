"""Which peers can be measured, in which version, and why the others cannot."""

import importlib
import json
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from suite_install import ALONE, NOTES, PEERS, own_python

_NEVER_TRIED = "not installed here; `make bench` installs it"


@dataclass
class Peers:
    """The other libraries; one that cannot be used is noted with the reason, and its measures are left out."""

    notes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def here(cls, root: Path | None = None) -> "Peers":
        """Those of this environment, with what pip said of those that did not install."""
        file = Path(root or sys.prefix) / NOTES
        said = json.loads(file.read_text()) if file.exists() else {}
        return cls({name: _note(name, said.get(name, {})) for name in PEERS})

    def has(self, name: str) -> bool:
        """Whether it can be measured."""
        return "missing" not in self.notes[name]

    def use(self, name: str, module: str) -> ModuleType | None:
        """A module of the peer; None where it is missing or cannot be imported, which is noted."""
        if not self.has(name):
            return None
        try:
            return importlib.import_module(module)
        except Exception as error:  # whatever a package that does not fit its surroundings may raise
            self.lose(name, f"{module} cannot be imported: {last_line(error)}")
            return None

    def lose(self, name: str, why: str) -> None:
        """Notes that a peer failed."""
        self.notes[name] = {**self.notes[name], "missing": why}


def _note(name: str, said: dict[str, Any]) -> dict[str, Any]:
    if name in ALONE:
        python = own_python(Path(sys.prefix), name)
        return {**said, "python": python} if "installed" in said else {"missing": said.get("missing", _NEVER_TRIED)}
    for package in PEERS[name]:
        try:
            return {**said, "installed": package, "version": version(package)}
        except PackageNotFoundError:
            continue
    return {"missing": said.get("missing", _NEVER_TRIED)}


def last_line(error: Exception) -> str:
    """What an error says, in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1]}"
