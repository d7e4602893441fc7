"""Progress of training, comparing, tuning and downloads: a bar on a terminal or in a notebook, lines in a log."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_LINES = 10.0
"""In a log that is no terminal a line is written so often."""
_SECONDS_BETWEEN_BARS = 0.2


@dataclass(kw_only=True)
class ProgressBar:
    """What `progress_bar` gives: the state of the work, shown from time to time; this one shows nothing."""

    title: str = ""
    total: float | None = None
    unit: str = "count"
    between: float = math.inf
    """Seconds from one showing to the next"""
    done: float = 0.0
    text: str = ""
    started: float = field(default_factory=lambda: time.monotonic())
    shown: float = 0.0
    """When the state was shown last; 0 for never."""

    def update(
        self,
        done: float | None = None,
        advance: float = 1,
        text: str | None = None,
        *,
        title: str | None = None,
        total: float | None = None,
    ) -> None:
        """Sets the bar to `done`, or moves it by `advance`; `text`, `title` and `total` stay as they are where None."""
        self.done = self.done + advance if done is None else done
        self.text, self.title = self.text if text is None else text, title or self.title
        self.total = self.total if total is None else total
        now = time.monotonic()
        if now - (self.shown or self.started) >= self.between:
            self.shown = now
            self.show()

    def show(self) -> None:
        """Shows the state."""

    def sentence(self) -> str:
        """Title, amount, text and time."""
        divisor, unit = (1e6, " MB") if self.unit == "bytes" else (1, "")
        amount = f"{self.done / divisor:,.0f}" + (f"/{self.total / divisor:,.0f}" if self.total else "") + unit
        return f"{self.title}: {amount} {self.text} · {time.monotonic() - self.started:,.0f} s".replace("  ", " ")


@final
@dataclass(kw_only=True)
class _TerminalBar(ProgressBar):
    bar: "Progress"
    task: "TaskID"

    def show(self) -> None:
        self.bar.update(self.task, completed=self.done, description=self.title, total=self.total, text=self.text)


@final
@dataclass(kw_only=True)
class _Lines(ProgressBar):
    """A line on standard error every ten seconds: what takes less leaves no trace in a log."""

    def show(self) -> None:
        print(self.sentence(), file=sys.stderr, flush=True)


@final
@dataclass(kw_only=True)
class _NotebookBar(ProgressBar):
    """A bar below a cell, made of HTML alone: it needs no ipywidgets."""

    handle: Any = None

    def show(self) -> None:
        from IPython.display import HTML, display

        share = "" if not self.total else f' value="{self.done:g}" max="{self.total:g}"'
        bar = HTML(f"<progress{share}></progress> {escape(self.sentence())}")
        if self.handle is None:
            self.handle = display(bar, display_id=True)
        else:
            self.handle.update(bar)


@contextmanager
def progress_bar(
    title: str,
    total: float | None = None,
    *,
    unit: Literal["count", "bytes"] = "count",
    clock: Literal["left", "elapsed"] = "left",
    shown: bool = True,
) -> Iterator[ProgressBar]:
    """A bar on standard error while the block runs, or below the cell of a notebook; in a log, lines.

        with progress_bar("Training", total=epochs) as bar:
            for epoch in range(epochs):
                bar.update(text=f"objective {step():.4g}")

    Parameters
    ----------
    title : text before the bar.
    total : value of a full bar; None where it is not known (yet).
    unit : "count" shows "3/10", "bytes" shows sizes and the speed.
    clock : whether the time left or the time since the start is shown.
    shown : False for a bar that only takes the calls.
    """
    if not shown:
        yield ProgressBar()
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _rich_progress(console, unit, clock) as bar:
            task = bar.add_task(title, total=total, text="")
            yield _TerminalBar(title=title, total=total, between=0.0, bar=bar, task=task)
        return
    kind, between = (_NotebookBar, _SECONDS_BETWEEN_BARS) if console.is_jupyter else (_Lines, SECONDS_BETWEEN_LINES)
    told = kind(title=title, total=total, unit=unit, between=between)
    yield told
    if told.shown:
        told.show()


def _rich_progress(console: "Console", unit: str, clock: str) -> "Progress":
    from rich import progress as rich

    amount = [rich.DownloadColumn(), rich.TransferSpeedColumn()] if unit == "bytes" else [rich.MofNCompleteColumn()]
    time_column = rich.TimeRemainingColumn() if clock == "left" else rich.TimeElapsedColumn()
    text = rich.TextColumn("{task.fields[text]}")
    return rich.Progress(
        rich.TextColumn("{task.description}"), rich.BarColumn(), *amount, text, time_column, console=console
    )
