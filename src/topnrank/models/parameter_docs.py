"""What each hyper-parameter means, by default is, may be, and is worth: read from the classes, the only place that says it.

The meaning is the string below a field. `help()`, `topnrank models NAME` and the site show what is made of it here.
"""

import ast
import dataclasses
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from topnrank.models.parameters import AUTO, FLAG, Rule, Space

_HINTS = {
    "across_sessions": "0, 0.3, 1",
    "batch_size": "auto",
    "damping": "5, 25",
    "discount": "-1, 0, 2",
    "dislike_regularization": "400, 800, 1600",
    "dislikes": "0, 0.5",
    "feedback": "what your rows mean: centered, threshold, unary, weights, EventWeights, ...",
    "anneal_n": "0, 0.3",
    "heads": "1, 2, 4",
    "half_life": "None; 3600 to 604800 (an hour to a week of seconds) for logs",
    "head": "the default",
    "history_power": "0.4, 0.6, 1",
    "init": "0.01, 0.03, 0.1",
    "iterations": "None; 30 with epochs=None, as in the paper",
    "max_epochs": "the default",
    "longest": "the default; less where fitting takes too long",
    "max_items": "the default; more where there is memory for its square, four bytes each",
    "negatives": "0, 50, 100, 200",
    "num_threads": "0; 1 beside other work",
    "optimizer": "adagrad, sgd",
    "patience": "5, 10, 20",
    "recent_popularity": "0, 0.3, 1, auto",
    "repeats": "0; 1 where people take the same item again",
    "undirected": "0, 0.3, 1, auto",
    "recency": "None; 5, 10, 20 where the next items are wanted",
    "scale": "the default",
    "seed": "0, 1, 2, to see what is chance",
    "term_settings": "None",
    "sessions": "None; 1800 (half an hour of seconds) for logs of visits",
    "shrink": "5, 20, 100",
    "smoothing": "laplace, relu, sigmoid, ramp",
    "tolerance": "0; 0.1 with iterations, as in the paper",
    "tries": "the default",
    "user_power": "0, 0.25, 0.5",
    "weight_decay": "0, 0.01",
    "window": "1, 3, 10",
}
"""Values worth trying of hyper-parameters that are in no search space, by name."""
_STARTS_SECTION = "\n\nParameters\n----------\n"


class ParameterDoc(NamedTuple):
    """One hyper-parameter in words."""

    name: str
    meaning: str
    default: Any
    values: str
    """What is allowed; empty where the meaning says it"""
    worth_trying: str


def parameter_docs(kind: type) -> list[ParameterDoc]:
    """The hyper-parameters of a class of models, in the order of its fields."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _strings_below_fields(base.__module__).get(base.__name__, {})
    spaces = _spaces(kind)
    return [
        ParameterDoc(
            field.name,
            meanings.get(field.name, ""),
            field.default,
            _values(field.metadata.get("rule")),
            _worth_trying(field, spaces),
        )
        for field in dataclasses.fields(kind)
    ]


def with_parameters(kind: type, text: str) -> str:
    """The docstring `text` of a class of models with a section on its hyper-parameters."""
    lines = []
    for one in parameter_docs(kind):
        facts = [f"default {one.default!r}"] + [one.values] * bool(one.values)
        facts += [f"worth trying: {one.worth_trying}"] * bool(one.worth_trying)
        lines += [
            f"{one.name} : {'; '.join(facts).removesuffix('.')}.",
            *(f"    {line}" for line in one.meaning.splitlines()),
        ]
    return inspect.cleandoc(text) + _STARTS_SECTION + "\n".join(lines) if lines else text


@cache
def _strings_below_fields(module: str) -> dict[str, dict[str, str]]:
    """By class and field the string that stands below the field; nothing where there is no source to read."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):
        return {}
    return {node.name: _strings(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}


def _strings(body: list[ast.stmt]) -> dict[str, str]:
    found = {}
    for field, below in pairwise(body):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = inspect.cleandoc(text)
    return found


def _values(rule: Rule | None) -> str:
    if rule is None or not rule.sentence:
        return ""
    named = " or ".join(repr(value) for value in rule.also if repr(value) not in rule.sentence)
    return rule.sentence + (f", or {named}" if named and '"auto"' not in rule.sentence else "")


def _spaces(kind: Any) -> dict[str, Space]:
    """What tuning searches, by task where that depends on it."""
    asked, own = kind.search_space(), kind().space()
    return {"": own} if asked == own else {"catalog: ": own, "rated: ": asked}


def _worth_trying(field: "dataclasses.Field[Any]", spaces: dict[str, Space]) -> str:
    told = {task: str(space[field.name]) for task, space in spaces.items() if field.name in space}
    if len(set(told.values())) == 1 and len(told) == len(spaces):
        return next(iter(told.values()))
    if told:
        return "; ".join(f"{task}{values}" for task, values in told.items())
    rule = field.metadata.get("rule")
    if rule is not None and field.default == AUTO:
        return '"auto", which follows task and data'
    if rule is not None and rule.words:
        return ", ".join(rule.words)
    return "True, False" if rule is FLAG else _HINTS.get(field.name, "")


class LongDoc:
    """The `__doc__` of a class of models: its text, and when somebody asks for it, the hyper-parameters."""

    def __init__(self, text: str) -> None:
        self.text, self.whole = text, ""

    def __get__(self, instance: object, kind: type) -> str:
        if "__match_args__" not in vars(kind):  # `dataclass` is not done with the class yet
            return self.text
        if not self.whole:
            self.whole = with_parameters(kind, self.text)
        return self.whole
