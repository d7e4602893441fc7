"""Installs the peers of the benchmark suite, each on its own, and notes which did not install and what pip said.

    .venv-bench/bin/python benchmarks/suite_install.py     (`make bench` does it)

What numbers depend on may not move when a further peer comes (a list of constraints sees to it); a peer that wants other
versions, RecTools, gets an environment of its own. The notes go to peers.json in the environment. Standard library only.
"""

import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PEERS = {
    "implicit": ("implicit",),
    "lightfm": ("lightfm", "lightfm-next"),
    "cornac": ("cornac",),
    "lenskit": ("lenskit",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "ranx": ("ranx",),
    "ir_measures": ("ir-measures",),
    "rectools": ("rectools",),
}
"""By the name to import: what to install, the first that can be."""
ALONE = ("rectools",)
"""Peers with an environment of their own."""
FIXED = ("numpy", "numba", "scipy", "pyarrow")
"""What stays as the package itself wanted it."""
NOTES = "peers.json"


def pip(python: str, *arguments: str) -> tuple[bool, str]:
    """Whether pip did it, and all it said."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode == 0, done.stdout


def validation_error(said: str) -> str:
    """The last line of what pip said that names an error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\w*error|\w*exception):", line, re.IGNORECASE)]
    telling = [line for line in errors if "subprocess-exited-with-error" not in line]
    return (telling or errors or lines or ["pip said nothing"])[-1]


def fixed_versions() -> Iterator[tuple[str, str]]:
    """What is installed now of the packages and peers that may not move."""
    for package in (*FIXED, *(package for packages in PEERS.values() for package in packages)):
        with suppress(PackageNotFoundError):
            yield package, version(package)


def own_python(root: Path, name: str) -> str:
    """The interpreter of a peer with an environment of its own."""
    return str(root / "alone" / name / "bin" / "python")


def found_version(python: str, package: str) -> str:
    """The version installed in an environment."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def install(root: Path, name: str, packages: tuple[str, ...]) -> dict[str, Any]:
    """Tries the packages one after another; returns which is installed, or what pip said of each."""
    python, constraints = sys.executable, root / "constraints.txt"
    if name in ALONE:
        venv.create(root / "alone" / name, with_pip=True, clear=True)
        python = own_python(root, name)
        constraints.write_text("")
    else:
        constraints.write_text("".join(f"{package}=={found}\n" for package, found in fixed_versions()))
    said: dict[str, str] = {}
    for package in packages:
        print(f"installing {package} ...", file=sys.stderr, flush=True)
        done, output = pip(python, "install", "--quiet", "--constraint", str(constraints), package)
        if done:
            return {"installed": package, "version": found_version(python, package), "instead of": said}
        said[package] = validation_error(output)
    return {"missing": "; ".join(f"{package}: {words}" for package, words in said.items())}


def main() -> None:
    """Installs all and writes the notes."""
    root = Path(sys.prefix)
    notes = {name: install(root, name, packages) for name, packages in PEERS.items()}
    (root / NOTES).write_text(json.dumps(notes, indent=2) + "\n")
    for name, note in notes.items():
        print(f"{name}: {note.get('installed') or 'MISSING, ' + note['missing']}", file=sys.stderr)


if __name__ == "__main__":
    main()
