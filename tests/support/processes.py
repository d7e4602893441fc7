"""Servers as processes of their own: started with a log, awaited, and gone at the end even if the tests are killed."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


@dataclass
class Server:
    """A running process and the file that holds all it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, what: str, look: Callable[[], Found | None], seconds: float = 600) -> Found:
        """What `look` finds as soon as it finds something; the log in the error if the server dies or time is up."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = look()
            if found is not None:
                return found
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}\n{tail(self.log)}")
            time.sleep(0.1)
        raise RuntimeError(f"{self.name}: no {what} after {seconds:g} s\n{tail(self.log)}")

    def said(self, pattern: str) -> str | None:
        """The first group of a pattern in the log, once it is there."""
        found = re.search(pattern, self.log.read_text(errors="replace"))
        return found[1] if found else None


@contextmanager
def serving(name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Server]:
    """Runs `command` with its log in `folder` until the block ends."""
    # the kernel ends the server when this process dies, however it dies
    tied = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*tied, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield Server(name, process, log)
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes], patience: float = 10) -> None:
    """Asks the process to end, then ends it and all of its group."""
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(file: Path, lines: int = 40) -> str:
    """The end of a log."""
    text = file.read_text(errors="replace") if file.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def commands() -> dict[int, tuple[int, list[str]]]:
    """Parent and command line of every process that can be seen, by process number; Linux only."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, ValueError):  # it ended meanwhile
            continue
        found[int(folder.name)] = (parent, command)
    return found
