"""Where commands print: results on standard output, notes and progress on standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH = 160
"""Columns when the output is no terminal, so that titles are not folded at 80."""


class Output:
    """One command's output: for people, or one JSON object for machines."""

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.notes: list[str] = []

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console

        # Ids and titles are not ours: nothing in them is markup, and no number in them gets a color.
        plain = Console(markup=False, emoji=False, highlight=False)
        return plain if plain.is_terminal else Console(markup=False, emoji=False, highlight=False, width=PIPE_WIDTH)

    def show(self, *parts: "RenderableType") -> None:
        """Prints the answer for people; nothing with --json."""
        if not self.as_json:
            for part in parts:
                self._console.print(part, soft_wrap=isinstance(part, str))

    def report(self, *parts: "RenderableType") -> None:
        """Prints what was done, where the answer is a file; nothing with --json or --quiet."""
        if not self.quiet:
            self.show(*parts)

    def note(self, text: str) -> None:
        """Something the user should know: on standard error, and among the notes of the JSON object."""
        self.notes.append(text)
        self.progress(f"note: {text}")

    def progress(self, text: str) -> None:
        """What is going on, on standard error."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def result(self, facts: Mapping[str, Any]) -> None:
        """Prints the JSON object, with the notes; nothing without --json."""
        if self.as_json:
            from topnrank.experiments.report.formatting import jsonable

            print(json.dumps(jsonable({**facts, "notes": self.notes}), allow_nan=False))


def facts_table(facts: Mapping[str, Any], title: str | None = None) -> "RenderableType":
    """Names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(Text(name.replace("_", " "), style="bold"), shown(value))
    return table


def list_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> "RenderableType":
    """A table whose columns are aligned to the right where their values are numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for position, name in enumerate(header):
        numbers = all(_is_number(row[position]) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return not text
    return True


def shown(value: Any) -> str:
    """A value for people: thousands in groups, few digits, mappings and lists in one line."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return " · ".join(f"{name}: {shown(item) if isinstance(item, float) else item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return str(value)
