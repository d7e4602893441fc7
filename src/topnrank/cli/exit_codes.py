"""Every way a command can end, as an exit code and at most one line on standard error."""

import errno
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence

import typer

from topnrank.errors import InputError, TopNRankError

# Typer brings its own Click or uses the installed one, depending on its version; this finds ClickException in both.
_CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED, READER_GONE = 130, 141
"""128 + SIGINT, 128 + SIGPIPE, as shells say it."""

_ARGUMENT = re.compile(r"\b(user|item|rating|type|weight|timestamp|format|separator|duplicates)=(?=['\w])")


def guarded(arguments: Sequence[str] | None) -> int:
    """Runs the command; its errors become exit codes."""
    try:
        code = _run(arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit:  # how Typer and Rich end a program whose output nobody reads any more
        code = READER_GONE
    except Exception as error:
        code = _code_of(error)
        if code != READER_GONE:
            _say(_sentence(error), debug=True)
    if code == INTERRUPTED:
        _say("interrupted")
    if code == READER_GONE or not _flushed():
        _silence()
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from topnrank.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title the terminal cannot show must not end the program
    code = app(args=arguments, prog_name="topnrank", standalone_mode=False)
    sys.stdout.flush()
    return code or 0


def _code_of(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        return READER_GONE
    return 2 if isinstance(error, InputError | _CLICK_ERROR) else 1


def _sentence(error: Exception) -> str:
    """What to tell the user."""
    if isinstance(error, _CLICK_ERROR):
        return f"{error.format_message()} (--help explains)"  # type: ignore[attr-defined]
    if isinstance(error, TopNRankError):
        return as_options(str(error))
    if isinstance(error, OSError):
        return f"the operating system refused: {error}; check the disk and the permissions"
    if isinstance(error, MemoryError):
        return "there is not enough memory; use less data or fewer factors"
    kind = type(error).__name__
    return f"unexpected error: {kind}: {error}; please report it (TOPNRANK_DEBUG=1 shows the traceback)"


def as_options(message: str) -> str:
    """The remedy of a message of the library in the words of the command line: `item='...'` becomes `--item '...'`."""
    fact, semicolon, remedy = message.rpartition("; ")
    remedy = remedy.replace("header=True", "--header").replace("header=False", "--no-header")
    return fact + semicolon + _ARGUMENT.sub(r"--\1 ", remedy)


def _say(sentence: str, *, debug: bool = False) -> None:
    """One line on standard error, even if the sentence quotes a line end."""
    try:
        if debug and os.environ.get("TOPNRANK_DEBUG"):
            traceback.print_exc()
        print(f"topnrank: {' '.join(sentence.splitlines())}", file=sys.stderr, flush=True)
    except OSError:
        return  # nobody listens


def _flushed() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _silence() -> None:
    """Sends what is still in the buffers nowhere, or Python would complain about it at the very end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
