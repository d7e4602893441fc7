"""Cells computed in parallel, each in a worker process."""

import os
import pickle
import signal
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from topnrank.errors import ParameterError
from topnrank.experiments.compare.cells import Plan, Runner, Task
from topnrank.experiments.compare.folder import Folder
from topnrank.experiments.compare.result import Cell

_DIED = "its process ended without an answer, perhaps because memory ran out; use less data or fewer jobs"
_NO_START = (
    "the processes of jobs={jobs} cannot be started; in a script, call compare below `if __name__ == '__main__':`, "
    "or use jobs=1"
)
_runner: Runner | None = None
"""In a worker: its runner."""


def run_in_processes(plan: Plan, folder: Folder | None, tasks: Sequence[Task], jobs: int) -> Iterator[Cell]:
    """Yields cells as they are finished, in any order. A process that dies costs its own cell, not the others."""
    for task in tasks:
        try:
            pickle.dumps(task.row)
        except Exception as error:  # pickle and the objects of other libraries raise many kinds
            raise ParameterError(
                f"compare: the model {task.row.name!r} cannot be sent to another process ({error}); use jobs=1"
            ) from None
    left = list(tasks)
    while left:
        left = yield from _run_until_broken(plan, folder, left, jobs)
        # One of the cells under way when a process died is to blame: these run again, one after the other.
        suspects, left = left[: jobs + 1], left[jobs + 1 :]
        while suspects:
            suspects = yield from _run_until_broken(plan, folder, suspects, 1)
            if suspects:
                cell = suspects.pop(0).failed(_DIED)
                if folder is not None:
                    folder.write_cell(cell)
                yield cell


def _run_until_broken(
    plan: Plan, folder: Folder | None, tasks: Sequence[Task], jobs: int
) -> Generator[Cell, None, list[Task]]:
    """Yields cells; returns the tasks that are left because a process died, in their order."""
    left = list(tasks)
    with _pool(plan, folder, min(jobs, len(tasks))) as pool:
        futures = {pool.submit(_run, task): task for task in tasks}
        for future in as_completed(futures):
            if not isinstance(future.exception(), BrokenProcessPool):
                left.remove(futures[future])
                yield future.result()
    return left


@contextmanager
def _pool(plan: Plan, folder: Folder | None, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that end with this process, even if it is killed: each watches a pipe whose other end this process holds."""
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _start, (theirs, plan, folder))
    try:
        try:
            pool.submit(os.getpid).result()
        except BrokenProcessPool:
            raise ParameterError(_NO_START.format(jobs=jobs)) from None
        yield pool
        pool.shutdown()
    finally:
        ours.close()
        theirs.close()
        pool.shutdown(wait=False, cancel_futures=True)


def _start(lifeline: "Connection[Any, Any]", plan: Plan, folder: Folder | None) -> None:
    """Initializes a worker."""
    global _runner
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that was started by hand
    Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    _runner = Runner(plan, folder)


def _die_with(lifeline: "Connection[Any, Any]") -> None:
    wait([lifeline])
    os._exit(1)


def _run(task: Task) -> Cell:
    assert _runner is not None
    return _runner.run(task)
