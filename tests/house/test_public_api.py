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
    with pytest.raises(AttributeError, match="module 'topnrank' has no attribute 'nothing'"):
        _ = topnrank.nothing


def test_type_checkers_see_the_same_names():
    """The block for type checkers imports exactly the names of the lazy table."""
    tree = ast.parse(Path(topnrank.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {(part.module, alias.name) for part in block.body for alias in part.names}
    homes = {(topnrank._HOME[name], name) for name in topnrank.__all__ if name != "__version__"}
    assert seen == homes


@pytest.mark.process
def test_importing_the_package_imports_nothing_heavy():
    script = "import sys, topnrank; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "topnrank" in done.stdout.split()
    assert not {"numba", "pyarrow", "rich", "typer", "numpy"} & set(done.stdout.split())
