"""The shape of the code: a function fits a screen, and no parameter is an anonymous tuple."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import topnrank

ROOT = Path(topnrank.__file__).parent
MOST_LINES = 51
"""Of a function, without its docstring: a screen."""
PAIRS_OF_SPARK = {"spark/jobs/evaluate.py: measure(pair)", "spark/engine/item_store.py: task(pair)"}
"""Functions that Spark calls with the pairs of a zip."""


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}: {node.name}", node


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_a_function_fits_a_screen():
    assert [f"{name}, {lines(node)} lines" for name, node in functions() if lines(node) > MOST_LINES] == []


def is_record(annotation: ast.expr | None) -> bool:
    """Whether it is tuple[A, B], several things without names; tuple[A, ...] is a list that cannot change."""
    if isinstance(annotation, ast.BinOp):
        return is_record(annotation.left) or is_record(annotation.right)
    of_tuple = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "tuple"
    return of_tuple and "..." not in ast.unparse(annotation.slice)


@pytest.mark.parametrize(("text", "expected"), [("tuple[int, str]", True), ("tuple[int, ...] | None", False)])
def test_records_are_told_from_lists(text, expected):
    assert is_record(ast.parse(text, mode="eval").body) is expected


def test_no_parameter_is_an_anonymous_tuple():
    found = {
        f"{name}({one.arg})"
        for name, node in functions()
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if is_record(one.annotation)
    }
    assert found <= PAIRS_OF_SPARK
