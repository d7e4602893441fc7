"""The settings of a server: what `topnrank serve` asks for, and what goes to its workers."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Self

from topnrank._checks import one_of, require_number
from topnrank.errors import ParameterError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
ENVIRONMENT = "TOPNRANK_SERVE"
"""The environment variable that holds a worker's settings as JSON."""
DURABILITY = ("full", "normal")


@dataclass(frozen=True)
class Settings:
    """What a server serves, and how."""

    models: dict[str, str]
    """Paths of model files by name; the first one answers where a request names none"""
    items: str | None = None
    """A table of items with the column item, and title, group, year or any other"""
    events: str | None = None
    """Where events are kept: a file (SQLite) or postgresql://...; None for a server without events"""
    durability: str = "full"
    """"full": an acknowledged event survives a loss of power; "normal": the end of a process"""
    api_keys: str | None = None
    """A file of keys; None: TOPNRANK_API_KEYS, else no keys"""
    page: bool = True
    """Whether there is a page for people at /"""
    cors: tuple[str, ...] = ()
    """Origins whose pages may call the server"""
    hosts: tuple[str, ...] = ()
    """Names by which the server may be called; empty for any. Of a server without keys only those of this machine, so that
    no foreign page reaches it under a name of its own"""
    watch_seconds: float = 1.0
    """How often new model files are looked for; 0 for never"""
    batch_window_ms: float = 0.0
    """How long a request for a list may wait for others, to be computed together; 0: not at all"""
    workers: int = 1
    log_requests: bool = False

    def __post_init__(self) -> None:
        if not self.models:
            raise ParameterError("there is no model to serve; give at least one file")
        one_of("durability", self.durability, DURABILITY)
        require_number("watch_seconds", self.watch_seconds, at_least=0.0)
        require_number("batch_window_ms", self.batch_window_ms, at_least=0.0)

    def to_json(self) -> str:
        """For the environment of a worker."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        given = json.loads(text)
        return cls(**given | {"cors": tuple(given["cors"]), "hosts": tuple(given["hosts"])})
