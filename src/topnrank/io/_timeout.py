"""Running a blocking call with a timeout."""

import threading
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 30.0
"""Seconds after which a remote service that does not answer counts as unreachable."""

T = TypeVar("T")


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """The result or error of `call`, run in another thread; a TimeoutError if it takes longer (None: no limit).

    For calls into libraries that may block without end, or that Ctrl-C must not interrupt. After a timeout the call goes on
    in its daemon thread, which does not keep the program alive.
    """
    results: list[T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as problem:  # raised again in the thread of the caller
            problems.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if problems:
        raise problems[0]
    if not results:
        assert seconds is not None
        raise TimeoutError(f"no answer within {seconds:.0f} seconds")
    return results[0]
