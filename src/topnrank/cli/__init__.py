"""The command line: parse, call the public API, print.

Exit codes: 0 fine, 2 bad usage or input, 1 failure, 130 interrupted, 141 the reader of the output has gone.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command (`sys.argv` when `arguments` is None) and returns its exit code; never raises."""
    try:
        from topnrank.cli.exit_codes import guarded

        return guarded(arguments)
    except KeyboardInterrupt:  # while the modules above were still loading
        return 130
