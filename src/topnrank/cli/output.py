"""What commands print: answers on standard output, notes and progress on standard error; tables, and facts about data."""

import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from topnrank._progress import SECONDS_BETWEEN_LINES
from topnrank.cli.options import option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from topnrank import Interactions, Model
    from topnrank._typing import Float32Array

PIPE_WIDTH = 160
"""Columns when standard output is not a terminal, so that titles are not folded at 80."""
MAX_VALUES = 20
"""Up to this many different ratings are counted one by one; of more, quantiles are shown."""


@dataclass
class Output:
    """The output of one command, and the options that choose its form: text for people, or one JSON object."""

    as_json: bool = option(False, "Print one JSON object on standard output and nothing else there.", "--json")
    quiet: bool = option(
        False, "No progress bar, notes or reports of what was done; answers and errors only.", "--quiet", "-q"
    )
    notes: list[str] = dataclasses.field(default_factory=list, init=False)

    def show(self, *parts: "RenderableType") -> None:
        """Prints the answer for people; nothing with --json."""
        if self.as_json:
            return
        from rich.console import Console

        # Ids and titles come from the user: they hold no markup, and numbers in them get no color.
        console = Console(markup=False, emoji=False, highlight=False)
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))

    def report(self, *parts: "RenderableType") -> None:
        """Prints what was done, where the answer is a file; nothing with --json or --quiet."""
        if not self.quiet:
            self.show(*parts)

    def note(self, text: str) -> None:
        """Prints something the user should know on standard error; it is also among the notes of the JSON object."""
        self.notes.append(text)
        self.progress(f"note: {text}")

    @contextmanager
    def warnings_noted(self) -> Iterator[None]:
        """What the library warns of within it is noted, each thing once."""
        from topnrank.cli.wording import as_options
        from topnrank.errors import TopNRankWarning

        def noted(message: Warning | str, *_: Any, **__: Any) -> None:
            if (text := as_options(str(message))) not in self.notes:
                self.note(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always", TopNRankWarning)
            shown, warnings.showwarning = warnings.showwarning, noted
            try:
                yield
            finally:
                warnings.showwarning = shown

    @contextmanager
    def compiling_told(self) -> Iterator[None]:
        """Within it, compiling kernels is told of: when the first is not in the cache, then every few seconds."""
        from numba.core.event import Event, Listener, install_listener

        output = self

        class Told(Listener):  # type: ignore[misc]
            compiled, started, told = 0, 0.0, 0.0

            def on_start(self, _: Event) -> None:
                now = time.monotonic()
                if not self.compiled:
                    self.started = self.told = now
                    output.progress("compiling the kernels, once on a machine: half a minute, longer if it is busy")
                elif now - self.told >= SECONDS_BETWEEN_LINES:
                    self.told = now
                    output.progress(f"compiling the kernels: {self.compiled} so far, {now - self.started:.0f} s")
                self.compiled += 1

            def on_end(self, _: Event) -> None:
                pass

        with install_listener("numba:compile", Told()):
            yield

    def progress(self, text: str) -> None:
        """Prints what is going on, on standard error."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def result(self, facts: Mapping[str, Any]) -> None:
        """Prints the JSON object, with the notes; nothing without --json."""
        if self.as_json:
            from topnrank.experiments.report.formatting import jsonable

            print(json.dumps(jsonable({**facts, "notes": self.notes}), allow_nan=False))


# ----------------------------------------------------------------------------------------------------
# Tables and values for people.


def facts_table(facts: Mapping[str, Any], title: str | None = None) -> "RenderableType":
    """Names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(Text(name.replace("_", " "), style="bold"), format_value(value))
    return table


def list_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> "RenderableType":
    """A table whose columns are aligned to the right where their values are numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for position, name in enumerate(header):
        numbers = all(_is_number(row[position]) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_harmless, row))
    return table


def _harmless(text: str) -> str:
    """Control characters as they are written in code: a title must not clear the screen or rename the window."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return not text
    return True


def format_value(value: Any) -> str:
    """A value for people: thousands in groups, few digits, mappings and lists in one line."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return " · ".join(f"{k}: {format_value(v) if isinstance(v, float) else v}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value)
    return str(value)


# ----------------------------------------------------------------------------------------------------
# Facts about data and models.


def describe(data: "Interactions") -> dict[str, Any]:
    """Sizes, list lengths, and what is known of ratings, types, weights and times."""
    import numpy as np

    lengths = np.diff(data.indptr)
    facts: dict[str, Any] = {
        "rows": len(data),
        "users": data.n_users,
        "items": data.n_items,
        "density": int(data.pair_starts.sum()) / (data.n_users * data.n_items),
        "rows_per_user": {"min": int(lengths.min()), "median": float(np.median(lengths)), "max": int(lengths.max())},
        "users_with_one_row": int((lengths == 1).sum()),
    }
    if data.ratings is not None:
        facts["ratings"] = _distribution(data.ratings)
    if data.types is not None:
        counts = np.bincount(data.types, minlength=len(data.type_names))
        facts["types"] = dict(zip(data.type_names, counts.tolist(), strict=True))
    if data.weights is not None:
        facts["weights"] = _distribution(data.weights)
    if data.timestamps is not None:
        first, last = int(data.timestamps.min()), int(data.timestamps.max())
        try:
            dates = f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d} to {datetime.fromtimestamp(last, UTC):%Y-%m-%d}"
        except (OverflowError, ValueError, OSError):
            dates = "not seconds since 1970"
        facts["timestamps"] = {"first": first, "last": last, "dates": dates}
    return facts


def _distribution(values: "Float32Array") -> dict[str, Any]:
    """How often each value occurs, or quantiles where there are many values."""
    import numpy as np

    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_VALUES:
        return {f"{value:g}": count for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)}
    quantiles = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist()
    return dict(zip(("min", "25 %", "median", "75 %", "max"), quantiles, strict=True))


def training_facts(model: "Model") -> dict[str, Any]:
    """What a model file says of the training: task, settings chosen, half-life, rounds, validation, the last record."""
    info = model.fitted.info.to_dict()
    told = ("task", "chosen", "half_life_days", "rounds", "best_round", "validation")
    found = {name: info[name] for name in told if name in info}
    return found | ({"last_round": info["history"][-1]} if info.get("history") else {})
