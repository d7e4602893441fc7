"""Checkpoints: a killed run resumes and ends with the bits of an uninterrupted one."""

import time
from collections.abc import Mapping
from typing import Any, final

from topnrank.engines import Engine, State
from topnrank.errors import ModelFileError, OutputError
from topnrank.io.paths import Location, RemotePath, parse_path
from topnrank.io.tensors import prefixed, read_file, without_prefix, write_file
from topnrank.training.callbacks import Persistent
from topnrank.training.loop import Round

FILE = "checkpoint.safetensors"


@final
class Checkpoint:
    """Saves parameters, accumulators and the memory of other callbacks after a round; it must be the last callback.

    Random numbers need no saving: streams are keyed by seed and round.
    """

    def __init__(
        self,
        folder: Location,
        run: Mapping[str, Any],
        persistent: Mapping[str, Persistent],
        *,
        seconds: float = 2.0,
    ) -> None:
        self.path = parse_path(folder) / FILE
        self.run = dict(run)
        """What identifies the run: data fingerprint and parameters."""
        self.persistent = persistent
        self.seconds = seconds
        """At least so long between two writes, and nine times as long as a write takes: it decides how much is done again
        after a kill, never the bits."""
        self._due = -float("inf")
        parent = self.path.parent
        try:
            parent.mkdir() if isinstance(parent, RemotePath) else parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"checkpoint folder {parent}: cannot be created ({error.strerror or error})") from error

    def after_round(self, engine: Engine, round_: Round) -> bool:
        """Writes when it is time, and when the run stops: killed right after, it must not train on."""
        if round_.stop or time.monotonic() >= self._due:
            self.write(engine, round_.number, finished=round_.stop)
        return False

    def write(self, engine: Engine, rounds_done: int, *, finished: bool) -> None:
        """Writes now, atomically."""
        began = time.monotonic()
        arrays = prefixed("parameter.", engine.state.parameters) | prefixed("accumulator.", engine.state.accumulators)
        facts: dict[str, Any] = {"run": self.run, "rounds_done": rounds_done, "finished": finished}
        for name, callback in self.persistent.items():
            facts[f"memory.{name}"], memory = callback.memory()
            arrays |= prefixed(f"memory.{name}.", memory)
        write_file(self.path, "checkpoint", arrays, facts)
        now = time.monotonic()
        self._due = now + (max(self.seconds, 9.0 * (now - began)) if self.seconds else 0.0)

    def resume(self) -> tuple[State, int, bool] | None:
        """State, rounds done and whether the run had finished, from an earlier run of the same kind; None without one."""
        if not self.path.exists():
            return None
        facts, arrays = read_file(self.path, "checkpoint")
        try:
            earlier = facts["run"]
            for name in sorted(set(earlier) | set(self.run)):
                if earlier.get(name) != self.run.get(name):
                    raise ModelFileError(
                        f"{self.path}: belongs to another run ({name} was {earlier.get(name)!r}, now it is "
                        f"{self.run.get(name)!r}); give another checkpoint folder or delete this one"
                    )
            for name, callback in self.persistent.items():
                callback.recall(facts[f"memory.{name}"], without_prefix(f"memory.{name}.", arrays))
            state = State(without_prefix("parameter.", arrays), without_prefix("accumulator.", arrays))
            return state, int(facts["rounds_done"]), bool(facts["finished"])
        except KeyError as error:
            raise ModelFileError(f"{self.path}: lacks a part of the checkpoint ({error}); delete it") from error
