"""How far a comparison is, and how long it may still take."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from topnrank.experiments.compare.cells import Task
from topnrank.experiments.compare.result import Cell


class Bar:
    """A bar on standard error with finished cells and time left; silent unless shown.

    Models differ a thousandfold in time, so the time left is the sum over the cells left of what a cell of their model
    took so far, or of what the average model takes where it has not had a cell yet.
    """

    def __init__(self, tasks: Sequence[Task], *, done: int, jobs: int, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._left = [(task.row.name, task.repeat) for task in tasks]
        self._seconds: dict[str, list[float]] = {}
        self._jobs = jobs
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not shown)
        self._task = self._bar.add_task("Comparing", total=done + len(tasks), completed=done, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def started(self, task: Task) -> None:
        """Tells which cell is under way."""
        self._bar.update(self._task, description=f"{task.row.name}, repeat {task.repeat + 1}")

    def finished(self, cell: Cell) -> None:
        """Moves the bar."""
        self._left.remove((cell.model, cell.repeat))
        self._seconds.setdefault(cell.model, []).append(cell.fit_seconds + cell.evaluate_seconds)
        about = "about" if self._seconds.keys() >= {name for name, _ in self._left} else "more than"
        self._bar.update(self._task, advance=1, left=f"{about} {_clock(self.seconds_left())} left")

    def seconds_left(self) -> float:
        """What the cells left will take, judged by those finished."""
        means = {name: sum(seconds) / len(seconds) for name, seconds in self._seconds.items()}
        average = sum(means.values()) / max(len(means), 1)
        return sum(means.get(name, average) for name, _ in self._left) / self._jobs


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
