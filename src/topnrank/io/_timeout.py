"""Waiting for others, but not for ever."""

import threading
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 30.0
"""Seconds after which somebody who says nothing is taken for dead."""

T = TypeVar("T")


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """What `call` returns or raises; a TimeoutError if it takes longer, and then it is left alone. None: however long.

    For calls into libraries that can wait without end, or that no Ctrl-C may cut in two. The thread is a daemon: it must not
    keep the program alive.
    """
    results: list[T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as problem:  # raised again in the caller's thread
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
