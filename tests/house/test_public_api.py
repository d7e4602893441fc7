"""The names of `import topnrank`, and how little that imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import topnrank


def test_all_names_are_listed_once():
    assert sorted(topnrank.__all__) == dir(topnrank)
    assert len(set(topnrank.__all__)) == len(topnrank.__all__)


@pytest.mark.parametrize("name", topnrank.__all__)
def test_every_name_can_be_imported_and_is_documented(name):
    value = getattr(topnrank, name)
    if callable(value):
        assert value.__doc__


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No topnrank attribute nothing"):
        _ = topnrank.nothing


def test_type_checkers_see_the_same_names():
    """Type checkers take a name of a stub as public only if it is imported under its own name."""
    stub = ast.parse(Path(topnrank.__file__).with_suffix(".pyi").read_text())
    aliases = [alias for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in aliases)
    assert sorted(alias.name for alias in aliases) == topnrank.__all__


@pytest.mark.process
def test_importing_the_package_imports_nothing_heavy():
    script = "import sys, topnrank; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "topnrank" in done.stdout.split()
    assert not {"numba", "pyarrow", "rich", "typer", "numpy"} & set(done.stdout.split())
