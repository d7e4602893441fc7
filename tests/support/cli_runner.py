"""Running commands inside this process or as one of their own, and what they printed."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

QUICK = ("--set", "factors=4", "--set", "epochs=3", "--threads", "1")
"""Settings with which Top-N-Rank trains in no time."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    def assert_refused(self, *fragments: str) -> None:
        """Exit code 2, nothing on standard output, and one line that says it all."""
        assert (self.code, self.out) == (2, ""), (self.code, self.out, self.err)
        assert self.err.startswith("topnrank: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert [fragment for fragment in fragments if fragment not in self.err] == [], self.err


Run = Callable[..., Outcome]


def command_line(arguments: Sequence[object]) -> list[str]:
    """The real program as a process of its own."""
    return [sys.executable, "-m", "topnrank", *(str(argument) for argument in arguments)]


def ratings_text(users: int = 24, items: int = 10) -> str:
    """Ratings from 1 to 5 of all users for most items, as CSV."""
    rows = [
        f"u{user},i{item},{1 + (user * item + item) % 5}\n"
        for user in range(users)
        for item in range(items)
        if (user + item) % 7
    ]
    return "user,item,rating\n" + "".join(rows)
