"""The loop of every search: a sampler proposes settings, they are measured, the sampler sees the outcome."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from topnrank._progress import progress_bar
from topnrank.errors import DivergenceError, TopNRankError


class Pruned(Exception):  # noqa: N818 (nothing is wrong)
    """A trial is stopped early because it falls behind the others."""


@dataclass(frozen=True)
class Candidate:
    """Settings to try."""

    settings: dict[str, Any]
    watcher: Any = None
    """A training callback that may raise `Pruned`, or None"""
    own: bool = False
    """Whether these are the model's own values"""


@dataclass(frozen=True)
class Outcome:
    """The result of one trial."""

    state: str
    """"complete", "pruned" or "diverged\""""
    value: float | None = None
    """The metric on validation data; None where it was not measured"""
    epochs: int | None = None
    """The best round where the number of epochs was open, else None"""
    seconds: float = 0.0
    error: str = ""


Sampler = Generator[Candidate, Outcome, None]
"""Yields candidates and is sent the outcome of each; it ends when there is nothing left to try."""


def search(
    measure: Callable[[Candidate], Outcome],
    sampler: Sampler,
    *,
    failures: type[TopNRankError] = DivergenceError,
    title: str = "Searching",
    total: int | None = None,
    progress: bool = False,
) -> list[tuple[Candidate, Outcome]]:
    """Measures what the sampler proposes until it ends; a candidate that fails is an outcome, not the end.

    Parameters
    ----------
    measure : a trial's work.
    sampler : proposes candidates.
    failures : errors that mark a trial as diverged; others end the search.
    title, total, progress : of the progress bar.
    """
    trials: list[tuple[Candidate, Outcome]] = []
    with progress_bar(title, total, shown=progress) as bar:
        candidate = next(sampler, None)
        while candidate is not None:
            started = time.perf_counter()
            try:
                outcome = measure(candidate)
            except Pruned:
                outcome = Outcome("pruned")
            except failures as error:
                outcome = Outcome("diverged", error=str(error))
            outcome = replace(outcome, seconds=time.perf_counter() - started)
            trials.append((candidate, outcome))
            values = [one.value for _, one in trials if one.value is not None]
            bar.update(text=f"best {max(values):.4f}" if values else "")
            try:
                candidate = sampler.send(outcome)
            except StopIteration:
                candidate = None
    return trials
