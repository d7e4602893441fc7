"""How the suite measures: two sides in turn, ratios within a round, medians and quartiles over the rounds."""

import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Values = Sequence[float]


class Taken(NamedTuple):
    """What a piece of work took, in seconds."""

    cpu: float
    wall: float


Side = Callable[[], Taken]
"""One side of a comparison: does its work once and says what that took."""


class Stopwatch:
    """CPU time of the process, with all its threads, and time of the clock."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def taken(self) -> Taken:
        """Since the start."""
        return Taken(time.process_time() - self._cpu, time.perf_counter() - self._wall)


def timed(work: Callable[[], object]) -> Side:
    """A side that does `work` anew each time."""

    def run() -> Taken:
        watch = Stopwatch()
        work()
        return watch.taken()

    return run


def differenced(fit: Callable[[int], object], passes: tuple[int, int]) -> Side:
    """The time of one pass of `fit(passes)`: two fits, their difference leaves out the preparation."""
    few, many = passes

    def run() -> Taken:
        short, long = timed(lambda: fit(few))(), timed(lambda: fit(many))()
        return Taken(*(max(end - start, 1e-9) / (many - few) for start, end in zip(short, long, strict=True)))

    return run


class Passes:
    """A side that goes on with one fit: each call lets it run to the end of its next pass.

    `fit(tick)` trains and calls `tick()` at the end of every pass; it waits there, in a thread of its own, while the other
    side runs. The first pass has the preparation in it, which the warm-up round of `in_turn` leaves out.
    """

    def __init__(self, fit: Callable[[Callable[[], None]], object]) -> None:
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._watch, self._taken = Stopwatch(), Taken(0.0, 0.0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(fit,), daemon=True)
        self._thread.start()

    def __call__(self) -> Taken:
        """Runs one pass."""
        self._go.release()
        self._paused.acquire()
        if self._error is not None:
            raise self._error
        return self._taken

    def finish(self) -> None:
        """Lets the fit end; it must have no further pass."""
        self._go.release()
        self._thread.join()

    def _run(self, fit: Callable[[Callable[[], None]], object]) -> None:
        self._go.acquire()
        self._watch = Stopwatch()
        try:
            fit(self._tick)
            self._error = RuntimeError("a fit ended before its last round")
        except BaseException as error:  # raised where the pass was asked for
            self._error = error
        self._paused.release()

    def _tick(self) -> None:
        self._taken = self._watch.taken()
        self._paused.release()
        self._go.acquire()
        self._watch = Stopwatch()


def in_turn(sides: Mapping[str, Side], rounds: int, *, warm_up: int = 1) -> dict[str, list[Taken]]:
    """Each side once a round, one after the other; a first round, which compiles and warms up, does not count."""
    taken: dict[str, list[Taken]] = {name: [] for name in sides}
    for number in range(-warm_up, rounds):
        for name, side in sides.items():
            one = side()
            if number >= 0:
                taken[name].append(one)
    for side in sides.values():
        if isinstance(side, Passes):
            side.finish()
    return taken


# -- what is reported ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """What a measure must show, and what it would like to."""

    bar: float
    goal: float | None = None
    at_least: bool = False
    """Whether more is better"""

    def verdict(self, value: float) -> str:
        """In words."""
        for limit, words in ((self.goal, "meets the goal"), (self.bar, "meets the bar")):
            if limit is not None and (value >= limit if self.at_least else value <= limit):
                return words
        return "misses the bar"


@dataclass(frozen=True)
class Measure:
    """Ours against a peer, value by value of the same round."""

    part: str
    name: str
    data: str
    unit: str
    """Of both sides' values, such as "ns" """
    ours: Values
    peer: str = ""
    """The other side; empty where the measure stands alone, and its value itself is held against the bar"""
    others: Values = ()
    """The other side's values"""
    bar: Bar | None = None
    faster: bool = False
    """Whether the ratio is how many times faster ours is, instead of the share of time it takes"""
    counted: str = ""
    """What is counted and how"""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers worth knowing"""

    @property
    def ratios(self) -> list[float]:
        """One for each round."""
        pairs = zip(self.ours, self.others, strict=True) if self.others else ()
        return [other / one if self.faster else one / other for one, other in pairs]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the report."""
        held = self.ratios or list(self.ours)
        return {
            "part": self.part,
            "name": self.name,
            "data": self.data,
            "unit": self.unit,
            "ours": spread(self.ours),
            "peer": self.peer or None,
            "others": spread(self.others) if self.others else None,
            "ratio": spread(self.ratios) if self.ratios else None,
            "faster": self.faster,
            "bar": None if self.bar is None else vars(self.bar),
            "verdict": None if self.bar is None else self.bar.verdict(statistics.median(held)),
            "counted": self.counted,
            "facts": dict(self.facts),
        }


def spread(values: Values) -> dict[str, Any]:
    """Median, quartiles and the values themselves."""
    if len(values) < 2:
        low = high = values[0]
    else:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": statistics.median(values), "low": low, "high": high, "values": list(values)}


def per(taken: Sequence[Taken], count: float, *, clock: str = "cpu", scale: float = 1e9) -> list[float]:
    """Nanoseconds, or other parts of a second, for each of `count` things."""
    return [scale * getattr(one, clock) / count for one in taken]
