"""Running the examples of a Markdown page: the Python blocks, the sessions and the commands, in the order of the page."""

import doctest
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"(<!-- not run: [^>]* -->\n+)?^```(python|pycon|sh)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@dataclass
class Page:
    """A page whose blocks share one namespace, as a reader's session would."""

    path: Path
    scope: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def blocks(self) -> list[tuple[str, str]]:
        """Kind and text of each block that is to be run."""
        return [(kind, text) for skipped, kind, text in BLOCK.findall(self.path.read_text()) if not skipped]

    def run(self) -> int:
        """Runs all blocks; the number of them."""
        blocks = self.blocks()
        for number, (kind, text) in enumerate(blocks, 1):
            where = f"{self.path.name}, block {number}"
            {"python": self._execute, "pycon": self._converse, "sh": self._command}[kind](text, where)
        return len(blocks)

    def _execute(self, text: str, where: str) -> None:
        exec(compile(text, where, "exec"), self.scope)

    def _converse(self, text: str, where: str) -> None:
        test = doctest.DocTestParser().get_doctest(text, self.scope, where, str(self.path), 0)
        report: list[str] = []
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append, clear_globs=False)
        self.scope.update(test.globs)
        assert result.failed == 0, "".join(report)

    def _command(self, text: str, where: str) -> None:
        from topnrank.cli import main

        for line in text.replace("\\\n", " ").splitlines():
            command = shlex.split(line, comments=True)
            assert not command or command[0] == "topnrank", f"{where}: {line}: only topnrank is run here"
            assert not command or main(command[1:]) == 0, f"{where}: {line}"
