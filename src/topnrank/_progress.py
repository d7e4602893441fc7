"""The progress bar of training, comparing, tuning and downloads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@final
@dataclass(frozen=True)
class ProgressBar:
    """What `progress_bar` gives; without a bar on the screen its methods do nothing."""

    bar: "Progress | None" = None
    task: "TaskID | None" = None

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
        if self.bar is None or self.task is None:
            return
        changed: dict[str, Any] = {"advance": advance} if done is None else {"completed": done}
        if text is not None:
            changed["text"] = text
        self.bar.update(self.task, description=title, total=total, **changed)


@contextmanager
def progress_bar(
    title: str,
    total: float | None = None,
    *,
    unit: Literal["count", "bytes"] = "count",
    clock: Literal["left", "elapsed"] = "left",
    shown: bool = True,
) -> Iterator[ProgressBar]:
    """A bar on standard error while the block runs; nothing is written if not `shown` or if that is not a terminal.

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
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield ProgressBar()
        return
    amount = [rich.DownloadColumn(), rich.TransferSpeedColumn()] if unit == "bytes" else [rich.MofNCompleteColumn()]
    time = rich.TimeRemainingColumn() if clock == "left" else rich.TimeElapsedColumn()
    text = rich.TextColumn("{task.fields[text]}")
    with rich.Progress(
        rich.TextColumn("{task.description}"), rich.BarColumn(), *amount, text, time, console=console
    ) as bar:
        yield ProgressBar(bar, bar.add_task(title, total=total, text=""))
