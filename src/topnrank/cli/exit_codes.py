"""Every way a command can end, as an exit code and at most one line on standard error."""

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence

import typer

from topnrank.errors import DiskError, InputError, TopNRankError

# Some versions of Typer bring their own Click, others use the installed one; this finds ClickException in both.
_CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED, BROKEN_PIPE = 130, 141
"""128 + SIGINT and 128 + SIGPIPE, as shells report these signals."""


def guarded(arguments: Sequence[str] | None) -> int:
    """Runs the command line and returns its exit code; errors become exit codes and a line on standard error."""
    try:
        from topnrank.cli.app import app

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a title that the terminal cannot show is no error
        code = app(args=arguments, prog_name="topnrank", standalone_mode=False) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort) as ended:
        code = INTERRUPTED
        if isinstance(ended.__cause__, EOFError):  # Click takes any for the end of what a user types
            code = 1
            _print_error(_sentence(ended.__cause__), debug=True)
    except SystemExit:  # how Typer and Rich end a program whose output is no longer read
        code = BROKEN_PIPE
    except Exception as error:
        code = _code_of(error)
        if code != BROKEN_PIPE:
            _print_error(_sentence(error), debug=True)
    if code == INTERRUPTED:
        _print_error("interrupted")
    broken = code == BROKEN_PIPE
    try:
        if sys.stdout is not None:  # closed by the caller: >&-
            sys.stdout.flush()
    except OSError:
        broken = True
    if broken:  # discards what is still in the buffers, about which Python would complain when it exits
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            os.dup2(nowhere, stream.fileno())
    return code


def _code_of(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        return BROKEN_PIPE
    return 2 if isinstance(error, InputError | _CLICK_ERROR) and not isinstance(error, DiskError) else 1


def _sentence(error: Exception) -> str:
    """The error message for the user."""
    if isinstance(error, _CLICK_ERROR):
        return f"{error.format_message()} (--help explains)"  # type: ignore[attr-defined]
    if isinstance(error, TopNRankError):
        from topnrank.cli.wording import as_options

        return as_options(str(error))
    if isinstance(error, OSError):
        return f"the operating system refused: {error}; check the disk and the permissions"
    if isinstance(error, MemoryError):
        return "there is not enough memory; use less data or fewer factors"
    kind = type(error).__name__
    return f"unexpected error: {kind}: {error}; please report it (TOPNRANK_DEBUG=1 shows the traceback)"


def _print_error(sentence: str, *, debug: bool = False) -> None:
    """Prints one line on standard error, even if the sentence has line breaks."""
    try:
        if debug and os.environ.get("TOPNRANK_DEBUG"):
            traceback.print_exc()
        print(f"topnrank: {' '.join(sentence.splitlines())}", file=sys.stderr, flush=True)
    except OSError:
        return  # standard error is closed
