"""Imports go downwards only, as in ARCHITECTURE.md."""

import ast
from pathlib import Path

import pytest

import topnrank

ROOT = Path(topnrank.__file__).parent
FOUNDATION = {"errors", "rng", "_typing", "places", "storage"}
MAY_IMPORT = {
    "errors": set(),
    "rng": set(),
    "_typing": set(),
    "places": {"places", "errors"},
    "storage": {"places", "errors", "_typing"},
    "kernels": {"kernels", "_typing"},
    "data": {"data"} | FOUNDATION,
    "objectives": {"objectives", "data"} | FOUNDATION,
    "scorers": {"scorers", "data"} | FOUNDATION,
    "cluster": {"cluster"} | FOUNDATION,
    "engines": {"engines", "kernels", "scorers", "objectives", "data", "cluster"} | FOUNDATION,
    "training": {"training", "engines", "kernels", "scorers", "objectives", "data"} | FOUNDATION,
    "evaluation": {"evaluation", "kernels", "data"} | FOUNDATION,
}
MAY_IMPORT["models"] = {"models", "__init__"}.union(*MAY_IMPORT.values())
MAY_IMPORT["comparison"] = {"comparison", *MAY_IMPORT["models"]}
MAY_IMPORT["paper"] = {"paper", *MAY_IMPORT["comparison"]}
MAY_IMPORT["spark"] = {"spark", *MAY_IMPORT["models"]}
MAY_IMPORT["cli"] = {"cli", "spark", *MAY_IMPORT["paper"]}
MAY_IMPORT["testing"] = {"testing", *MAY_IMPORT["models"]}
MAY_IMPORT["__main__"] = {"cli"}
EXCEPTIONS = {
    ("data/datasets/synthetic.py", "kernels"),
    ("data/duplicates.py", "kernels"),
    ("spark/session/shipping.py", "models"),
}
FOREIGN = {
    "objectives": {"numba", "pyarrow", "rich", "typer"},
    "scorers": {"numba", "pyarrow", "rich", "typer"},
    "kernels": {"pyarrow", "rich", "typer"},
    "models": {"torch", "pyspark", "typer"},
    "data": {"pandas", "polars", "scipy", "typer"},
    "spark": {"typer"},
}
NEVER = {"pandas", "polars", "scipy", "sklearn", "torch", "matplotlib", "optuna", "sqlalchemy", "implicit", "lightfm"}
NEVER |= {"hdfs_native", "fsspec"}
"""What the library never imports; only functions that hand a frame to the caller may, inside."""
FILES = [file.relative_to(ROOT).as_posix() for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]


def imports(file: str):
    """(module, top level?) of every import of a file; names imported from the package itself are modules too."""
    tree = ast.parse((ROOT / file).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from (("topnrank.__init__" if name == "topnrank" else name, node in tree.body) for name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module == "topnrank":
                submodules = [alias.name for alias in node.names if (ROOT / f"{alias.name}.py").exists()]
                yield from ((f"topnrank.{name}", node in tree.body) for name in submodules or ["__init__"])
            else:
                yield node.module, node in tree.body


@pytest.mark.parametrize("file", FILES)
def test_a_file_imports_only_from_below(file):
    layer = file.split("/")[0].removesuffix(".py")
    for module, _ in imports(file):
        package, *rest = module.split(".")
        if package == "topnrank" and (file, rest[0]) not in EXCEPTIONS:
            assert rest[0] in MAY_IMPORT[layer], f"{file} imports {module}"
        assert package not in FOREIGN.get(layer, set()), f"{file} imports {module}"


@pytest.mark.parametrize("file", FILES)
def test_no_file_needs_what_is_not_a_dependency(file):
    for module, at_top in imports(file):
        assert not (at_top and module.split(".")[0] in NEVER), f"{file} imports {module}"
        in_spark = file.startswith(("spark/", "cluster/", "engines/spark"))
        assert not (at_top and module.split(".")[0] == "pyspark" and not in_spark), f"{file} imports {module}"
        assert module.split(".")[0] != "pytest" or file.startswith("testing/"), f"{file} imports pytest"


def test_the_rule_covers_every_package():
    assert {file.split("/")[0].removesuffix(".py") for file in FILES} == set(MAY_IMPORT)
