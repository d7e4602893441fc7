"""Checkpoints: a killed run resumes and ends with the bits of an uninterrupted one."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

from topnrank._typing import FloatArray
from topnrank.engines import Engine, State
from topnrank.errors import ModelFileError
from topnrank.io.alone import alone
from topnrank.io.atomic import output_error
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
            sentence = f"checkpoint folder {parent}: cannot be created ({error.strerror or error})"
            raise output_error(sentence, error, has_begun=False) from error

    def alone(self) -> AbstractContextManager[None]:
        """A context of one process at a time: of two trainings in one folder the second would undo the first."""
        folder = self.path.parent
        if isinstance(folder, RemotePath):
            return nullcontext()
        return alone(folder, f"checkpoint folder {folder}: another process trains there")

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

    def resume(self, start: State) -> tuple[State, int, bool] | None:
        """State, rounds done and whether the run had finished, from an earlier run of the same kind; None without one.

        `start` is the state before the first round: what was saved has its names, shapes and types.
        """
        if not self.path.exists():
            return None
        facts, arrays = read_file(self.path, "checkpoint")
        try:
            self._check_run(facts["run"])
            state = State(without_prefix("parameter.", arrays), without_prefix("accumulator.", arrays))
            _require_alike("parameter", state.parameters, start.parameters)
            _require_alike("accumulator", state.accumulators, start.accumulators)
            done, finished = facts["rounds_done"], facts["finished"]
            if type(done) is not int or done < 0 or type(finished) is not bool:
                raise ValueError(f"rounds_done {done!r}, finished {finished!r}")
            for name, callback in self.persistent.items():
                memory = without_prefix(f"memory.{name}.", arrays)
                if memory:
                    _require_alike(f"memory.{name}", memory, start.parameters)
                callback.recall(facts[f"memory.{name}"], memory)
            return state, done, finished
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(
                f"{self.path}: lacks a part of the checkpoint or holds one that does not fit ({error}); delete it"
            ) from error

    def _check_run(self, earlier: Mapping[str, Any]) -> None:
        for name in sorted(set(earlier) | set(self.run)):
            if earlier.get(name) != self.run.get(name):
                raise ModelFileError(
                    f"{self.path}: belongs to another run ({name} was {earlier.get(name)!r}, now it is "
                    f"{self.run.get(name)!r}); give another checkpoint folder or delete this one"
                )


def _require_alike(what: str, found: Mapping[str, FloatArray], wanted: Mapping[str, FloatArray]) -> None:
    """A ValueError unless the arrays have the names, shapes and types wanted: kernels do not look where an array ends."""
    if found.keys() != wanted.keys():
        raise ValueError(f"{what}s {', '.join(sorted(found))}, not {', '.join(sorted(wanted))}")
    for name, array in found.items():
        if array.shape != wanted[name].shape or array.dtype != wanted[name].dtype:
            raise ValueError(f"{what}.{name} holds {array.dtype} of shape {array.shape}")
