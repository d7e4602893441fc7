"""Watching what a program does to the world, and killing it at a chosen moment, the same in every run."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

FILES = ((os, "fsync"), (os, "replace"))
"""Flushes of files, and files put in place."""


@contextmanager
def watching(happened: Callable[[], object], *functions: tuple[Any, str]) -> Iterator[None]:
    """Calls `happened` before each call of the functions, given as owner and name."""

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            happened()
            return function(*arguments, **options)

        return call

    with ExitStack() as patches:
        for owner, name in functions:
            patches.enter_context(patch.object(owner, name, watched(getattr(owner, name))))
        yield


@contextmanager
def dying(event: int, *functions: tuple[Any, str]) -> Iterator[None]:
    """This process dies at the `event`-th call of any of the functions."""
    left = event

    def happened() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with watching(happened, *functions):
        yield
